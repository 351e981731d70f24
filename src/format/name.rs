//! The names of a log's directory. Anything else in there is somebody else's and is left alone.

use std::fmt::Write;

/// Held by the process that has the log open for writing.
pub(crate) const LOCK_NAME: &str = "LOCK";
/// Which segments make up the log.
pub(crate) const MANIFEST_NAME: &str = "log.manifest";
/// The manifest while it is being written.
pub(crate) const MANIFEST_TEMP_NAME: &str = "log.manifest.tmp";
/// What the name of a damaged manifest begins with, once it was put aside; a number follows.
const DAMAGED_PREFIX: &str = "log.manifest.damaged-";
/// Space kept back for the day the disk is full.
pub(crate) const RESERVE_NAME: &str = "log.reserve";

/// What a file's name says it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    Lock,
    Manifest,
    ManifestTemp,
    Reserve,
    /// A segment, by its sequence number.
    Segment(u64),
    /// A segment that is being prepared.
    SegmentTemp(u64),
    /// A segment that was cut away and kept.
    Aside(u64),
    /// A manifest that could not be read, kept by a salvage.
    DamagedManifest,
    /// Not ours.
    Foreign,
}

impl Name {
    /// Strict: `1.seg`, `000000000000000A.seg` or `0000000000000001.seg.bak` are foreign (SG-06).
    pub(crate) fn parse(name: &str) -> Name {
        match name {
            LOCK_NAME => return Name::Lock,
            MANIFEST_NAME => return Name::Manifest,
            MANIFEST_TEMP_NAME => return Name::ManifestTemp,
            RESERVE_NAME => return Name::Reserve,
            _ if name.strip_prefix(DAMAGED_PREFIX).is_some_and(is_number) => return Name::DamagedManifest,
            _ => {}
        }
        let Some((digits, rest)) = name.split_at_checked(16) else { return Name::Foreign };
        if !digits.bytes().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
            return Name::Foreign;
        }
        let Ok(seq) = u64::from_str_radix(digits, 16) else { return Name::Foreign };
        match rest {
            ".seg" if seq > 0 => Name::Segment(seq),
            ".seg.tmp" if seq > 0 => Name::SegmentTemp(seq),
            _ if rest.strip_prefix(".seg.cut-").is_some_and(is_number) => Name::Aside(seq),
            _ => Name::Foreign,
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit())
}

/// The name of the segment with this sequence number.
pub(crate) fn segment_name(seq: u64) -> String {
    format!("{seq:016x}.seg")
}

/// Its name while it is being prepared.
pub(crate) fn segment_temp_name(seq: u64) -> String {
    format!("{seq:016x}.seg.tmp")
}

/// Its name once it was cut away whole, by the manifest of version `by`.
pub(crate) fn aside_name(seq: u64, by: u64) -> String {
    let mut name = segment_name(seq);
    write!(name, ".cut-{by}").expect("writing to a string");
    name
}

/// The name of the `n`th damaged manifest that was put aside.
pub(crate) fn damaged_manifest_name(n: u64) -> String {
    format!("{DAMAGED_PREFIX}{n}")
}

/// The number at the end of an aside's name: the version of the manifest that cut it away, or which damaged
/// manifest it is. None for other names.
pub(crate) fn aside_number(name: &str) -> Option<u64> {
    match Name::parse(name) {
        Name::Aside(_) | Name::DamagedManifest => name.rsplit('-').next()?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for seq in [1, 9, 0xa, 0x10, u64::MAX] {
            assert_eq!(Name::parse(&segment_name(seq)), Name::Segment(seq));
            assert_eq!(Name::parse(&segment_temp_name(seq)), Name::SegmentTemp(seq));
            assert_eq!(Name::parse(&aside_name(seq, 12)), Name::Aside(seq));
            assert_eq!(aside_number(&aside_name(seq, 12)), Some(12));
            assert_eq!(aside_number(&segment_name(seq)), None);
        }
        assert_eq!(Name::parse(&damaged_manifest_name(7)), Name::DamagedManifest);
        assert_eq!(aside_number(&damaged_manifest_name(7)), Some(7));
    }

    #[test]
    fn sg_06_loose_names_are_foreign() {
        for name in [
            "",
            "log.5.bak",
            "log.",
            "log.zz",
            "LOG.7",
            "snapshot.5.tmp",
            ".snapshot.7.swp",
            "1.seg",
            "000000000000000A.seg",
            "0000000000000001.seg.bak",
            "0000000000000001.SEG",
            "0000000000000001.seg ",
            "+000000000000001.seg",
            "00000000000000001.seg",
            "0000000000000000.seg",
            "0000000000000001.seg.cut-",
            "0000000000000001.seg.cut-x",
            "0000000000000001.seg.tmp.tmp",
            "lock",
            "log.manifest.damaged-",
            "log.manifest.damaged-1x",
            "ééééééééééé.seg",
        ] {
            assert_eq!(Name::parse(name), Name::Foreign, "{name}");
        }
    }
}
