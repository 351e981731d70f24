use std::fmt;

use super::{DamagedBytes, Note, SnapshotDamage};
use crate::base::{Error, Zxid, harmless};

/// What a [`Finding`] means for the engine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Severity {
    /// Bytes of the database have changed, or files are missing or foreign; or a newer version is needed.
    Damage,
    /// Odd, and takes nothing from the database.
    Note,
}

/// Something about an engine's directory that its operator should know.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// What it means.
    pub severity: Severity,
    /// A stable word, the anchor of its paragraph in `docs/RECOVERY.md`; none for what is only told.
    pub code: Option<&'static str>,
    /// The file or directory, relative to the engine's; its manifest if it concerns all of it.
    pub file: String,
    /// Where in the file it begins.
    pub offset: Option<u64>,
    /// Where what is whole begins again.
    pub end_offset: Option<u64>,
    /// The first txn that is lost by it, as far as is known.
    pub first_zxid: Option<Zxid>,
    /// The last one.
    pub last_zxid: Option<Zxid>,
    /// What it is, with all that is known of the place.
    pub message: String,
}

impl Finding {
    /// An error, of something in `folder`.
    pub(super) fn of_error(severity: Severity, folder: &str, error: &Error) -> Finding {
        let place = error.at();
        let name = place.file.as_deref().unwrap_or("");
        Finding {
            severity,
            code: Some(error.code()),
            file: joined(folder, name),
            offset: place.offset,
            end_offset: None,
            first_zxid: place.zxid,
            last_zxid: place.zxid_end,
            message: error.message().to_owned(),
        }
    }

    pub(super) fn of_log(folder: &str, damage: &DamagedBytes) -> Finding {
        Finding {
            severity: Severity::Damage,
            code: Some(damage.code),
            file: joined(folder, &damage.file),
            offset: Some(damage.offset),
            end_offset: damage.end_offset,
            first_zxid: damage.first_zxid,
            last_zxid: damage.last_zxid,
            message: "the bytes are not what was written".to_owned(),
        }
    }

    pub(super) fn of_snapshot(severity: Severity, folder: &str, damage: &SnapshotDamage) -> Finding {
        Finding {
            severity,
            code: Some(damage.code),
            file: joined(folder, &damage.file),
            offset: Some(damage.offset),
            end_offset: damage.end_offset,
            first_zxid: None,
            last_zxid: None,
            message: damage.message.clone(),
        }
    }

    pub(super) fn of_note(folder: &str, note: &Note) -> Finding {
        Finding {
            code: Some(note.code),
            offset: Some(note.offset),
            ..Finding::note(&joined(folder, &note.file), &note.message)
        }
    }

    pub(super) fn note(file: &str, message: &str) -> Finding {
        Finding {
            severity: Severity::Note,
            code: None,
            file: file.to_owned(),
            offset: None,
            end_offset: None,
            first_zxid: None,
            last_zxid: None,
            message: message.to_owned(),
        }
    }
}

fn joined(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", name) => name.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, name) => format!("{folder}/{name}"),
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&harmless(&self.file))?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}", harmless(&self.message))?;
        if let Some(end) = self.end_offset {
            write!(f, ", whole again from byte {end} on")?;
        }
        match (self.first_zxid, self.last_zxid) {
            (Some(first), Some(last)) if first == last => write!(f, " (zxid {first})")?,
            (Some(first), Some(last)) => write!(f, " (zxid {first} to {last})")?,
            (Some(first), None) => write!(f, " (zxid {first} and later)")?,
            (None, Some(last)) => write!(f, " (up to zxid {last})")?,
            (None, None) => {}
        }
        self.code.map_or(Ok(()), |code| write!(f, " [{code}]"))
    }
}
