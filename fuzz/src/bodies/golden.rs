//! A real log as a start: the golden directory of version 1, which has seals, cuts and a segment being prepared.
//! And the golden txns.

use super::directory::Files;
use super::layout::{PAGE, groups};

macro_rules! golden {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("../../../tests/golden/v1/log/", $name)).as_slice())),*]
    };
}

const FILES: [(&str, &[u8]); 9] = golden![
    "0000000000000001.seg",
    "0000000000000002.seg",
    "0000000000000003.seg",
    "0000000000000004.seg",
    "0000000000000005.seg",
    "0000000000000006.seg",
    "0000000000000008.seg",
    "0000000000000009.seg.tmp",
    "log.manifest",
];

/// All of it.
pub(super) fn directory() -> Files {
    FILES.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect()
}

/// Its manifest.
pub fn golden_manifest() -> &'static [u8] {
    FILES.iter().find(|(name, _)| *name == "log.manifest").expect("a log has a manifest").1
}

/// Its segments by name.
pub fn golden_segments() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.into_iter().filter(|(name, _)| name.ends_with(".seg"))
}

/// The groups of a segment, without its header page and the zeros behind them.
pub fn golden_group_bytes(segment: &[u8]) -> &[u8] {
    let end =
        segment.iter().rposition(|byte| *byte != 0).map_or(PAGE, |last| (last + 1).next_multiple_of(512));
    if groups(segment).is_empty() { &[] } else { &segment[PAGE..end.min(segment.len())] }
}

/// The golden snapshot.
pub fn golden_snapshot() -> &'static [u8] {
    include_bytes!("../../../tests/golden/v1/snapshot.snap")
}

/// The golden txns by name.
pub fn golden_txns() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let text = include_str!("../../../tests/golden/v1/txns.txt");
    text.lines().filter_map(|line| line.split_once(' ')).map(|(name, hex)| {
        let digit = |digit: u8| char::from(digit).to_digit(16).expect("a hexadecimal digit");
        let byte = |pair: &[u8]| u8::try_from(digit(pair[0]) * 16 + digit(pair[1])).expect("two digits");
        (name, hex.as_bytes().chunks_exact(2).map(byte).collect())
    })
}
