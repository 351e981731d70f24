use std::fmt::Write;

use super::DatabaseId;
use crate::base::checksum::crc32;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid, limits};

/// What the identifiers of a log are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Numbering {
    /// ZooKeeper's: the epoch in the high 32 bits, a counter that never starts at zero in the low 32.
    /// The epoch of an append must be the one in its zxid.
    #[default]
    Zxid,
    /// Plain rising numbers, such as a Raft index; the epoch (a Raft term) stands beside them.
    Index,
}

/// The end of a segment that the manifest fixes, because the file itself goes on beyond it or was never sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    pub(crate) seq: u64,
    /// The last record of that segment that counts; what stands behind it is kept but is no part of the log.
    pub(crate) last_zxid: Zxid,
    /// Where the log goes on. Segments between the two were cut away whole.
    pub(crate) next_seq: u64,
}

/// Which files make up the log, and what was known when that was decided: the one small file that is
/// replaced in one step (write, sync, rename, directory sync) at each rare event.
///
/// It is text, so that an operator can read it; but it is as strict as a binary format, and its last line
/// is a checksum of all the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Manifest {
    pub(crate) database_id: DatabaseId,
    /// Counts the manifests of this directory.
    pub(crate) version: u64,
    pub(crate) numbering: Numbering,
    /// The newest epoch that was made durable: older ones are fenced for ever.
    pub(crate) epoch: Epoch,
    /// Known durable when this manifest was written.
    pub(crate) durable_zxid: Zxid,
    /// Whether this manifest was written by a clean close, with everything durable and nothing under way.
    pub(crate) clean: bool,
    /// The oldest segment that belongs to the log.
    pub(crate) first_seq: u64,
    /// The last record before that segment: purged, or zero.
    pub(crate) floor_zxid: Zxid,
    /// In the order of their segments.
    pub(crate) cuts: Vec<Cut>,
}

const TITLE: &str = "arborlog manifest";
const FORMAT: &str = "1";

impl Manifest {
    pub(crate) fn encode(&self) -> String {
        let mut out = String::with_capacity(256 + self.cuts.len() * 48);
        let numbering = match self.numbering {
            Numbering::Zxid => "zxid",
            Numbering::Index => "index",
        };
        let clean = if self.clean { "yes" } else { "no" };
        writeln!(out, "{TITLE} {FORMAT}").expect("writing to a string");
        for (key, value) in [
            ("database_id", self.database_id.to_string()),
            ("version", self.version.to_string()),
            ("numbering", numbering.into()),
            ("epoch", self.epoch.to_string()),
            ("durable_zxid", self.durable_zxid.to_string()),
            ("clean", clean.into()),
            ("first_seq", self.first_seq.to_string()),
            ("floor_zxid", self.floor_zxid.to_string()),
        ] {
            writeln!(out, "{key} {value}").expect("writing to a string");
        }
        for cut in &self.cuts {
            writeln!(out, "cut {} {} {}", cut.seq, cut.last_zxid, cut.next_seq).expect("writing to a string");
        }
        let crc = crc32(0, out.as_bytes());
        writeln!(out, "crc32 {crc:08x}").expect("writing to a string");
        out
    }

    /// Reads a manifest. The checksum of the whole is verified before any line is believed.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Manifest> {
        let damaged =
            |why: &str| Error::corrupt("manifest_damaged", format!("the manifest is damaged: {why}"));
        if bytes.len() as u64 > limits::MANIFEST_BYTES_MAX {
            return Err(damaged("it is too large"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
        let body =
            text.len().checked_sub("crc32 00000000\n".len()).ok_or_else(|| damaged("it is too short"))?;
        let (head, last) =
            text.split_at_checked(body).ok_or_else(|| damaged("its last line is no checksum"))?;
        if last != format!("crc32 {:08x}\n", crc32(0, head.as_bytes())) {
            return Err(damaged("its checksum does not match"));
        }
        let mut lines = head.lines();
        let title =
            lines.next().and_then(|l| l.strip_prefix(TITLE)).ok_or_else(|| damaged("it has no title"))?;
        if title.strip_prefix(' ') != Some(FORMAT) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "manifest_version",
                format!("manifest format{title} is unknown to this version"),
            ));
        }
        let manifest = Manifest::decode_lines(&mut lines).ok_or_else(|| damaged("a line is out of place"))?;
        // What was read, written again, must be what was there: no second spelling, no stray line or blank.
        if manifest.encode() != text || !manifest.is_consistent() {
            return Err(damaged("its lines contradict each other"));
        }
        Ok(manifest)
    }

    fn decode_lines(lines: &mut std::str::Lines<'_>) -> Option<Manifest> {
        let mut field = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        let manifest = Manifest {
            database_id: DatabaseId::parse(field("database_id")?)?,
            version: field("version")?.parse().ok()?,
            numbering: match field("numbering")? {
                "zxid" => Numbering::Zxid,
                "index" => Numbering::Index,
                _ => return None,
            },
            epoch: Epoch::new(field("epoch")?.parse().ok()?),
            durable_zxid: parse_zxid(field("durable_zxid")?)?,
            clean: field("clean")? == "yes",
            first_seq: field("first_seq")?.parse().ok()?,
            floor_zxid: parse_zxid(field("floor_zxid")?)?,
            cuts: lines.map(parse_cut).collect::<Option<_>>()?,
        };
        Some(manifest)
    }

    fn is_consistent(&self) -> bool {
        // Both only count up, by one at a time.
        self.version <= u64::MAX / 2
            && self.first_seq > 0
            && self.first_seq <= limits::SEGMENT_SEQ_MAX
            && self.cuts.iter().all(|c| c.next_seq <= limits::SEGMENT_SEQ_MAX)
            && self.cuts.iter().all(|c| c.seq >= self.first_seq && c.next_seq > c.seq)
            && self.cuts.windows(2).all(|w| w[0].next_seq <= w[1].seq && w[0].last_zxid <= w[1].last_zxid)
    }

    /// The cut that ends segment `seq`, if there is one.
    pub(crate) fn cut_of(&self, seq: u64) -> Option<Cut> {
        self.cuts.binary_search_by_key(&seq, |c| c.seq).ok().map(|i| self.cuts[i])
    }

    /// Whether segment `seq` was cut away whole: it lies between a cut and where the log went on.
    pub(crate) fn is_cut_away(&self, seq: u64) -> bool {
        self.cuts.iter().any(|c| c.seq < seq && seq < c.next_seq)
    }
}

