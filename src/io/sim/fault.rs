//! Faults as typed rules: the nth call of a kind on a kind of file goes wrong in one way.

/// The call that a fault waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FaultOp {
    /// Making a new file.
    Create,
    /// Opening a file that exists.
    Open,
    /// Reading.
    Read,
    /// Writing, directly or through a queue. Counted when the write is handed in.
    Write,
    /// Syncing a file; also the sync that follows a write, but not a write that is itself durable.
    Sync,
    /// Syncing the directory.
    SyncDir,
    /// Renaming; matches by either name.
    Rename,
    /// Giving a file a second name; matches by either.
    Link,
    /// Removing.
    Remove,
    /// Changing a length.
    SetLen,
    /// Reserving blocks.
    Allocate,
    /// Listing the directory.
    List,
    /// Locking the directory.
    Lock,
}

/// Which files a fault waits for. Calls on the directory itself have the empty name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum NamePattern {
    /// All.
    Any,
    /// Those whose name ends so.
    Suffix(String),
    /// The one of this name. An open file keeps the name it was opened by.
    Exact(String),
}

/// How the call goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Effect {
    /// Fails with this `errno` and does nothing. Any call. A sync that fails so leaves its pages dirty.
    Error(i32),
    /// A write of which the first bytes land, un-synced, before it fails.
    ShortThenError {
        /// How many land.
        bytes: u64,
        /// The error then.
        errno: i32,
    },
    /// A sync that fails with `EIO` and drops what it should have written: reads still show the bytes, later
    /// syncs succeed, and a power cut loses them all the same, unless they are written again. For a file or
    /// the directory.
    SyncFailsAndDropsPages,
    /// One bit of a read or a write is flipped.
    FlipBit {
        /// The byte, counted from the start of the transfer, and round if that is shorter.
        offset: u64,
    },
    /// Reports success and does nothing: a write, a sync, a rename, a removal, a change of length.
    LostWrite,
    /// A write that lands elsewhere in its file.
    MisdirectedWrite {
        /// Where.
        to_offset: u64,
    },
    /// A read that does not show the file's last write.
    StaleRead,
    /// A write through a queue that does not end before [`SimDisk::release_stalled`](super::SimDisk::release_stalled)
    /// lets it, or power is cut. Whoever waits for it is blocked, so it is for tests with real threads.
    Stall,
    /// The kernel moves 1 to 7 bytes at a time. The backend finishes the transfer, so the caller sees nothing.
    Interrupted,
}

impl Effect {
    /// `EIO`: the medium failed.
    pub const EIO: Effect = Effect::Error(rustix::io::Errno::IO.raw_os_error());
    /// `ENOSPC`: the disk is full.
    pub const ENOSPC: Effect = Effect::Error(rustix::io::Errno::NOSPC.raw_os_error());

    /// Whether a call of kind `op` can go wrong so.
    pub fn fits(self, op: FaultOp) -> bool {
        use FaultOp::{Allocate, Read, Remove, Rename, SetLen, Sync, SyncDir, Write};
        match self {
            Effect::Error(_) => true,
            Effect::ShortThenError { .. } | Effect::MisdirectedWrite { .. } | Effect::Stall => op == Write,
            Effect::SyncFailsAndDropsPages => matches!(op, Sync | SyncDir),
            Effect::FlipBit { .. } | Effect::Interrupted => matches!(op, Read | Write),
            Effect::LostWrite => {
                matches!(op, Write | Sync | SyncDir | Rename | Remove | SetLen | Allocate)
            }
            Effect::StaleRead => op == Read,
        }
    }
}

/// A rule: calls that match are counted from the rule's installation; the `nth` and the following ones,
/// `times` in all, go wrong. Of several rules that hit one call, the one installed first has its effect.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fault {
    /// The kind of call.
    pub op: FaultOp,
    /// The files.
    pub name: NamePattern,
    /// Which matching call is the first to go wrong; 1 is the next.
    pub nth: u64,
    /// How many go wrong from there; `u64::MAX` for all.
    pub times: u64,
    /// How.
    pub effect: Effect,
}

impl Fault {
    /// The next call of kind `op`, on any file, goes wrong once.
    pub fn next(op: FaultOp, effect: Effect) -> Fault {
        Fault { op, name: NamePattern::Any, nth: 1, times: 1, effect }
    }

    /// The same on the files that `name` matches.
    #[must_use]
    pub fn on(self, name: NamePattern) -> Fault {
        Fault { name, ..self }
    }

    /// The same beginning with the `nth` matching call.
    #[must_use]
    pub fn nth(self, nth: u64) -> Fault {
        Fault { nth, ..self }
    }

    /// The same for `times` calls.
    #[must_use]
    pub fn times(self, times: u64) -> Fault {
        Fault { times, ..self }
    }
}

impl NamePattern {
    fn matches(&self, name: &str) -> bool {
        match self {
            NamePattern::Any => true,
            NamePattern::Suffix(suffix) => name.ends_with(suffix.as_str()),
            NamePattern::Exact(exact) => name == exact,
        }
    }
}

/// The rules in force.
#[derive(Default)]
pub(super) struct FaultBook {
    rules: Vec<Rule>,
    hits: u64,
}

struct Rule {
    fault: Fault,
    seen: u64,
}

impl FaultBook {
    pub(super) fn install(&mut self, fault: Fault) {
        let Fault { op, effect, nth, .. } = fault;
        assert!(effect.fits(op), "{op:?} cannot go wrong by {effect:?}: the rule would test nothing");
        assert!(nth > 0, "calls are counted from 1");
        self.rules.push(Rule { fault, seen: 0 });
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    pub(super) fn hits(&self) -> u64 {
        self.hits
    }

    /// Counts a call, and says how it goes wrong if it does.
    pub(super) fn strike(&mut self, op: FaultOp, names: &[&str]) -> Option<Effect> {
        let mut struck = None;
        for Rule { fault, seen } in &mut self.rules {
            if fault.op == op && names.iter().any(|name| fault.name.matches(name)) {
                *seen += 1;
                if *seen >= fault.nth && *seen - fault.nth < fault.times {
                    struck = struck.or(Some(fault.effect));
                }
            }
        }
        self.hits += u64::from(struck.is_some());
        struck
    }
}
