use super::change::{Change, Observer};
use super::data_tree::{DataTree, NewNode};
use super::digest::{content_crc, node_digest};
use super::family::Raise;
use super::lookup::Spot;
use super::owner::Owner;
use super::path;
use super::store::{Node, NodeId, Packed, len_of};
use super::stored_stat::StoredStat;
use super::warm::{AHEAD, Hint, Use};
use crate::base::{Code, Zxid};
use crate::format::{Create, CreateKind, Stat, Txn, TxnBody};

/// What became of an applied txn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Done; there is nothing to tell.
    Done,
    /// Done; the node is now like this.
    Stat(Stat),
    /// Nothing was changed: the txn is an error, or the tree has what it does already.
    Failed(Code),
    /// The outcomes of a multi's operations, in order.
    Multi(Vec<Outcome>),
}

impl Outcome {
    /// The first error, or [`Code::OK`].
    pub fn code(&self) -> Code {
        match self {
            Outcome::Done | Outcome::Stat(_) => Code::OK,
            Outcome::Failed(code) => *code,
            Outcome::Multi(outcomes) => {
                outcomes.iter().map(Outcome::code).find(|code| !code.is_ok()).unwrap_or(Code::OK)
            }
        }
    }

    fn of(result: Result<Outcome, Code>) -> Outcome {
        result.unwrap_or_else(Outcome::Failed)
    }
}

/// What all operations of a txn share.
#[derive(Clone, Copy)]
struct Context<'p> {
    zxid: Zxid,
    time_ms: i64,
    session_id: i64,
    /// Where the node is that the txn is about, if that was found already.
    spot: Option<Spot<'p>>,
    /// The node itself, if that was found too.
    id: Option<NodeId>,
}

impl DataTree {
    /// Applies a txn: in a live server, on a learner, and in replay. Of a txn whose effect the tree has already,
    /// nothing is done twice: versions and zxids in it are absolute.
    ///
    /// A txn never fails for what it is: a server has checked it before it was logged. What cannot be done (a node
    /// without its parent, in the replay of a fuzzy range) is left out, and told in the outcome.
    ///
    /// Source: ZooKeeper's `DataTree.processTxn`. Deviations: decision 0006.
    pub fn apply(&mut self, txn: &Txn<'_>, observer: &mut impl Observer) -> Outcome {
        self.apply_hinted(txn, None, observer)
    }

