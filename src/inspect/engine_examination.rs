use super::engine_replay::{ReplayReport, replay_whole};
use super::finding::{Finding, Severity};
use super::{
    EngineDirectory, EngineManifestInfo, EngineManifestState, EngineName, Examination, Progress,
    SnapshotExamination, Verdict,
};
use crate::base::{Error, Result, Zxid};
use crate::engine::Room;
use crate::format::ENGINE_MANIFEST_NAME;
use crate::log::LogOptions;

/// Looks at a directory that seems to change under the eyes.
const LOOKS_MAX: usize = 4;

/// Found in a replay from snapshots that were whole and reached by the log: they or their log were removed since.
const REMOVED: [&str; 2] = ["snapshot_missing", "not_in_log"];

/// How thoroughly a directory is verified.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Depth {
    /// Every byte is read and checked, and that log and snapshots meet. Memory is bounded by the largest group and
    /// block.
    Bytes,
    /// And the log is replayed from the oldest snapshot on: it must make the tree of each later one. Memory is that of
    /// two trees.
    Replay,
}

/// A whole engine's directory, read from end to end and judged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineExamination {
    /// The manifest.
    pub manifest: EngineManifestState,
    /// The generation that was read: the one in use, or the newest if no manifest says which one that is. None of an engine
    /// that was never finished.
    pub generation: Option<u64>,
    /// Its log; none if its directory is not there.
    pub log: Option<Examination>,
    /// What the log reaches, from the last txn before it to its last one; none if it does not open.
    pub log_range: Option<(Zxid, Zxid)>,
    /// Its snapshots, newest first.
    pub snapshots: Vec<SnapshotExamination>,
    /// Temporary files of snapshots, which the next open removes.
    pub temporary: Vec<String>,
    /// The names at the top.
    pub names: Vec<(String, EngineName)>,
    /// What was found, damage first.
    pub findings: Vec<Finding>,
    /// What the replay made; none if it was not asked for, or could not be made.
    pub replay: Option<ReplayReport>,
}

impl EngineExamination {
    /// All that is damaged.
    pub fn damages(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Damage)
    }

    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.damages().next().is_none()
    }
}

impl EngineDirectory {
    /// Reads every byte of the generation in use, and judges how its parts fit. `progress` is called now and then, with
    /// totals of the part at hand.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if something cannot be read. Damage is an answer.
    pub fn examine(&self, depth: Depth, progress: &mut dyn FnMut(Progress)) -> Result<EngineExamination> {
        let mut found = EngineExamination::at(self, progress)?;
        for _ in 1..LOOKS_MAX {
            // A live server purges its log and removes snapshots between two looks; what is lost stays lost.
            if !found.seems_to_move() {
                break;
            }
            let again = EngineExamination::at(self, progress)?;
            let is_settled = again.findings == found.findings;
            found = again;
            if is_settled {
                break;
            }
        }
        if depth == Depth::Replay {
            found.replay(self, progress)?;
        }
        found.findings.sort_by_key(|finding| finding.severity == Severity::Note);
        Ok(found)
    }
}

/// One look.
impl EngineExamination {
    fn at(directory: &EngineDirectory, progress: &mut dyn FnMut(Progress)) -> Result<EngineExamination> {
        let manifest = directory.manifest()?;
        let generations = directory.generations()?;
        let generation = match &manifest {
            EngineManifestState::Present(manifest) => Some(manifest.generation),
            _ => generations.last().copied(),
        };
        let unfinished = match &manifest {
            EngineManifestState::Missing => directory.unfinished()?,
            _ => None,
        };
        let mut looking = EngineExamination {
            manifest,
            generation: if unfinished.is_some() { None } else { generation },
            log: None,
            log_range: None,
            snapshots: Vec::new(),
            temporary: Vec::new(),
            names: directory.names()?,
            findings: Vec::new(),
            replay: None,
        };
        if let Some(error) = unfinished {
            // All that is there is half of one, and goes.
            looking.damage("", &error);
            return Ok(looking);
        }
        looking.judge_manifest();
        looking.judge_names(&generations);
        for name in directory.misplaced()? {
            let what = "a file of the engine belongs here, and this is none";
            looking.damage("", &Error::corrupt("not_a_file", what).in_file(&name));
        }
        if let Some(generation) = generation {
            looking.read_snapshots(directory, generation, progress)?;
            looking.read_log(directory, generation, progress)?;
            looking.judge_seams(&Room::Log.name(generation), &Room::Snapshots.name(generation));
        }
        Ok(looking)
    }

    fn info(&self) -> Option<EngineManifestInfo> {
        match &self.manifest {
            EngineManifestState::Present(manifest) => Some(*manifest),
            _ => None,
        }
    }

