//! Child processes: one per measurement, so that no log pays for another's threads, memory or cache.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::logs::{Kind, etcd};
use crate::sample::Sample;

/// The programs that measure, and the directory they work in.
#[derive(Debug)]
pub struct Children {
    dir: PathBuf,
    own: PathBuf,
    etcd: Option<PathBuf>,
}

impl Children {
    /// Makes the data directory and builds what has to be built.
    pub fn prepare(dir: &Path, logs: &[Kind]) -> Children {
        std::fs::create_dir_all(dir).expect("create the data directory");
        let dir = dir.canonicalize().expect("resolve the data directory");
        let etcd = logs.iter().any(|kind| kind.is_in_go()).then(|| etcd::build(&dir));
        Children { dir, own: std::env::current_exe().expect("find this program"), etcd }
    }

    /// A new, empty directory of that name.
    pub fn fresh_dir(&self, name: &str) -> PathBuf {
        let dir = self.dir.join(name);
        remove_dir(&dir);
        std::fs::create_dir(&dir).expect("create a directory for a run");
        dir
    }

    /// Runs a mode of the log's own driver in `dir` and reads the figures that it prints.
    pub fn run(&self, kind: Kind, mode: &str, dir: &Path, options: &[(&str, String)]) -> Sample {
        let program =
            if kind.is_in_go() { self.etcd.as_ref().expect("etcd's driver was built") } else { &self.own };
        let mut command = Command::new(program);
        command.arg(mode).args(["--log", kind.name(), "--dir"]).arg(dir);
        for (name, value) in options {
            command.arg(name).arg(value);
        }
        let output = command.stderr(Stdio::inherit()).output().expect("start a child");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{} {mode} failed: {}\n{text}", kind.name(), output.status);
        Sample::from_output(&text)
            .unwrap_or_else(|| panic!("{} {mode} printed no figures:\n{text}", kind.name()))
    }

    /// Removes the data directory.
    pub fn clean_up(self) {
        remove_dir(&self.dir);
    }
}

/// Removes a directory with everything in it, if it is there.
pub fn remove_dir(dir: &Path) {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            panic!("remove {}: {error}", dir.display())
        }
        _ => {}
    }
}