fn parse_zxid(text: &str) -> Option<Zxid> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Zxid::new)
}

fn parse_cut(line: &str) -> Option<Cut> {
    let mut words = line.strip_prefix("cut ")?.split(' ');
    let cut = Cut {
        seq: words.next()?.parse().ok()?,
        last_zxid: parse_zxid(words.next()?)?,
        next_seq: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some(cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    fn sample() -> Manifest {
        Manifest {
            database_id: DatabaseId::random(&mut Random::from_seed(1)),
            version: 9,
            numbering: Numbering::Zxid,
            epoch: Epoch::new(3),
            durable_zxid: Zxid::from_parts(3, 7),
            clean: true,
            first_seq: 2,
            floor_zxid: Zxid::from_parts(1, 9),
            cuts: vec![
                Cut { seq: 2, last_zxid: Zxid::from_parts(2, 1), next_seq: 5 },
                Cut { seq: 5, last_zxid: Zxid::from_parts(2, 1), next_seq: 6 },
            ],
        }
    }

    #[test]
    fn round_trips() {
        assert_eq!(Manifest::decode(sample().encode().as_bytes()).unwrap(), sample());
        assert_eq!(sample().cut_of(5).unwrap().next_seq, 6);
        assert!(sample().is_cut_away(3) && sample().is_cut_away(4) && !sample().is_cut_away(5));
    }

    #[test]
    fn ep_03_every_damage_of_the_manifest_is_refused() {
        let text = sample().encode();
        for at in 0..text.len() {
            let mut bad = text.clone().into_bytes();
            bad[at] ^= 0x01;
            assert!(Manifest::decode(&bad).is_err(), "byte {at}");
            assert!(Manifest::decode(&text.as_bytes()[..at]).is_err(), "cut at {at}");
        }
        for bad in [text.replace('\n', "\r\n"), format!("{text}\n"), format!("{text} "), String::new()] {
            assert_eq!(Manifest::decode(bad.as_bytes()).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }

    #[test]
    fn other_spellings_and_contradictions_are_refused_though_the_checksum_matches() {
        let signed = |body: &str| format!("{body}crc32 {:08x}\n", crc32(0, body.as_bytes()));
        let body = sample().encode();
        let body = &body[..body.len() - 15];
        assert!(Manifest::decode(signed(body).as_bytes()).is_ok());
        for (from, to) in [
            ("epoch 3", "epoch +3"),
            ("epoch 3", "epoch 03"),
            ("epoch 3", "epoch -3"),
            ("clean yes", "clean maybe"),
            ("first_seq 2", "first_seq 0"),
            ("first_seq 2", "first_seq 3"),
            ("cut 2 0x200000001 5", "cut 2 0x200000001 1"),
            ("cut 2 0x200000001 5", "cut 2 0x200000001 5 6"),
            ("version 9\n", ""),
        ] {
            let bad = body.replacen(from, to, 1);
            assert_ne!(bad, body, "{from}");
            assert_eq!(
                Manifest::decode(signed(&bad).as_bytes()).unwrap_err().code(),
                "manifest_damaged",
                "{to}"
            );
        }
        let newer = body.replacen("manifest 1", "manifest 2", 1);
        assert_eq!(Manifest::decode(signed(&newer).as_bytes()).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
