use std::path::Path;
use std::sync::Arc;

use super::rebuild::rebuild;
use super::salvage_report::{Loss, ManifestRepair, SalvageReport};
use super::truncate::{Execution, open_for};
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::{
    Cut, MANIFEST_NAME, Manifest, Numbering, aside_name, aside_number, damaged_manifest_name, segment_name,
};
use crate::io::{Disk, OpenMode};
use crate::log::commit::RetiredSegment;
use crate::log::directory::{open_segment, read_manifest, sync_dir, take_lock_unless, write_manifest};
use crate::log::looks::until_believed;
use crate::log::read::{SegmentScan, StopKind, scan_segment};
use crate::log::recover::{Judgement, Refusal, Survey, judge_or_keep, sort_names, survey};
use crate::log::walk::count_records;

/// How to [`salvage`] a log.
#[derive(Clone, Debug)]
pub struct SalvageOptions {
    execution: Execution,
    numbering: Option<Numbering>,
    epoch_min: Epoch,
}

impl Default for SalvageOptions {
    fn default() -> SalvageOptions {
        SalvageOptions { execution: Execution::DryRun, numbering: None, epoch_min: Epoch::ZERO }
    }
}

impl SalvageOptions {
    /// Only tell what would be done.
    pub fn new() -> SalvageOptions {
        SalvageOptions::default()
    }

    /// Whether to do it, or only to tell (the default).
    #[must_use]
    pub fn execution(mut self, execution: Execution) -> SalvageOptions {
        self.execution = execution;
        self
    }

    /// The numbering of a log whose manifest is lost. Needed only where the records leave it open.
    #[must_use]
    pub fn numbering(mut self, numbering: Numbering) -> SalvageOptions {
        self.numbering = Some(numbering);
        self
    }

    /// An epoch that is known to have been promised: with a lost manifest, an epoch without a record is
    /// lost too, and a leader of an older one would not be fenced.
    #[must_use]
    pub fn epoch_min(mut self, epoch: Epoch) -> SalvageOptions {
        self.epoch_min = epoch;
        self
    }
}

/// Makes a damaged log one that opens again, by ending it before the first damage that recovery refuses.
/// The last resort: restore from a peer or a backup first, if there is one (`docs/RECOVERY.md`).
///
/// Acknowledged records behind the damage are no part of the log afterwards; the report names them. Not one
/// byte of a file is changed or removed: the manifest is replaced, and files are renamed. Damage that took no
/// record (a seal, an unused segment) is passed over, and the log goes on behind it. A missing or damaged
/// manifest is made anew from the segments if they all name one database.
///
/// Interrupted at any point, it can be called again.
///
/// # Errors
/// [`ErrorKind::NotInLog`] if there is no log. [`ErrorKind::Corrupt`] if there is nothing to go by.
/// [`ErrorKind::Invalid`] if the numbering has to be told. [`ErrorKind::Unsupported`] and
/// [`ErrorKind::WrongOwner`] as for opening: those are no damage. [`ErrorKind::Locked`], [`ErrorKind::Io`].
pub fn salvage(dir: impl AsRef<Path>, options: &SalvageOptions) -> Result<SalvageReport> {
    let disk = open_for(options.execution, dir.as_ref())?;
    salvage_on(&disk, options)
}

impl SalvageOptions {
    /// The same on a simulated disk.
    ///
    /// # Errors
    /// As [`salvage`].
    #[cfg(any(test, feature = "sim"))]
    pub fn salvage_sim(&self, disk: &crate::sim::SimDisk) -> Result<SalvageReport> {
        salvage_on(&disk.handle(), self)
    }
}

fn salvage_on(disk: &Arc<dyn Disk>, options: &SalvageOptions) -> Result<SalvageReport> {
    if options.execution == Execution::DryRun {
        // Nothing is locked: the log may be in use.
        let plan = until_believed(|| Plan::make(disk, options), |plan| plan.report.damage.as_ref())?;
        return Ok(plan.report);
    }
    let _lock = take_lock_unless(disk.as_ref(), || Plan::make(disk, options).map(drop))?;
    let plan = Plan::make(disk, options)?;
    if plan.report.is_needed() {
        plan.carry_out(disk)?;
    }
    Ok(plan.report)
}

