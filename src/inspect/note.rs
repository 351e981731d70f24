use std::fmt;

/// Something odd in the directory that takes nothing from the log: it opens, and all its bytes are well.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Note {
    /// The file's name.
    pub file: String,
    /// A stable word for what is odd, the anchor of its paragraph in `docs/RECOVERY.md`.
    pub code: &'static str,
    /// Where in the file it begins.
    pub offset: u64,
    /// How many bytes it concerns.
    pub bytes: u64,
    /// What it is, and what the next open does with it.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {} [{}]", self.file, self.offset, self.message, self.code)
    }
}
