use super::finding::{Finding, Severity};
use super::{Directory, Progress, SnapshotDirectory};
use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::engine::replay;
use crate::log::LogOptions;
use crate::tree::DataTree;

/// What a replay of the whole log has made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReplayReport {
    /// The snapshot that it began with; none if it began with an empty tree.
    pub began_with: Option<Zxid>,
    /// How many txns came after it.
    pub txns: u64,
    /// How many of these could not be done, though they were no errors when they were logged.
    pub failures: u64,
    /// The last txn.
    pub last_zxid: Zxid,
    /// The tree's digest there.
    pub digest: u64,
    /// The later snapshots whose trees it has come by, oldest first, and whether it was the same tree.
    pub compared: Vec<(Zxid, bool)>,
}

/// Replays the log from the first of the snapshots `ends` on, all of them whole and reached, oldest first.
pub(super) fn replay_whole(
    log: &Directory,
    snapshots: &SnapshotDirectory,
    ends: &[Zxid],
    floor: Zxid,
    (log_folder, snapshots_folder): (String, String),
    progress: &mut dyn FnMut(Progress),
) -> Result<(Option<ReplayReport>, Vec<Finding>)> {
    let mut findings = Vec::new();
    let mut digests = Vec::new();
    let mut tree = None;
    for end in ends {
        match snapshots.load(*end, progress) {
            // All of them are loaded, since loading alone checks that their own digest holds.
            Ok((loaded, info)) => {
                if tree.is_none() {
                    tree = Some(loaded);
                } else {
                    digests.push((*end, info.digest));
                }
            }
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => findings.push(Finding::of_error(Severity::Damage, &snapshots_folder, &error)),
        }
    }
    let began_with = tree.as_ref().map(DataTree::last_zxid);
    if tree.is_none() && floor > Zxid::ZERO {
        return Ok((None, findings));
    }
    let mut tree = tree.unwrap_or_default();
    let (view, _) = LogOptions::new().view_on(log.disk())?;
    let mut report = ReplayReport {
        began_with,
        txns: 0,
        failures: 0,
        last_zxid: Zxid::ZERO,
        digest: 0,
        compared: Vec::new(),
    };
    let stops = digests.into_iter().map(|(end, digest)| (end, Some(digest)));
    for (end, digest) in stops.chain([(Zxid::MAX, None)]) {
        match replay(&view, &mut tree, end) {
            Ok(replayed) => {
                report.txns += replayed.txns;
                report.failures += replayed.failures;
            }
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => {
                findings.push(Finding::of_error(Severity::Damage, &log_folder, &error));
                break;
            }
        }
        let Some(digest) = digest else { continue };
        let is_same = tree.digest() == digest;
        report.compared.push((end, is_same));
        if !is_same {
            let what = format!(
                "the log, replayed up to {end}, makes a tree of digest {:#x}; the snapshot there has {digest:#x}",
                tree.digest()
            );
            findings.push(Finding::of_error(
                Severity::Damage,
                &log_folder,
                &Error::corrupt("replay_digest", what),
            ));
        }
    }
    if report.failures > 0 {
        let what = format!("{} txns of the log could not be done on the tree before them", report.failures);
        findings.push(Finding::of_error(
            Severity::Damage,
            &log_folder,
            &Error::corrupt("replay_failed", what),
        ));
    }
    (report.last_zxid, report.digest) = (tree.last_zxid(), tree.digest());
    Ok((Some(report), findings))
}
