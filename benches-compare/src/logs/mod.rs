//! The contestants, each behind the same small trait.

#[cfg(feature = "arborlog")]
pub mod arborlog_log;
pub mod etcd;
mod okaywal_log;
mod plain;
mod raft_engine_log;
#[cfg(feature = "rocksdb")]
mod rocksdb_log;

use std::path::Path;

use crate::writer::WriterLoop;

/// A log whose `commit` returns when the record is durable.
pub trait DurableLog: Send + Sync {
    /// Appends one record and waits until it survives a power cut. `writer` is the calling thread's
    /// number, for logs that keep one stream per writer.
    fn commit(&self, writer: usize, record: &[u8]);

    /// Appends many records with one wait, in the cheapest way that the log offers.
    fn commit_batch(&self, writer: usize, records: &[&[u8]]);

    /// Runs a writer that keeps `depth` records in flight. Only for logs with an asynchronous handle.
    fn pipeline(&self, _writer: &mut WriterLoop<'_>, _depth: usize) {
        panic!("this log has no asynchronous handle");
    }
}

/// What a reopened log gave back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records read.
    pub records: u64,
    /// Their payload bytes.
    pub bytes: u64,
}

/// One contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Group leader, one direct dsync write per group into a zeroed file.
    PlainDirect,
    /// Group leader, buffered writes to a growing file and one fdatasync per group.
    PlainBuffered,
    /// The log of `TiKV`.
    RaftEngine,
    /// The okaywal crate.
    Okaywal,
    /// `RocksDB`'s write-ahead log, sync on each write.
    Rocksdb,
    /// etcd's write-ahead log, in Go: a child process of its own.
    Etcd,
    /// The same with an operating system's thread for each writer.
    EtcdThreads,
    /// The project's log.
    Arborlog,
    /// The same without a rest between its opening and the first record: it makes segments ready while they are written.
    ArborlogUnrested,
    /// The project's log with tasks of an async runtime for writers, as goroutines are.
    ArborlogTasks,
}

impl Kind {
    /// All of them, in the order of the table.
    pub const ALL: [Kind; 10] = [
        Kind::Arborlog,
        Kind::ArborlogUnrested,
        Kind::ArborlogTasks,
        Kind::PlainDirect,
        Kind::PlainBuffered,
        Kind::RaftEngine,
        Kind::Okaywal,
        Kind::Rocksdb,
        Kind::EtcdThreads,
        Kind::Etcd,
    ];

    /// The name on the command line and in the table.
    pub fn name(self) -> &'static str {
        match self {
            Kind::PlainDirect => "plain-direct",
            Kind::PlainBuffered => "plain-buffered",
            Kind::RaftEngine => "raft-engine",
            Kind::Okaywal => "okaywal",
            Kind::Rocksdb => "rocksdb",
            Kind::Etcd => "etcd",
            Kind::EtcdThreads => "etcd-threads",
            Kind::Arborlog => "arborlog",
            Kind::ArborlogUnrested => "arborlog-unrested",
            Kind::ArborlogTasks => "arborlog-tasks",
        }
    }

    /// The contestant of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Somebody else's log, as against the plain loops and our own.
    pub fn is_rival(self) -> bool {
        matches!(self, Kind::RaftEngine | Kind::Okaywal | Kind::Rocksdb | Kind::Etcd | Kind::EtcdThreads)
    }

    /// Its writers are tasks of a runtime (goroutines), not threads.
    pub fn has_tasks(self) -> bool {
        matches!(self, Kind::Etcd | Kind::ArborlogTasks)
    }

    /// The same log with other writers or another start: what is measured without them is measured of one of them.
    pub fn is_a_variant(self) -> bool {
        matches!(self, Kind::EtcdThreads | Kind::ArborlogTasks | Kind::ArborlogUnrested)
    }

    /// Measured by the driver in Go.
    pub fn is_in_go(self) -> bool {
        matches!(self, Kind::Etcd | Kind::EtcdThreads)
    }

    /// Starts the moment it is open.
    pub fn is_unrested(self) -> bool {
        self == Kind::ArborlogUnrested
    }

    /// Can keep several records in flight from one thread.
    pub fn has_tickets(self) -> bool {
        self == Kind::Arborlog
    }

    /// Reuses its files, so that what lies on disk at the end is not what was written.
    pub fn recycles(self) -> bool {
        self == Kind::Okaywal
    }

    /// Why this contestant cannot run in this build or on this machine.
    pub fn missing(self) -> Option<&'static str> {
        match self {
            Kind::Arborlog | Kind::ArborlogUnrested | Kind::ArborlogTasks
                if cfg!(not(feature = "arborlog")) =>
            {
                Some("built without the feature `arborlog`")
            }
            Kind::Rocksdb if cfg!(not(feature = "rocksdb")) => Some("built without the feature `rocksdb`"),
            Kind::Etcd | Kind::EtcdThreads => etcd::missing(),
            _ => None,
        }
    }

    /// Opens an empty log in `dir`. `zeroed_bytes` is how much a log that writes to prepared space
    /// should have ready for the run.
    pub fn open(self, dir: &Path, zeroed_bytes: u64) -> Box<dyn DurableLog> {
        match self {
            Kind::PlainDirect => Box::new(plain::PlainLog::direct(dir, zeroed_bytes)),
            Kind::PlainBuffered => Box::new(plain::PlainLog::buffered(dir)),
            Kind::RaftEngine => Box::new(raft_engine_log::RaftEngineLog::open(dir)),
            Kind::Okaywal => Box::new(okaywal_log::OkaywalLog::open(dir)),
            #[cfg(feature = "rocksdb")]
            Kind::Rocksdb => Box::new(rocksdb_log::RocksdbLog::open(dir)),
            #[cfg(feature = "arborlog")]
            Kind::Arborlog | Kind::ArborlogUnrested => Box::new(arborlog_log::ArborlogLog::open(dir)),
            _ => panic!("{} does not run inside this process", self.name()),
        }
    }

    /// Opens an empty log in `dir` that keeps everything, to be filled and read back.
    pub fn open_to_keep(self, dir: &Path) -> Box<dyn DurableLog> {
        match self {
            Kind::Okaywal => Box::new(okaywal_log::OkaywalLog::open_to_keep(dir)),
            _ => self.open(dir, 0),
        }
    }

    /// Reopens the log in `dir` and reads every record.
    pub fn recover(self, dir: &Path) -> Recovered {
        match self {
            Kind::PlainDirect | Kind::PlainBuffered => plain::recover(dir),
            Kind::RaftEngine => raft_engine_log::recover(dir),
            Kind::Okaywal => okaywal_log::recover(dir),
            #[cfg(feature = "rocksdb")]
            Kind::Rocksdb => rocksdb_log::recover(dir),
            #[cfg(feature = "arborlog")]
            Kind::Arborlog => arborlog_log::recover(dir),
            _ => panic!("{} does not run inside this process", self.name()),
        }
    }
}
