use std::fmt::Write;

use super::DatabaseId;
use crate::base::checksum::crc32;
use crate::base::{Epoch, Error, ErrorKind, Result};

/// What an engine knows beside its log and its snapshots: the one small file at the top of its directory, replaced in
/// one step at each rare event.
///
/// Text, with a checksum of all other lines in the last one, as the log's manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EngineManifest {
    pub(crate) database_id: DatabaseId,
    /// Counts the manifests of this directory.
    pub(crate) version: u64,
    /// The newest epoch that was promised to a leader: older leaders are refused for ever.
    pub(crate) accepted: Epoch,
    /// Which log and which snapshots are in use: a whole state that was installed or restored begins a new one.
    pub(crate) generation: u64,
    /// A generation that is ours and not in use: it is being built, or was replaced. Zero if there is none.
    pub(crate) spare: u64,
    /// Whether the generation in use was opened once: from then on its log must be there.
    pub(crate) established: bool,
}

const TITLE: &str = "arborlog engine";
const FORMAT: &str = "1";

/// The name of that file.
pub(crate) const ENGINE_MANIFEST_NAME: &str = "engine.manifest";
/// Its name while it is written.
pub(crate) const ENGINE_MANIFEST_TEMP_NAME: &str = "engine.manifest.tmp";

/// More than any such file has.
pub(crate) const ENGINE_MANIFEST_BYTES_MAX: usize = 4096;

impl EngineManifest {
    /// The first manifest of an engine whose state in use was made whole before it: nothing of it is to be created.
    pub(crate) fn of_whole(database_id: DatabaseId, accepted: Epoch, generation: u64) -> EngineManifest {
        EngineManifest { database_id, version: 1, accepted, generation, spare: 0, established: true }
    }

    pub(crate) fn encode(&self) -> String {
        let mut out = String::with_capacity(192);
        let EngineManifest { database_id, version, accepted, generation, spare, established } = self;
        let established = if *established { "yes" } else { "no" };
        write!(
            out,
            "{TITLE} {FORMAT}\ndatabase_id {database_id}\nversion {version}\naccepted_epoch {accepted}\n\
             generation {generation}\nspare {spare}\nestablished {established}\n"
        )
        .expect("writing to a string");
        let crc = crc32(0, out.as_bytes());
        writeln!(out, "crc32 {crc:08x}").expect("writing to a string");
        out
    }

    /// Reads a manifest. The checksum of the whole is verified before any line is believed.
    pub(crate) fn decode(bytes: &[u8]) -> Result<EngineManifest> {
        let damaged = |why: &str| {
            Error::corrupt("engine_manifest_damaged", format!("the engine's manifest is damaged: {why}"))
        };
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
        let body = text.len().checked_sub("crc32 00000000\n".len());
        let (head, last) =
            body.and_then(|at| text.split_at_checked(at)).ok_or_else(|| damaged("it is too short"))?;
        if last != format!("crc32 {:08x}\n", crc32(0, head.as_bytes())) {
            return Err(damaged("its checksum does not match"));
        }
        let mut lines = head.lines();
        let title = lines.next().and_then(|line| line.strip_prefix(TITLE));
        let title = title.ok_or_else(|| damaged("it has no title"))?;
        if title.strip_prefix(' ') != Some(FORMAT) {
            let why = format!("engine manifest format{title} is unknown to this version");
            return Err(Error::new(ErrorKind::Unsupported, "engine_manifest_version", why));
        }
        let manifest = Self::decode_lines(&mut lines).ok_or_else(|| damaged("a line is out of place"))?;
        // What was read, written again, must be what was there.
        if manifest.encode() != text {
            return Err(damaged("its lines contradict each other"));
        }
        Ok(manifest)
    }

    fn decode_lines(lines: &mut std::str::Lines<'_>) -> Option<EngineManifest> {
        let mut field = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        Some(EngineManifest {
            database_id: DatabaseId::parse(field("database_id")?)?,
            version: field("version")?.parse().ok()?,
            accepted: Epoch::new(field("accepted_epoch")?.parse().ok()?),
            generation: field("generation")?.parse().ok()?,
            spare: field("spare")?.parse().ok()?,
            established: field("established")? == "yes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    #[test]
    fn round_trips_and_refuses_every_change() {
        let database_id = DatabaseId::random(&mut Random::from_seed(5));
        let manifest = EngineManifest {
            database_id,
            version: 3,
            accepted: Epoch::new(9),
            generation: 2,
            spare: 1,
            established: true,
        };
        let text = manifest.encode();
        assert!(text.len() < ENGINE_MANIFEST_BYTES_MAX);
        assert_eq!(EngineManifest::decode(text.as_bytes()).unwrap(), manifest);
        for at in 0..text.len() {
            let mut bad = text.clone().into_bytes();
            bad[at] ^= 1;
            assert!(EngineManifest::decode(&bad).is_err(), "byte {at}");
            assert!(EngineManifest::decode(&text.as_bytes()[..at]).is_err(), "cut at {at}");
        }
        let signed = |body: &str| format!("{body}crc32 {:08x}\n", crc32(0, body.as_bytes()));
        let body = &text[..text.len() - 15];
        for (from, to) in [("version 3", "version +3"), ("generation 2\n", ""), ("epoch 9", "epoch 09")] {
            let bad = signed(&body.replacen(from, to, 1));
            let error = EngineManifest::decode(bad.as_bytes()).unwrap_err();
            assert_eq!(error.code(), "engine_manifest_damaged", "{to}");
        }
        let newer = signed(&body.replacen("engine 1", "engine 2", 1));
        assert_eq!(EngineManifest::decode(newer.as_bytes()).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
