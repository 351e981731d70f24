use std::fmt;

use crate::base::{Error, Zxid, counted};

/// What a salvage did, or would do, and exactly what is lost by it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SalvageReport {
    /// What recovery refuses the log for; none if the log is well.
    pub damage: Option<Error>,
    /// What became of the manifest.
    pub manifest: ManifestRepair,
    /// The last record of the log now.
    pub last_zxid: Zxid,
    /// The last record that is known to have been in the log.
    pub was_zxid: Zxid,
    /// What is lost, in the order of the files.
    pub lost: Vec<Loss>,
    /// The segment that ends early now, and where; the bytes behind its end stay in the file.
    pub shortened: Option<(String, u64)>,
    /// The new names of the files that were moved aside. They may be removed by hand.
    pub moved_aside: Vec<String>,
    /// Segments that a later one proves cut away before this damage: no loss of this salvage.
    pub superseded: Vec<String>,
    /// What the one who ordered this should know.
    pub notes: Vec<String>,
}

/// What a salvage did to the manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ManifestRepair {
    /// It was whole.
    Intact,
    /// It was missing, and was made anew from the segments.
    WasMissing,
    /// It was damaged, is kept under this name, and was made anew from the segments.
    WasDamaged {
        /// The name of the damaged one.
        kept_as: String,
    },
}

/// Bytes of one file that are no part of the log any more.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The file, by the name it had.
    pub file: String,
    /// The first record that is lost with it, as far as is known.
    pub first_zxid: Option<Zxid>,
    /// The last record that is lost with it, as far as is known.
    pub last_zxid: Option<Zxid>,
    /// Records among them that can still be read from the file, past the damage: what `dump --file` finds from
    /// that byte on. A file that was moved aside has a new name.
    pub readable_records: u64,
    /// From where in the file.
    pub offset: u64,
    /// How many bytes, padding and unused room included.
    pub bytes: u64,
}

impl SalvageReport {
    /// Whether there is anything to repair.
    pub fn is_needed(&self) -> bool {
        self.damage.is_some()
    }
}

impl fmt::Display for SalvageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(damage) = &self.damage else {
            return write!(f, "the log is not damaged: its last record is {}", self.last_zxid);
        };
        writeln!(f, "damage: {damage}")?;
        match &self.manifest {
            ManifestRepair::Intact => {}
            ManifestRepair::WasMissing => writeln!(f, "manifest: missing, made anew from the segments")?,
            ManifestRepair::WasDamaged { kept_as } => {
                writeln!(f, "manifest: damaged, kept as {kept_as}, made anew from the segments")?;
            }
        }
        writeln!(f, "the log ends with zxid {}", self.last_zxid)?;
        if self.was_zxid > self.last_zxid {
            let first = Zxid::new(self.last_zxid.get() + 1);
            writeln!(f, "lost: zxid {first} to {}", self.was_zxid)?;
        } else {
            writeln!(f, "lost: no record that is known of")?;
        }
        for loss in &self.lost {
            write!(f, "  {} from byte {}: {}", loss.file, loss.offset, counted(loss.bytes, "byte"))?;
            if let (Some(first), Some(last)) = (loss.first_zxid, loss.last_zxid) {
                write!(f, ", zxid {first} to {last}")?;
            }
            writeln!(f, ", {} still readable in the file", counted(loss.readable_records, "record"))?;
        }
        if let Some((file, offset)) = &self.shortened {
            writeln!(f, "ends early: {file} at byte {offset}; what stands behind stays in the file")?;
        }
        for (word, names) in [("moved aside", &self.moved_aside), ("cut away before", &self.superseded)] {
            names.iter().try_for_each(|name| writeln!(f, "{word}: {name}"))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}