    /// Applies txns one after the other, and tells each one's outcome. Faster: what they touch is fetched from memory
    /// together.
    pub(crate) fn apply_together(
        &mut self,
        txns: &[Txn<'_>],
        observer: &mut impl Observer,
        mut tell: impl FnMut(&Txn<'_>, Outcome),
    ) {
        for txns in txns.chunks(AHEAD) {
            let hints = self.warm_for(txns);
            for (txn, hint) in txns.iter().zip(hints) {
                tell(txn, self.apply_hinted(txn, hint, observer));
            }
        }
    }

    /// The same, with what was found on the way to its node, if it has one.
    pub(crate) fn apply_hinted(
        &mut self,
        txn: &Txn<'_>,
        hint: Option<Hint<'_>>,
        observer: &mut impl Observer,
    ) -> Outcome {
        observer.begins(txn.zxid);
        let Txn { zxid, time_ms, session_id, .. } = *txn;
        let context = Context { zxid, time_ms, session_id, spot: self.hinted(hint), id: self.found_by(hint) };
        let outcome = match &txn.body {
            TxnBody::Multi(ops) => {
                // One error, and nothing is applied.
                let failed = ops.iter().position(|op| matches!(op, TxnBody::Error { .. }));
                let outcomes = ops.iter().enumerate().map(|(at, op)| match (op, failed) {
                    (TxnBody::Error { code }, _) => Outcome::Failed(code),
                    (_, Some(failed)) if at > failed => Outcome::Failed(Code::RUNTIME_INCONSISTENCY),
                    (_, Some(_)) => Outcome::Done,
                    (op, None) => self.apply_one(&op, context, observer),
                });
                Outcome::Multi(outcomes.collect())
            }
            body => self.apply_one(body, context, observer),
        };
        // Last of all: whoever sees this zxid sees all of its effect.
        self.last_zxid = self.last_zxid.max(txn.zxid);
        outcome
    }

    fn apply_one(
        &mut self,
        body: &TxnBody<'_>,
        context: Context<'_>,
        observer: &mut impl Observer,
    ) -> Outcome {
        match *body {
            TxnBody::Create(ref create) => Outcome::of(self.apply_create(create, context, observer)),
            TxnBody::Delete { path } | TxnBody::DeleteContainer { path } => {
                Outcome::of(self.apply_delete(path, context, observer).map(|()| Outcome::Done))
            }
            TxnBody::DeleteAll { paths } => {
                self.apply_deletes(paths.iter(), context, observer);
                Outcome::Done
            }
            TxnBody::SetData { path, data, version } | TxnBody::Reconfig { path, data, version } => {
                Outcome::of(self.apply_set_data(path, data, version, context, observer))
            }
            TxnBody::SetAcl { path, acl, version } => {
                let Some(id) = self.find(path) else { return Outcome::Failed(Code::NO_NODE) };
                self.change(id, path, |tree, id| {
                    tree.set_acl(id, acl);
                    tree.set_rare(id, |rare| rare.aversion = version);
                });
                observer.changed(Change::AclSet { path });
                Outcome::Stat(self.stat(id))
            }
            TxnBody::Check { .. } => Outcome::Done,
            TxnBody::CreateSession { timeout_ms } => {
                self.sessions.create(context.session_id, timeout_ms);
                observer.changed(Change::SessionCreated { id: context.session_id });
                Outcome::Done
            }
            TxnBody::CloseSession { paths } => {
                if let Some(paths) = paths {
                    self.apply_deletes(paths.iter(), context, observer);
                }
                let unlisted = self.ephemeral_paths(context.session_id);
                self.apply_deletes(unlisted.iter().map(String::as_str), context, observer);
                if self.sessions.close(context.session_id) {
                    observer.changed(Change::SessionClosed { id: context.session_id });
                }
                Outcome::Done
            }
            TxnBody::Error { code } => Outcome::Failed(code),
            // A multi inside a multi is refused where txns are read.
            TxnBody::Multi(_) => Outcome::Failed(Code::BAD_ARGUMENTS),
        }
    }

    fn apply_create(
        &mut self,
        create: &Create<'_>,
        context: Context<'_>,
        observer: &mut impl Observer,
    ) -> Result<Outcome, Code> {
        let spot = match context.spot {
            Some(spot) => spot,
            None if create.path == path::ROOT => return Err(Code::NODE_EXISTS),
            None => self.warmed_spot(create.path, Use::Add)?,
        };
        let crc = content_crc(create.path, create.data);
        let zxid = context.zxid;
        let raise =
            Raise { cversion: create.parent_cversion, zxid, in_digest: spot.parent_in_digest(create.path) };
        if let Some(id) = self.at_spot(&spot) {
            // In a replay: this creation, or a later one. What it has done to the parent may be missing still.
            self.set_acl(id, create.acl);
            self.change_family(spot.parent, raise.in_digest, |family| raise.raise(family));
            return Err(Code::NODE_EXISTS);
        }
        let owner = match create.kind {
            CreateKind::Plain { ephemeral: true } | CreateKind::WithStat { ephemeral: true } => {
                Owner::Session(context.session_id)
            }
            CreateKind::Plain { ephemeral: false } | CreateKind::WithStat { ephemeral: false } => {
                Owner::Persistent
            }
            CreateKind::Container => Owner::Container,
            CreateKind::Ttl { ttl_ms } => Owner::Ttl { ttl_ms },
        };
        let stat = StoredStat::created(zxid, context.time_ms, owner);
        let digest = node_digest(crc, &stat);
        let node = NewNode { path: create.path, data: create.data, acl: create.acl, stat: &stat, digest };
        let id = self.plant_at(&spot, &node, Some(&raise)).ok_or(Code::QUOTA_EXCEEDED)?;
        observer.changed(Change::Created { path: create.path });
        Ok(Outcome::Stat(stat.shown(0, self.shown_bytes(id, len_of(create.data)))))
    }

    /// Where a node is, with the memory on its way. Not the root.
    fn warmed_spot<'p>(&self, path: &'p str, to: Use) -> Result<Spot<'p>, Code> {
        let at = path::last_slash(path.as_bytes()).unwrap_or(0);
        let (above, rest) = path.as_bytes().split_at(at);
        let (parent, name) = match (self.directory.find(above), rest) {
            // What is listed is a path.
            (Some(parent), [_, name @ ..]) if !name.is_empty() => (parent, name),
            _ => {
                let (parent, name) = path::split(path).ok_or(Code::BAD_ARGUMENTS)?;
                (self.find_parent(parent).ok_or(Code::NO_NODE)?, name.as_bytes())
            }
        };
        let mut spot = self.spot(parent, name);
        self.warm_spot(&mut spot, to);
        Ok(spot)
    }