    /// Whether a directory that is not there, or empty, is a loss.
    fn is_established(&self) -> bool {
        self.info().is_none_or(|manifest| manifest.established)
    }

    fn damage(&mut self, folder: &str, error: &Error) {
        self.findings.push(Finding::of_error(Severity::Damage, folder, error));
    }

    fn judge_manifest(&mut self) {
        let error = match &self.manifest {
            EngineManifestState::Present(_) => return,
            EngineManifestState::Unreadable(error) => error.clone(),
            EngineManifestState::Missing => {
                let why = "the engine's manifest is missing, but there is a state of a generation";
                Error::corrupt("engine_manifest_missing", why)
            }
        };
        self.damage("", &error.in_file(ENGINE_MANIFEST_NAME));
    }

    /// What stands at the top and is neither in use nor needed.
    fn judge_names(&mut self, generations: &[u64]) {
        let spare = self.info().and_then(|manifest| manifest.spare);
        for generation in generations.iter().filter(|number| Some(**number) != self.generation) {
            let what = if Some(*generation) == spare {
                "a generation that was replaced or never finished; the next open removes it"
            } else {
                "a generation that no manifest names, such as a restore in place keeps; left alone"
            };
            for room in [Room::Log, Room::Snapshots] {
                self.findings.push(Finding::note(&room.name(*generation), what));
            }
        }
        for (name, what) in &self.names {
            let what = match what {
                EngineName::Foreign => "not arborlog's; left alone",
                EngineName::ManifestTemp => {
                    "a manifest that was never finished; the next change of it removes it"
                }
                EngineName::Founding => {
                    "the mark of the import or restore that made the engine; of no use any more"
                }
                _ => continue,
            };
            self.findings.push(Finding::note(name, what));
        }
    }

    fn read_snapshots(
        &mut self,
        directory: &EngineDirectory,
        generation: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let folder = Room::Snapshots.name(generation);
        let Some(snapshots) = directory.snapshots(generation, self.info().as_ref())? else {
            self.missing(Room::Snapshots, generation);
            return Ok(());
        };
        for listing in snapshots.list()? {
            let examined = snapshots.examine(listing.end, progress)?;
            let newer = examined.error.as_ref().filter(|_| examined.damages.is_empty());
            if let Some(error) = newer {
                self.damage(&folder, error);
            }
            let damages = examined.damages.iter();
            self.findings.extend(damages.map(|d| Finding::of_snapshot(Severity::Damage, &folder, d)));
            self.snapshots.push(examined);
        }
        let (temporary, foreign) = snapshots.others()?;
        for name in &temporary {
            let what = "a snapshot that was never finished; the next open removes it";
            self.findings.push(Finding::note(&format!("{folder}/{name}"), what));
        }
        for name in foreign {
            self.findings.push(Finding::note(&format!("{folder}/{name}"), "not arborlog's; left alone"));
        }
        self.temporary = temporary;
        Ok(())
    }

    fn read_log(
        &mut self,
        directory: &EngineDirectory,
        generation: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let folder = Room::Log.name(generation);
        let Some(log) = directory.log(generation)? else {
            self.missing(Room::Log, generation);
            return Ok(());
        };
        let examined = log.examine(progress)?;
        match &examined.verdict {
            Verdict::NoLog if self.is_established() => {
                let why = "the directory holds no log, though there was one";
                self.damage(&folder, &Error::corrupt("log_missing", why));
            }
            Verdict::Refused(error) => {
                // The places below may say the same, more exactly.
                let place = error.at();
                let is_told = examined.damages().any(|damage| {
                    let is_in =
                        |offset| damage.offset <= offset && damage.end_offset.is_none_or(|end| offset < end);
                    Some(&damage.file) == place.file.as_ref() && place.offset.is_none_or(is_in)
                });
                if !is_told {
                    self.damage(&folder, error);
                }
            }
            Verdict::Torn { file, offset, bytes } => {
                let what = format!(
                    "the newest group was torn ({bytes} bytes stand behind the end); nothing behind it proves \
                     that it was acknowledged, and the next open cuts it"
                );
                let mut note = Finding::note(&format!("{folder}/{file}"), &what);
                note.offset = Some(*offset);
                self.findings.push(note);
            }
            Verdict::NoLog | Verdict::Clean | Verdict::Unclean => {}
        }
        self.findings.extend(examined.damages().map(|damage| Finding::of_log(&folder, damage)));
        self.findings.extend(examined.notes.iter().map(|note| Finding::of_note(&folder, note)));
        self.findings.extend(
            examined
                .foreign
                .iter()
                .map(|name| Finding::note(&format!("{folder}/{name}"), "not arborlog's; left alone")),
        );
        // What belongs to two databases does not meet, whatever its numbers say.
        self.log_range = if self.is_ours(&examined, &folder) { examined.range() } else { None };
        self.log = Some(examined);
        Ok(())
    }

