use std::fmt;

use super::Progress;
use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::format::snapshot::snapshot_name;
use crate::snapshot::{Checking, Reading, SnapshotFile, SnapshotInfo};

/// A stretch of a snapshot that is not what was written.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SnapshotDamage {
    /// The file's name.
    pub file: String,
    /// A stable word for what is wrong, the anchor of its paragraph in `docs/RECOVERY.md`.
    pub code: &'static str,
    /// Where it begins.
    pub offset: u64,
    /// Where what is whole begins again; none if that is not known.
    pub end_offset: Option<u64>,
    /// What it is.
    pub message: String,
}

impl fmt::Display for SnapshotDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file, self.offset, self.message)?;
        if let Some(end) = self.end_offset {
            write!(f, ", whole again from byte {end} on")?;
        }
        write!(f, " [{}]", self.code)
    }
}

/// A snapshot's file, read from end to end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SnapshotExamination {
    /// Its name.
    pub file: String,
    /// The zxid of the name.
    pub end: Zxid,
    /// What it says of itself; none if its header, trailer or index do not hold, and nothing else could be read then.
    pub info: Option<SnapshotInfo>,
    /// All that is damaged in it.
    pub damages: Vec<SnapshotDamage>,
    /// The first damage, or why a newer version is needed to read it.
    pub error: Option<Error>,
}

impl SnapshotExamination {
    pub(super) fn unreadable(end: Zxid, error: Error) -> SnapshotExamination {
        let file = snapshot_name(end);
        let damages =
            if error.kind() == ErrorKind::Corrupt { vec![damage(&error, &file, None)] } else { vec![] };
        SnapshotExamination { file, end, info: None, damages, error: Some(error) }
    }

    /// Whether all of it is as it was written.
    pub fn is_whole(&self) -> bool {
        self.error.is_none()
    }
}

fn damage(error: &Error, file: &str, end_offset: Option<u64>) -> SnapshotDamage {
    SnapshotDamage {
        file: file.to_owned(),
        code: error.code(),
        offset: error.at().offset.unwrap_or(0),
        end_offset,
        message: error.message().to_owned(),
    }
}

/// Reads and checks all blocks, past damage.
pub(super) fn examine(
    file: &SnapshotFile,
    progress: &mut dyn FnMut(Progress),
) -> Result<SnapshotExamination> {
    let info = &file.info;
    let mut found = SnapshotExamination {
        file: info.file.clone(),
        end: info.end,
        info: Some(info.clone()),
        damages: Vec::new(),
        error: None,
    };
    let mut reading = Reading::new(info.start);
    for number in 0..file.blocks.len() {
        let place = file.blocks[number];
        let read = file.block(number).and_then(|(block, body)| {
            reading.block(&block, &body, &mut Checking).map_err(|e| e.at_offset(place.offset))
        });
        found.take(read, Some(place.end()))?;
        progress(Progress { done_bytes: place.end(), total_bytes: info.file_bytes });
    }
    // What was not read was not counted.
    if found.is_whole() {
        found.take(reading.finish(info), None)?;
    }
    Ok(found)
}

impl SnapshotExamination {
    fn take(&mut self, read: Result<()>, end_offset: Option<u64>) -> Result<()> {
        let Err(error) = read else { return Ok(()) };
        match error.kind() {
            ErrorKind::Corrupt => self.damages.push(damage(&error, &self.file, end_offset)),
            ErrorKind::Unsupported => {}
            _ => return Err(error),
        }
        self.error.get_or_insert(error);
        Ok(())
    }
}