/// What is to be done.
#[derive(Debug)]
struct Plan {
    manifest: Manifest,
    /// What stays, to be made durable first.
    kept: Judgement,
    /// Old and new names, newest segment first.
    renames: Vec<(String, String)>,
    /// Whether the files go before the manifest: where nothing stays, what the new manifest says of them is
    /// that they were purged, and opening removes those.
    files_first: bool,
    report: SalvageReport,
}

impl Plan {
    fn make(disk: &Arc<dyn Disk>, options: &SalvageOptions) -> Result<Plan> {
        let mut found = Found::look(disk, options)?;
        let mut healed = 0;
        let (kept, refusal) = loop {
            match judge_or_keep(&found.survey, &found.manifest) {
                Ok(judged) => break (judged, None),
                Err(refusal) if found.pass_over(disk, &refusal)? => {
                    found.damage.get_or_insert(refusal.error);
                    healed += 1;
                    assert!(healed <= found.survey.segments.len(), "each cut leads to a later segment");
                }
                Err(refusal) => break (refusal.kept.clone(), Some(refusal)),
            }
        };
        found.end(disk, kept, refusal)
    }

    /// Every step may be interrupted: calling [`salvage`] or opening the log leads on from there.
    fn carry_out(&self, disk: &Arc<dyn Disk>) -> Result<()> {
        sync_segments(disk.as_ref(), &self.kept.segments)?;
        if self.files_first {
            self.move_aside(disk.as_ref())?;
        }
        if let ManifestRepair::WasDamaged { kept_as } = &self.report.manifest {
            let wrap = |e| Error::io("keep the damaged manifest", e).in_file(MANIFEST_NAME);
            disk.rename(MANIFEST_NAME, kept_as).map_err(wrap)?;
            sync_dir(disk.as_ref())?;
        }
        write_manifest(disk, &self.manifest)?;
        if self.files_first { Ok(()) } else { self.move_aside(disk.as_ref()) }
    }

    fn move_aside(&self, disk: &dyn Disk) -> Result<()> {
        for (name, aside) in &self.renames {
            disk.rename(name, aside).map_err(|e| Error::io("move a segment aside", e).in_file(name))?;
        }
        sync_dir(disk)
    }
}

/// What stands in the directory, with a manifest to judge it by.
struct Found {
    survey: Survey,
    manifest: Manifest,
    repair: ManifestRepair,
    damage: Option<Error>,
    superseded: Vec<u64>,
    notes: Vec<String>,
}

impl Found {
    fn look(disk: &Arc<dyn Disk>, options: &SalvageOptions) -> Result<Found> {
        let entries = disk.list().map_err(|e| Error::io("list the log's directory", e))?;
        let (damage, repair) = match read_manifest(disk.as_ref()) {
            Ok(Some(manifest)) => {
                let survey = survey(disk)?;
                // What was scanned was scanned by this one; a purge may have come between.
                let manifest = survey.manifest.clone().unwrap_or(manifest);
                let (superseded, notes) = (Vec::new(), Vec::new());
                return Ok(Found {
                    survey,
                    manifest,
                    repair: ManifestRepair::Intact,
                    damage: None,
                    superseded,
                    notes,
                });
            }
            Ok(None) => {
                let lost = Error::corrupt("manifest_missing", "there are segments but no manifest");
                (lost, ManifestRepair::WasMissing)
            }
            Err(error) if error.code() == "manifest_damaged" => {
                let damaged = entries.iter().filter(|e| e.name.starts_with(MANIFEST_NAME));
                let last = damaged.filter_map(|e| aside_number(&e.name)).max().unwrap_or(0);
                (error, ManifestRepair::WasDamaged { kept_as: damaged_manifest_name(last + 1) })
            }
            Err(error) => return Err(error),
        };
        let (mut survey, segments) = sort_names(entries.clone())?;
        if segments.is_empty() && repair == ManifestRepair::WasMissing {
            return Err(Error::new(
                ErrorKind::NotInLog,
                "no_log",
                "there is no log in this directory".into(),
            ));
        }
        let mut rebuilt = rebuild(disk, &entries, &segments, options.numbering)?;
        if rebuilt.scans.values().all(|s| !s.has_groups()) && repair == ManifestRepair::WasMissing {
            return Err(Error::new(
                ErrorKind::NotInLog,
                "no_log",
                "there is no record in this directory".into(),
            ));
        }
        if !rebuilt.numbering_known {
            let why = "the manifest is lost, and the records do not tell how they are numbered: give the numbering, zxid \
                 for a log of ZooKeeper's kind (epoch and counter), index for plain rising numbers";
            return Err(Error::new(ErrorKind::Invalid, "salvage_numbering", why.into()));
        }
        rebuilt.manifest.epoch = rebuilt.manifest.epoch.max(options.epoch_min);
        survey.segments = rebuilt.scans;
        let notes = vec![
            format!(
                "the epoch is {} by the records; if a newer one was promised, give it now",
                rebuilt.manifest.epoch
            ),
            "a truncation or purge after which nothing was written is undone with the lost manifest".into(),
        ];
        let (manifest, superseded) = (rebuilt.manifest, rebuilt.superseded);
        Ok(Found { survey, manifest, repair, damage: Some(damage), superseded, notes })
    }

