//! What the process ends with: one rule for all commands.

use std::process::ExitCode;

use arborlog::inspect::{EngineExamination, Examination, Verdict};
use arborlog::{Error, ErrorKind};

/// The codes of errors that mean a newer version, and no damage: as kinds, they are `Unsupported`.
const NEWER: [&str; 5] =
    ["manifest_version", "segment_version", "txn_version", "snapshot_version", "engine_manifest_version"];

/// The codes of requests that make sense, of something that is not as it would have to be.
const NAMED: [&str; 5] = ["repair_misfit", "restore_not_empty", "zk_format", "zk_irregular", "zk_no_log"];

/// What the exit code says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// The log is sound, or what was asked for was done. A torn end that nobody was told of counts as sound.
    Clean = 0,
    /// The log as it stands is not one that opens whole: bytes are damaged, files are missing or foreign.
    Damaged = 1,
    /// The request makes no sense.
    Usage = 2,
    /// The disk failed, or the request was refused: the log is in use, is a newer version's, or does not hold
    /// what was asked for.
    Refused = 3,
}

impl Outcome {
    /// Of an error, whichever command met it.
    pub(crate) fn of_error(error: &Error) -> Outcome {
        match error.kind() {
            // The arguments were right; what they name was not.
            ErrorKind::Invalid if NAMED.contains(&error.code()) => Outcome::Refused,
            ErrorKind::Invalid => Outcome::Usage,
            ErrorKind::Corrupt | ErrorKind::WrongOwner => Outcome::Damaged,
            _ => Outcome::Refused,
        }
    }

    /// Of damage that a reader came upon, by its code.
    pub(crate) fn of_damage(code: &str) -> Outcome {
        if NEWER.contains(&code) { Outcome::Refused } else { Outcome::Damaged }
    }

    /// Of a log that was read from end to end.
    pub(crate) fn of_examination(examination: &Examination) -> Outcome {
        match &examination.verdict {
            Verdict::Refused(error) => Outcome::of_error(error),
            // There is nothing to say of it.
            Verdict::NoLog => Outcome::Refused,
            _ if examination.is_sound() => Outcome::Clean,
            _ => Outcome::Damaged,
        }
    }
}

impl Outcome {
    /// Of an engine's directory that was read from end to end.
    pub(crate) fn of_findings(found: &EngineExamination) -> Outcome {
        let mut codes = found.damages().map(|finding| finding.code.unwrap_or_default());
        match codes.next() {
            None => Outcome::Clean,
            Some(first) => codes.fold(Outcome::of_damage(first), |outcome, code| {
                if outcome == Outcome::Damaged { outcome } else { Outcome::of_damage(code) }
            }),
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(outcome as u8)
    }
}
