use std::fmt;

use crate::base::Zxid;

/// A stretch of a file that should hold valid groups and does not.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DamagedBytes {
    /// The file's name.
    pub file: String,
    /// A stable word for what is wrong, the anchor of its paragraph in `docs/RECOVERY.md`.
    pub code: &'static str,
    /// Where it begins.
    pub offset: u64,
    /// Where the next valid group stands; none if there is none in this file.
    pub end_offset: Option<u64>,
    /// The first record that is lost by it, as far as is known.
    pub first_zxid: Option<Zxid>,
    /// The last record that is lost by it, as far as is known.
    pub last_zxid: Option<Zxid>,
}

impl fmt::Display for DamagedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: damage", self.file, self.offset)?;
        match self.end_offset {
            Some(end) => write!(f, ", valid again from byte {end} on")?,
            None => write!(f, ", nothing valid behind it in this file")?,
        }
        match (self.first_zxid, self.last_zxid) {
            (Some(first), Some(last)) if first == last => write!(f, " (zxid {first})")?,
            (Some(first), Some(last)) => write!(f, " (zxid {first} to {last})")?,
            (Some(first), None) => write!(f, " (zxid {first} and later)")?,
            (None, Some(last)) => write!(f, " (records up to zxid {last})")?,
            (None, None) => write!(f, " (no record is lost by it)")?,
        }
        write!(f, " [{}]", self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_is_lost_as_far_as_it_is_known() {
        for (first, last, text) in [
            (Some(7), Some(7), "(zxid 0x7)"),
            (Some(7), Some(9), "(zxid 0x7 to 0x9)"),
            (Some(7), None, "(zxid 0x7 and later)"),
            (None, Some(9), "(records up to zxid 0x9)"),
            (None, None, "(no record is lost by it)"),
        ] {
            for (end_offset, end) in [
                (Some(8192), "valid again from byte 8192 on"),
                (None, "nothing valid behind it in this file"),
            ] {
                let (first_zxid, last_zxid) = (first.map(Zxid::new), last.map(Zxid::new));
                let (file, code) = ("f.seg".into(), "group_header");
                let damage = DamagedBytes { file, code, offset: 4096, end_offset, first_zxid, last_zxid };
                let expected = format!("f.seg at byte 4096: damage, {end} {text} [group_header]");
                assert_eq!(damage.to_string(), expected);
            }
        }
    }
}