    /// Whether the log goes on behind the damage without a gap: then it is led around it.
    fn pass_over(&mut self, disk: &Arc<dyn Disk>, refusal: &Refusal) -> Result<bool> {
        let kept = &refusal.kept;
        let Some(last) = kept.segments.last() else { return Ok(false) };
        let seq = last.header.seq;
        let from = self.manifest.cut_of(seq).map_or(seq + 1, |c| c.next_seq);
        let ours = |seq: u64, s: &SegmentScan| s.header.is_ok() && !self.manifest.is_cut_away(seq);
        let mut later = self.survey.segments.range(from..).filter(|(seq, s)| ours(**seq, s));
        let next = later.find(|(_, s)| s.floor_zxid.is_some());
        let Some((next_seq, _)) = next.filter(|(_, s)| s.floor_zxid == Some(kept.last_zxid)) else {
            return Ok(false);
        };
        let cut = Cut { seq, last_zxid: kept.last_zxid, next_seq: *next_seq };
        if self.manifest.cut_of(seq) == Some(cut) {
            return Ok(false);
        }
        self.manifest.cuts.retain(|c| c.seq < seq || c.seq >= cut.next_seq);
        self.manifest.cuts.push(cut);
        self.manifest.cuts.sort_by_key(|c| c.seq);
        let file = open_segment(disk.as_ref(), &segment_name(seq))?;
        let scan = scan_segment(file.as_ref(), seq, self.manifest.database_id, Some(kept.last_zxid))?;
        self.survey.segments.insert(seq, scan);
        Ok(true)
    }

    /// Ends the log with what is kept.
    fn end(mut self, disk: &Arc<dyn Disk>, kept: Judgement, refusal: Option<Box<Refusal>>) -> Result<Plan> {
        if let Some(refusal) = &refusal {
            self.check_is_damage(&refusal.error)?;
        }
        let version = self.manifest.version + 1;
        let mut manifest = Manifest { version, ..self.manifest.clone() };
        let last_zxid = kept.last_zxid;
        let mut was_zxid = last_zxid;
        let mut shortened = None;
        if let Some(refusal) = &refusal {
            let next_seq = self.survey.seq_max + 1;
            was_zxid = refusal.lost_until.max(self.last_seen()).max(last_zxid);
            manifest.durable_zxid = last_zxid;
            manifest.epoch = manifest.epoch.max(kept.epoch);
            manifest.clean = true;
            if let Some(last) = kept.segments.last() {
                let seq = last.header.seq;
                shortened = Some((segment_name(seq), last.end_offset));
                manifest.cuts.retain(|c| c.seq < seq);
                manifest.cuts.push(Cut { seq, last_zxid, next_seq });
            } else {
                manifest.first_seq = next_seq;
                manifest.cuts.clear();
            }
        }
        let going = self.going(&manifest, &kept);
        let files_first = going.iter().any(|seq| *seq < manifest.first_seq);
        let renames: Vec<_> =
            going.iter().rev().map(|seq| (segment_name(*seq), aside_name(*seq, version))).collect();
        let lost = self.losses(disk.as_ref(), &kept, &going, refusal.is_some())?;
        let report = SalvageReport {
            damage: self.damage.take().or(refusal.map(|r| r.error)),
            manifest: self.repair.clone(),
            last_zxid,
            was_zxid,
            lost,
            shortened,
            moved_aside: renames.iter().map(|(_, aside)| aside.clone()).collect(),
            superseded: self.superseded.iter().map(|seq| segment_name(*seq)).collect(),
            notes: self.notes,
        };
        Ok(Plan { manifest, kept, renames, files_first, report })
    }

