use std::fmt;

use crate::base::harmless;

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
        let (file, message) = (harmless(&self.file), harmless(&self.message));
        write!(f, "{file} at byte {}: {message} [{}]", self.offset, self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_harm_are_told_on_one_line() {
        let (file, message) = ("a\n\u{1b}[2J".to_owned(), "b\u{202e}".to_owned());
        let note = Note { file, code: "segment_stale", offset: 3, bytes: 1, message };
        assert_eq!(note.to_string(), r"a\n\u{1b}[2J at byte 3: b\u{202e} [segment_stale]");
    }
}
