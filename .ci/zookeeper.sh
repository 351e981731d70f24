#!/bin/sh
# Starts a real ZooKeeper on what `arborlog zookeeper export` writes, and compares node for node what it tells a client
# with the engine's own state; then imports what the server has written back. Needs Debian's `zookeeper` (its jars), Java,
# and Python with `kazoo` (PYTHON names the interpreter).
# usage: .ci/zookeeper.sh [ARBORLOG]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
arborlog=${1:-$here/target/debug/arborlog}
python=${PYTHON:-python3}
jars=/usr/share/java
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || :; rm -rf "$work"' EXIT
mkdir "$work/conf"

run_one() {
    source=$1 format=$2 more=$3 port=$4
    rm -rf "$work/engine" "$work/data"
    "$arborlog" zookeeper import "$here/tests/zookeeper/$source" "$work/engine" >/dev/null
    # shellcheck disable=SC2086 # several words
    "$arborlog" zookeeper export "$work/engine" "$work/data" --format "$format" $more >/dev/null
    "$arborlog" tree dump --json "$work/engine" >"$work/tree.jsonl"
    # Sessions expire in steps of a tick: none is to, while it is compared.
    printf 'tickTime=600000\ndataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n' \
        "$work/data" "$port" >"$work/conf/zoo.cfg"
    echo '4lw.commands.whitelist=mntr' >>"$work/conf/zoo.cfg"
    java -Xmx256m -Dzookeeper.extendedTypesEnabled=true -Dzookeeper.preAllocSize=64 \
        -Dznode.container.checkIntervalMs=100000000 \
        -Dzookeeper.skipACL=yes \
        -cp "$work/conf:$jars/zookeeper.jar:$jars/slf4j-api.jar:$jars/slf4j-log4j12.jar:$jars/log4j-1.2.jar" \
        org.apache.zookeeper.server.ZooKeeperServerMain "$work/conf/zoo.cfg" >"$work/server.log" 2>&1 &
    server=$!
    "$python" "$here/.ci/zookeeper_compare.py" "127.0.0.1:$port" "$work/tree.jsonl" "$format" || {
        tail -n 30 "$work/server.log"
        exit 1
    }
    # Its log says nothing without a setting for log4j; its counter does.
    : >"$work/mntr"
    for _ in 1 2 3 4 5; do
        # A machine that is busy may not answer at once.
        [ ! -s "$work/mntr" ] || break
        "$python" -c 'import socket,sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.sendall(b"mntr"); f = s.makefile()
sys.stdout.write(f.read())' "$port" >"$work/mntr" || sleep 1
    done
    grep -q 'zk_digest_mismatches_count[[:space:]]*0$' "$work/mntr" || {
        echo "of digests, the server says:"
        cat "$work/mntr"
        exit 1
    }
    kill "$server"
    wait "$server" || :
    server=
    # What the server made of it, its own snapshot and log behind ours.
    "$arborlog" zookeeper verify "$work/data" >"$work/verify" || { cat "$work/verify"; exit 1; }
    rm -rf "$work/back"
    "$arborlog" zookeeper import "$work/data" "$work/back" >/dev/null
    "$arborlog" tree dump --json "$work/back" >"$work/back.jsonl"
    grep -q '"path":"/made-by-the-server"' "$work/back.jsonl" || { echo "what the server wrote did not come back"; exit 1; }
    # All nodes but the root, which has one child more; and what a directory of 3.4 does not have.
    fewer='"path":"/"'
    [ "$format" != 3.4 ] || fewer='"path":"/\(zookeeper\|zookeeper/config\)\?"'
    sort "$work/back.jsonl" >"$work/back.sorted"
    grep -v "$fewer" "$work/tree.jsonl" | sort | comm -23 - "$work/back.sorted" >"$work/lost"
    if [ -s "$work/lost" ]; then echo "changed on the way back:"; cat "$work/lost"; exit 1; fi
    echo "$source in the format $format $more: the same"
}

run_one basic/data 3.9 "" 21811
run_one basic/data 3.6 "--compression gz" 21812
run_one multi/data 3.6 "--compression snappy" 21813
run_one containers-ttl/data 3.6 "" 21814
run_one ephemerals/data 3.5 "" 21815
run_one quota/data 3.5 "" 21816
run_one snapcount/data 3.9 "" 21817
run_one fmt-39 3.9 "" 21818
run_one basic/data 3.6 "--log-tail" 21819
run_one quota/data 3.4 "" 21820
run_one snapcount/data 3.4 "" 21821
