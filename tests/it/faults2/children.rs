//! Processes to be killed, or to be measured alone: this very binary, running one of the tests below. Started
//! without their directory, they do nothing.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use arborlog::{AppendTicket, BackendChoice, Epoch, GroupPolicy, Log, LogOptions, WriteMode};

use super::support::{now, pause, put_range, small, t};

const DIR: &str = "ARBORLOG_TEST_CHILD_DIR";
const BACKEND: &str = "ARBORLOG_TEST_CHILD_BACKEND";
const UNSYNCED: &str = "ARBORLOG_TEST_CHILD_UNSYNCED";

/// A process that runs the test `name` of this file.
pub(super) struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Process {
    pub(super) fn start(name: &str, dir: &Path, backend: BackendChoice, unsynced: bool) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        let test = format!("faults2::children::{name}");
        command.args(["--exact", &test, "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(DIR, dir).env(BACKEND, format!("{backend:?}"));
        if unsynced {
            command.env(UNSYNCED, "1");
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a child process");
        let out = BufReader::new(child.stdout.take().expect("its output"));
        Process { child, out }
    }

    /// The rest of the next line that has the word `tag`, and none at the end of the output.
    pub(super) fn next(&mut self, tag: &str) -> Option<String> {
        loop {
            let mut line = String::new();
            self.out.read_line(&mut line).expect("output that is text");
            if line.is_empty() {
                return None;
            }
            // A line without an end was cut off by the kill.
            if let Some((_, rest)) = line.trim_end_matches('\n').split_once(tag)
                && line.ends_with('\n')
            {
                return Some(rest.trim().to_owned());
            }
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and its end. That may be before the kernel has taken down all that it had, such as a ring.
    pub(super) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child to wait for");
    }

    pub(super) fn succeeded(mut self) -> bool {
        while self.next("\u{0}").is_some() {}
        self.child.wait().expect("a child to wait for").success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The directory, if this is a child.
fn dir() -> Option<PathBuf> {
    std::env::var_os(DIR).map(PathBuf::from)
}

fn options() -> LogOptions {
    let backend = match std::env::var(BACKEND).as_deref() {
        Ok("IoUring") => BackendChoice::IoUring,
        Ok("Auto") => BackendChoice::Auto,
        _ => BackendChoice::Threads,
    };
    // With one group in flight `Auto` asks for no ring.
    let groups = if backend == BackendChoice::Auto { 2 } else { 1 };
    let mode = if std::env::var_os(UNSYNCED).is_some() { WriteMode::Unsynced } else { WriteMode::default() };
    small().backend(backend).group(GroupPolicy::new().in_flight_max(groups)).write_mode(mode)
}

fn open(dir: &Path) -> Log {
    let (log, _) = options().open(dir).expect("the directory is free");
    log.advance_epoch(Epoch::new(1)).expect("a healthy disk");
    log
}

#[test]
#[ignore = "the body of a child process"]
fn appends_until_it_is_killed() {
    let Some(dir) = dir() else { return };
    let log = open(&dir);
    println!("open");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let zxid = log.append_next(Epoch::new(1), 0, b"x").and_then(AppendTicket::wait);
                    println!("acked {}", zxid.expect("a healthy disk").counter());
                }
            });
        }
    });
}

#[test]
#[ignore = "the body of a child process"]
fn holds_the_log_until_it_is_killed() {
    let Some(dir) = dir() else { return };
    let _log = open(&dir);
    println!("open");
    pause(Duration::from_secs(60));
}

#[test]
#[ignore = "the body of a child process"]
fn tries_to_open() {
    let Some(dir) = dir() else { return };
    match options().open(&dir) {
        Ok(_) => println!("outcome opened"),
        Err(error) => println!("outcome {:?} {error}", error.kind()),
    }
}

/// Opens, failed opens, rolls and readers: no descriptor and no thread is left.
#[test]
#[ignore = "the body of a child process"]
fn leaves_nothing_behind() {
    let Some(dir) = dir() else { return };
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).expect("procfs").count();
    let mut next = 1;
    let mut round = |broken: bool| {
        let log = open(&dir);
        put_range(&log, next..next + 30);
        next += 30;
        for _ in 0..30 {
            log.reader(log.floor_zxid()).and_then(|mut r| r.next_record().map(|_| ())).expect("a reader");
        }
        let _refused = options().open(&dir).expect_err("it is open");
        log.purge(t(next), &arborlog::Retention::new()).expect("a purge");
        if broken {
            drop(log)
        } else {
            log.close().expect("a close")
        }
        let manifest = dir.join("log.manifest");
        let bytes = std::fs::read(&manifest).expect("the manifest");
        std::fs::write(&manifest, b"no manifest").expect("a write");
        for _ in 0..10 {
            options().open(&dir).expect_err("no manifest");
            options().open_read_only(&dir).expect_err("no manifest");
        }
        std::fs::write(&manifest, bytes).expect("a write");
    };
    round(true);
    let before = (count("fd"), count("task"));
    for n in 0..40 {
        round(n % 2 == 0);
    }
    let after = (count("fd"), count("task"));
    // Workers of the kernel come and go as threads of ours.
    println!("outcome {before:?} {after:?} {}", after.0 <= before.0 && after.1 <= before.1);
}

/// What an idle log costs, and what one costs that has failed for good, in CPU time of two seconds.
#[test]
#[ignore = "the body of a child process"]
#[cfg(feature = "sim")]
fn rests() {
    use arborlog::sim::{Effect, Fault, FaultOp, SimDisk};

    let Some(dir) = dir() else { return };
    let used = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).expect("below a second"))
    };
    let measure = |what: &str| {
        pause(Duration::from_millis(300));
        let (before, start) = (used(), now());
        pause(Duration::from_secs(2));
        let permille = used().saturating_sub(before).as_micros() * 1000 / start.elapsed().as_micros();
        println!("outcome {what} {permille}");
    };
    let log = open(&dir);
    put_range(&log, 1..=20);
    measure("idle");
    drop(log);
    let disk = SimDisk::new(1);
    let (log, _) = options().open_sim(&disk).expect("a healthy disk");
    log.advance_epoch(Epoch::new(1)).expect("a healthy disk");
    disk.inject(Fault::next(FaultOp::Write, Effect::EIO).times(u64::MAX));
    disk.inject(Fault::next(FaultOp::Create, Effect::EIO).times(u64::MAX));
    log.append_next(Epoch::new(1), 0, b"x").and_then(AppendTicket::wait).expect_err("a broken disk");
    measure("failed");
    // A disk on which no segment can be made, with somebody who asks for one again and again.
    let disk = SimDisk::new(1);
    let (log, _) = options().open_sim(&disk).expect("a healthy disk");
    log.advance_epoch(Epoch::new(1)).expect("a healthy disk");
    disk.inject(Fault::next(FaultOp::Create, Effect::EIO).times(u64::MAX));
    while log.append_next(Epoch::new(1), 0, &[0; 4000]).and_then(AppendTicket::wait).is_ok() {}
    measure("without");
}
