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

/// Where a replay begins, and what it has to come by.
struct Begin {
    tree: DataTree,
    with: Option<Zxid>,
    /// Ends and digests of the later snapshots, oldest first.
    later: Vec<(Zxid, u64)>,
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
    let Some(begin) = load_all(snapshots, ends, floor, &snapshots_folder, &mut findings, progress)? else {
        return Ok((None, findings));
    };
    let Begin { mut tree, with: began_with, later } = begin;
    let (view, _) = LogOptions::new().view_on(log.disk())?;
    let mut damage = |error: &Error| findings.push(Finding::of_error(Severity::Damage, &log_folder, error));
    let (mut txns, mut failures, mut compared) = (0, 0, Vec::new());
    let stops = later.into_iter().map(|(end, digest)| (end, Some(digest)));
    for (end, digest) in stops.chain([(Zxid::MAX, None)]) {
        match replay(&view, &mut tree, end) {
            Ok(replayed) => {
                txns += replayed.txns;
                failures += replayed.failures;
            }
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => {
                damage(&error);
                break;
            }
        }
        let Some(digest) = digest else { continue };
        let found = tree.digest();
        compared.push((end, found == digest));
        if found != digest {
            let what = format!(
                "the log, replayed up to {end}, makes a tree of digest {found:#x}; the snapshot there has {digest:#x}"
            );
            damage(&Error::corrupt("replay_digest", what));
        }
    }
    if failures > 0 {
        let what = format!("{failures} txns of the log could not be done on the tree before them");
        damage(&Error::corrupt("replay_failed", what));
    }
    let (last_zxid, digest) = (tree.last_zxid(), tree.digest());
    Ok((Some(ReplayReport { began_with, txns, failures, last_zxid, digest, compared }), findings))
}

/// Loads all of them, since loading alone checks that their own digests hold, and keeps the tree of the first. None if
/// there is nothing to begin with.
fn load_all(
    snapshots: &SnapshotDirectory,
    ends: &[Zxid],
    floor: Zxid,
    folder: &str,
    findings: &mut Vec<Finding>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Begin>> {
    let (mut first, mut later) = (None, Vec::new());
    for end in ends {
        match snapshots.load(*end, progress) {
            Ok((tree, _)) if first.is_none() => first = Some(tree),
            Ok((_, info)) => later.push((*end, info.digest)),
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => findings.push(Finding::of_error(Severity::Damage, folder, &error)),
        }
    }
    Ok(match first {
        Some(tree) => Some(Begin { with: Some(tree.last_zxid()), tree, later }),
        None if floor == Zxid::ZERO => Some(Begin { with: None, tree: DataTree::new(), later }),
        None => None,
    })
}
