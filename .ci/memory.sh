#!/usr/bin/env bash
# Memory checkers over `src/io`, the one home of `unsafe`, and over what drives it on real directories.
# usage: .ci/memory.sh [valgrind | address]
#   valgrind  the test binary that `cargo test` builds anyway, under memcheck: some two minutes. Without valgrind: skipped.
#   address   all but the long tests and those of the tree, built anew with AddressSanitizer in target/asan: some minutes
#             more on few processors.
# Neither sees what the kernel reads of a buffer once a ring has it: that is what the played ring of `io::uring::tests` is for.
set -euo pipefail
cd "$(dirname "$0")/.."

# Backtraces would be most of the work: some tests panic on purpose.
export RUST_BACKTRACE=0
target="${CARGO_TARGET_DIR:-target}"

# built CARGO_ARGUMENTS...: builds the library's tests, prints where they are.
built() {
  local told
  told="$(cargo test --lib --all-features --locked --no-run "$@" 2>&1)" || {
    echo "$told" >&2
    return 1
  }
  sed -n 's/^ *Executable unittests src\/lib\.rs (\(.*arborlog-[0-9a-f]*\))$/\1/p' <<<"$told" | head -n 1
}

# run COMMAND...: a run of the tests; none at all is a failure.
run() {
  local told code=0
  told="$("$@" 2>&1)" || code=$?
  echo "$told" | grep -v '\.\.\. ok$' || :
  ((code == 0)) || return "$code"
  grep -Eq '^test result: ok\. [1-9][0-9]* passed' <<<"$told"
}

case "${1:-valgrind}" in
valgrind)
  if ! command -v valgrind >/dev/null; then
    echo "skipped: valgrind is not installed"
    exit 0
  fi
  tests="$(built --workspace)"
  [[ -n "$tests" ]] || { echo "no test binary" >&2; exit 1; }
  # Planted bugs panic in the middle of an engine's life, and leave behind what it held.
  # One thread at a time: valgrind runs no two, and slow neighbours run into the limits of those that wait.
  run valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
    "$tests" --test-threads=1 io:: engine::tests engine::checkpoint_tests --skip io::sim --skip io::conformance::sim \
    --skip engine_bugs_are_found
  ;;
address)
  # The sanitizer is of the nightly compiler; the one that is there has it, too.
  export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="$target/asan"
  export CARGO_INCREMENTAL=0 CARGO_PROFILE_TEST_DEBUG=line-tables-only
  tests="$(built -p arborlog --target "$(rustc -vV | sed -n 's/^host: //p')")"
  [[ -n "$tests" ]] || { echo "no test binary" >&2; exit 1; }
  # Neither these nor what they test have `unsafe`; some run for minutes, and the tree's leak requests on purpose.
  run "$tests" --skip simulation --skip tree::
  ;;
*)
  sed -n '3,6s/^# //p' "$0" >&2
  exit 2
  ;;
esac
