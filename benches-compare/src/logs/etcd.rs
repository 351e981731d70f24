//! etcd's write-ahead log: a small Go driver that runs the same harness and prints the same figures.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The driver's source, beside this crate's.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/etcd/main.go");
/// Where Debian's golang-etcd-server-dev puts etcd's sources.
const GOPATH: &str = "/usr/share/gocode";

/// Why the driver cannot be built on this machine.
pub fn missing() -> Option<&'static str> {
    let go = Command::new("go").arg("version").output();
    if !go.is_ok_and(|output| output.status.success()) {
        return Some("no `go` command here");
    }
    let package = Path::new(GOPATH).join("src/go.etcd.io/etcd/wal");
    (!package.is_dir()).then_some("etcd's sources (golang-etcd-server-dev) are not installed")
}

/// Builds the driver into `dir` and returns its path. The first build compiles etcd's packages, which
/// takes a minute; the Go cache keeps them.
pub fn build(dir: &Path) -> PathBuf {
    let driver = dir.join("etcd-driver");
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&driver)
        .arg(SOURCE)
        .env("GO111MODULE", "off")
        .env("GOPATH", GOPATH)
        .status()
        .expect("start go build");
    assert!(status.success(), "the etcd driver does not build");
    driver
}