    /// Whether the log is this database's. One that was copied in from another is whole by itself.
    fn is_ours(&mut self, log: &Examination, folder: &str) -> bool {
        let super::ManifestState::Present(found) = &log.manifest else { return true };
        let Some(manifest) = self.info().filter(|manifest| manifest.database_id != found.database_id) else {
            return true;
        };
        let (theirs, ours) = (found.database_id, manifest.database_id);
        let why = format!("the log belongs to database {theirs}, not to {ours}");
        self.damage(folder, &Error::corrupt("database_foreign", why));
        false
    }

    fn missing(&mut self, room: Room, generation: u64) {
        let name = room.name(generation);
        if self.is_established() {
            let why = "the directory is missing: is it on a disk that is not mounted, or in another place?";
            self.damage("", &Error::corrupt("generation_missing", why).in_file(&name));
        } else {
            self.findings.push(Finding::note(&name, "not there yet; the next open makes it"));
        }
    }

    /// Whether the log goes on where each snapshot ends.
    fn judge_seams(&mut self, log: &str, snapshots: &str) {
        let Some((floor, last)) = self.log_range else { return };
        let whole: Vec<Zxid> = self.snapshots.iter().filter(|s| s.is_whole()).map(|s| s.end).collect();
        match whole.first() {
            None if floor > Zxid::ZERO => {
                let why =
                    format!("the log begins after {floor}, and there is no whole snapshot to begin with");
                self.damage(snapshots, &Error::corrupt("snapshot_gap", why));
            }
            Some(newest) if *newest < floor => {
                let why =
                    format!("the log begins after {floor}, and the newest whole snapshot ends at {newest}");
                self.damage(log, &Error::corrupt("snapshot_gap", why));
            }
            Some(newest) if *newest > last => {
                let why = format!("the log ends at {last}, before the snapshot's end {newest}");
                self.damage(log, &Error::corrupt("log_behind_snapshot", why));
            }
            _ => {}
        }
        for examined in self.snapshots.iter().filter(|s| s.is_whole()).skip(1).filter(|s| s.end < floor) {
            let what = format!("the log begins after {floor}: it does not lead on from this snapshot");
            self.findings.push(Finding::note(&format!("{snapshots}/{}", examined.file), &what));
        }
    }

    /// Whether what was found may come of a server that is at work.
    fn seems_to_move(&self) -> bool {
        let moving =
            ["snapshot_gap", "log_behind_snapshot", "generation_missing", "log_missing", "snapshot_missing"];
        let is_damage = |finding: &&Finding| finding.severity == Severity::Damage;
        self.findings.iter().filter(is_damage).any(|f| f.code.is_some_and(|code| moving.contains(&code)))
    }

    fn replay(&mut self, directory: &EngineDirectory, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let (Some(generation), Some((floor, last))) = (self.generation, self.log_range) else {
            return Ok(());
        };
        let info = self.info();
        let rooms = (directory.log(generation)?, directory.snapshots(generation, info.as_ref())?);
        let (Some(log), Some(snapshots)) = rooms else { return Ok(()) };
        let mut whole: Vec<Zxid> =
            self.snapshots.iter().rev().filter(|s| s.is_whole() && s.end <= last).map(|s| s.end).collect();
        let folders = (Room::Log.name(generation), Room::Snapshots.name(generation));
        let mut floor = floor;
        for _ in 0..LOOKS_MAX {
            whole.retain(|end| *end >= floor);
            if whole.is_empty() && floor > Zxid::ZERO {
                return Ok(());
            }
            let (report, findings) =
                replay_whole(&log, &snapshots, &whole, floor, folders.clone(), progress)?;
            if !findings.iter().any(|f| f.code.is_some_and(|code| REMOVED.contains(&code))) {
                self.replay = report;
                self.findings.extend(findings);
                return Ok(());
            }
            // What was whole and reached a moment ago has been removed by a live server, which is no damage.
            let there: Vec<Zxid> = snapshots.list()?.into_iter().map(|listing| listing.end).collect();
            whole.retain(|end| there.contains(end));
            floor = LogOptions::new().view_on(log.disk())?.0.floor_zxid();
        }
        let what = "a live server removed snapshots or segments faster than they could be replayed; try again, or \
                    when it is at rest";
        self.findings.push(Finding::note(&folders.0, what));
        Ok(())
    }
}