    /// Deletes what is there of these: one that is gone already is what was wanted.
    fn apply_deletes<'p>(
        &mut self,
        paths: impl Iterator<Item = &'p str>,
        context: Context<'_>,
        observer: &mut impl Observer,
    ) {
        for path in paths {
            let _gone = self.apply_delete(path, context, observer);
        }
    }

    fn apply_delete(
        &mut self,
        path: &str,
        context: Context<'_>,
        observer: &mut impl Observer,
    ) -> Result<(), Code> {
        let (spot, likely) = if let Some(spot) = context.spot {
            (spot, None)
        } else {
            let spot = self.warmed_spot(path, Use::Remove)?;
            // It comes while the parent is changed.
            (spot, self.warm_record(spot.hash))
        };
        // Even if the node is gone: a replay may meet a parent that has not seen it go.
        self.change_family(spot.parent, spot.parent_in_digest(path), |family| {
            family.pzxid = family.pzxid.max(context.zxid);
        });
        let id = self.likely_at(&spot, likely).ok_or(Code::NO_NODE)?;
        // What is below it in the replay of a fuzzy range was created later, and will be again.
        self.uproot(id, &spot, path);
        observer.changed(Change::Deleted { path });
        Ok(())
    }

    fn apply_set_data(
        &mut self,
        path: &str,
        data: Option<&[u8]>,
        version: i32,
        context: Context<'_>,
        observer: &mut impl Observer,
    ) -> Result<Outcome, Code> {
        let spot = match context.spot {
            _ if context.id.is_some() => None,
            // The root is found without.
            None if path != path::ROOT => Some(self.warmed_spot(path, Use::Look).map_err(|_| Code::NO_NODE)?),
            spot => spot,
        };
        // While the memory comes.
        let crc = content_crc(path, data);
        let id = match spot {
            None => context.id.or_else(|| self.find(path)),
            Some(spot) => {
                // All of the record at once: where its data are is known only when its beginning has come.
                let likely = self.warm_record(spot.hash);
                self.likely_at(&spot, likely)
            }
        };
        let id = id.ok_or(Code::NO_NODE)?;
        debug_assert_eq!(self.find(path), Some(id), "{path} is where it was found");
        let (mut stat, child_count) = self.stored_and_children(id);
        self.set_content(id, path, data);
        (stat.version, stat.mzxid, stat.mtime_ms) = (version, context.zxid, context.time_ms);
        let node = self.nodes.at_mut(id);
        node.version = version;
        node.set_mzxid(context.zxid);
        match Packed::of(context.time_ms) {
            Some(mtime) if !node.is(Node::RARE) => node.mtime = mtime,
            _ => self.set_times(id, stat.ctime_ms, stat.mtime_ms),
        }
        self.set_digest(id, node_digest(crc, &stat), path::is_in_digest(path));
        observer.changed(Change::DataSet { path });
        Ok(Outcome::Stat(stat.shown(child_count, self.shown_bytes(id, len_of(data)))))
    }

    /// Puts other data into a node. Its digest is the caller's to set.
    pub(super) fn set_content(&mut self, id: NodeId, path: &str, data: Option<&[u8]>) {
        let old_bytes = self.nodes.set_data(id, data);
        self.approximate_bytes += len_of(data) as u64;
        self.approximate_bytes -= old_bytes as u64;
        self.quota_data_set(path, data, old_bytes);
    }

    /// Sets both times, in the record if they fit.
    pub(super) fn set_times(&mut self, id: NodeId, ctime_ms: i64, mtime_ms: i64) {
        let apart = if let (Some(ctime), Some(mtime)) = (Packed::of(ctime_ms), Packed::of(mtime_ms)) {
            let node = self.nodes.at_mut(id);
            (node.ctime, node.mtime) = (ctime, mtime);
            None
        } else {
            Some((ctime_ms, mtime_ms))
        };
        if apart.is_some() || self.nodes.at(id).is(Node::RARE) {
            self.set_rare(id, |rare| rare.times_ms = apart);
        }
    }

    pub(super) fn set_acl(&mut self, id: NodeId, acl: crate::format::AclList<'_>) {
        let old = self.acl_number(id);
        let new = self.acls.intern(acl);
        self.set_acl_number(id, new);
        self.acls.release(old);
    }
}
