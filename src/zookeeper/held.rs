//! Whether a snapshot has what the logs tell of the txns up to the zxid in its name.

use super::directory::NamedFile;
use super::read_txn::{Decoded, zxid_of};
use super::recover::Recovery;
use super::report::{Finding, FindingKind};
use crate::base::{Error, Result, Zxid};
use crate::format::TxnBody;
use crate::tree::DataTree;

impl Recovery<'_> {
    /// Holds a snapshot whose own words do not tell of what zxid it is to a txn up to the one in its name. Of an earlier
    /// epoch, a txn may have been undone: a follower keeps in its log what its leader never committed.
    pub(super) fn check_held(&mut self, txn: &Decoded<'_>, base: Zxid) -> Result<()> {
        if txn.zxid.epoch() != base.epoch() {
            return Ok(());
        }
        let ops = txn.ops();
        let shown = txn.shown(&ops);
        let bodies = if ops.is_empty() { std::slice::from_ref(&shown.body) } else { &ops[..] };
        // A multi with an error in it has changed nothing.
        let has_failed = bodies.iter().any(|body| matches!(body, TxnBody::Error { .. }));
        if has_failed || !bodies.iter().any(|body| is_missing(&self.tree, txn.zxid, body)) {
            return Ok(());
        }
        // One is enough.
        self.is_unproven = false;
        let name = self.report.snapshot.as_deref().unwrap_or("the snapshot");
        let why = format!("{name} does not have this txn, and its name tells {base}: it was renamed");
        let error = Error::corrupt("zk_order", why).with_zxids(txn.zxid, txn.zxid);
        self.damage(FindingKind::Renamed, error)
    }

    /// Takes note of logs that end before the snapshot. A server gets there when it is sent its leader's state, and every
    /// leader does when it begins its epoch; but so does whoever loses a log or renames a snapshot.
    pub(super) fn judge_reach(&mut self, base: Zxid, last: Option<Zxid>, older: &[NamedFile]) {
        let last = last.or_else(|| older.iter().rev().find_map(|file| self.last_of(file)));
        let Some(last) = last.filter(|last| *last < base) else { return };
        if base.counter() == 0 && self.newest_told >= last {
            return;
        }
        let what = format!(
            "the logs end at {last}, before the snapshot: well if a leader sent it, else a log is missing or it was renamed"
        );
        let mut finding = Finding::new(FindingKind::LogsBehind, what);
        finding.at.file.clone_from(&self.report.snapshot);
        self.report.findings.push(finding);
    }

    /// Where the entry of a txn that was read stands.
    pub(super) fn place_of(&self, zxid: Zxid) -> Option<(&str, u64)> {
        let file = self.source.logs().iter().rev().find(|file| file.zxid <= zxid)?;
        let mut log = self.source.open_log(&file.name, self.options.length_limit).ok()?;
        while let Ok(Some((offset, payload))) = log.next_payload() {
            if zxid_of(payload) == Some(zxid) {
                return Some((&file.name, offset));
            }
        }
        None
    }

    /// The last zxid of a log; damage of it is of no concern here.
    fn last_of(&self, file: &NamedFile) -> Option<Zxid> {
        let mut log = self.source.open_log(&file.name, self.options.length_limit).ok()?;
        let mut last = None;
        while let Ok(Some((_, payload))) = log.next_payload() {
            last = zxid_of(payload);
        }
        last
    }
}

/// Whether a tree cannot have been through a txn. What a later one has deleted leaves no mark, so a node that is not there
/// tells nothing.
fn is_missing(tree: &DataTree, zxid: Zxid, body: &TxnBody<'_>) -> bool {
    let stat = |path: &str| tree.get(path).map(|node| node.stored());
    match body {
        TxnBody::Create(create) => {
            let parent = create.path.rsplit_once('/').map_or("", |(parent, _)| parent);
            let parent = if parent.is_empty() { "/" } else { parent };
            stat(create.path).is_some_and(|stat| stat.czxid < zxid)
                // A count at its end stands still, and the zxid beside it.
                || stat(parent).is_some_and(|stat| stat.pzxid < zxid && stat.cversion != i32::MAX)
        }
        TxnBody::Delete { path } | TxnBody::DeleteContainer { path } => {
            stat(path).is_some_and(|stat| stat.czxid < zxid)
        }
        TxnBody::SetData { path, .. } => stat(path).is_some_and(|stat| stat.mzxid < zxid),
        _ => false,
    }
}