    /// A newer format is no damage, and neither is a directory in which nothing is this database's.
    fn check_is_damage(&self, error: &Error) -> Result<()> {
        let nothing_ours = !self.survey.segments.values().any(|s| s.header.is_ok());
        match error.kind() {
            ErrorKind::Unsupported => Err(error.clone()),
            ErrorKind::WrongOwner if nothing_ours => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// The segments that are no part of the log by the new manifest and hold something. Of those before its
    /// first one, an old manifest knew that they were purged, a rebuilt one does not.
    fn going(&self, manifest: &Manifest, kept: &Judgement) -> Vec<u64> {
        let rebuilt = self.repair != ManifestRepair::Intact;
        let goes = |seq: u64| {
            let stays = kept.segments.iter().any(|s| s.header.seq == seq);
            let purged = !rebuilt && seq < self.manifest.first_seq;
            let gone =
                manifest.is_cut_away(seq) || seq < manifest.first_seq || self.superseded.contains(&seq);
            !stays && !purged && gone
        };
        let holding = self.survey.segments.iter().filter(|(_, scan)| !scan.is_blank());
        holding.map(|(seq, _)| *seq).filter(|seq| goes(*seq)).collect()
    }

    /// The last record that any segment of the log shows.
    fn last_seen(&self) -> Zxid {
        let ours = self.survey.segments.range(self.manifest.first_seq..);
        let ours = ours.filter(|(seq, _)| !self.manifest.is_cut_away(**seq));
        let last = ours.filter_map(|(_, s)| s.beyond.map(|b| b.last_zxid).max(s.last_zxid)).max();
        last.unwrap_or(Zxid::ZERO)
    }

    fn losses(
        &self,
        disk: &dyn Disk,
        kept: &Judgement,
        going: &[u64],
        ends_early: bool,
    ) -> Result<Vec<Loss>> {
        let mut lost = Vec::new();
        if let Some(last) = kept.segments.last().filter(|_| ends_early)
            && let Some(scan) = self.survey.segments.get(&last.header.seq)
            && !matches!(scan.stop.kind, StopKind::Sealed | StopKind::Limit)
        {
            let known = scan.beyond.map(|b| b.last_zxid).max(scan.stop.bad.map(|b| b.last_zxid));
            let known = known.filter(|known| *known > last.last_zxid);
            lost.push(Loss {
                file: segment_name(last.header.seq),
                first_zxid: known.map(|_| Zxid::new(last.last_zxid.get().saturating_add(1))),
                last_zxid: known,
                readable_records: self.readable(disk, last.header.seq, scan, last.end_offset)?,
                offset: last.end_offset,
                bytes: scan.file_len.saturating_sub(last.end_offset),
            });
        }
        let was_ours = |seq: &&u64| !self.manifest.is_cut_away(**seq) && !self.superseded.contains(*seq);
        for seq in going.iter().filter(was_ours) {
            let scan = &self.survey.segments[seq];
            lost.push(Loss {
                file: segment_name(*seq),
                first_zxid: scan.first_zxid.or(scan.beyond.map(|b| b.first_zxid)),
                last_zxid: scan.beyond.map(|b| b.last_zxid).max(scan.last_zxid),
                readable_records: self.readable(disk, *seq, scan, 0)?,
                offset: 0,
                bytes: scan.file_len,
            });
        }
        Ok(lost)
    }

    /// How many records of the log a reader of this one file finds from byte `from` on, past all damage.
    fn readable(&self, disk: &dyn Disk, seq: u64, scan: &SegmentScan, from: u64) -> Result<u64> {
        let Ok(header) = &scan.header else { return Ok(0) };
        let until = self.manifest.cut_of(seq).map(|c| c.last_zxid);
        count_records(open_segment(disk, &segment_name(seq))?, header, from, until)
    }
}

/// Makes what was read durable before a manifest counts on it: after a crash of the process alone it may
/// have been in a cache only.
fn sync_segments(disk: &dyn Disk, segments: &[RetiredSegment]) -> Result<()> {
    for segment in segments {
        let name = segment_name(segment.header.seq);
        let wrap = |e| Error::io("sync a segment that stays", e).in_file(&name);
        disk.open(&name, OpenMode::Write { direct: false }).and_then(|file| file.sync()).map_err(wrap)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
