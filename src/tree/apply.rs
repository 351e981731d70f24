use super::change::{Change, Observer};
use super::data_tree::{DataTree, StoredStat};
use super::digest::Content;
use super::owner::Owner;
use super::path;
use super::store::{NodeId, Packed};
use super::warm::Use;
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
struct Context {
    zxid: Zxid,
    time_ms: i64,
    session_id: i64,
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
        observer.begins(txn.zxid);
        let context = Context { zxid: txn.zxid, time_ms: txn.time_ms, session_id: txn.session_id };
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

    fn apply_one(&mut self, body: &TxnBody<'_>, context: Context, observer: &mut impl Observer) -> Outcome {
        match *body {
            TxnBody::Create(ref create) => Outcome::of(self.apply_create(create, context, observer)),
            TxnBody::Delete { path } | TxnBody::DeleteContainer { path } => {
                Outcome::of(self.apply_delete(path, context.zxid, observer).map(|()| Outcome::Done))
            }
            TxnBody::DeleteAll { paths } => {
                for path in paths.iter() {
                    // One that is gone already is what was wanted.
                    let _gone = self.apply_delete(path, context.zxid, observer);
                }
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
                    for path in paths.iter() {
                        let _gone = self.apply_delete(path, context.zxid, observer);
                    }
                }
                // What the leader did not list.
                for path in self.ephemeral_paths(context.session_id) {
                    let _gone = self.apply_delete(&path, context.zxid, observer);
                }
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
        context: Context,
        observer: &mut impl Observer,
    ) -> Result<Outcome, Code> {
        let (parent_path, name) = match path::split(create.path) {
            Some(parts) => parts,
            None if create.path == path::ROOT => return Err(Code::NODE_EXISTS),
            None => return Err(Code::BAD_ARGUMENTS),
        };
        let parent = self.find(parent_path).ok_or(Code::NO_NODE)?;
        self.warm_child(parent, name, Use::Add);
        let new = Content::of(create.path, create.data);
        if let Some(id) = self.find_child(parent, name) {
            // In a replay: this creation, or a later one. What it has done to the parent may be missing still.
            self.set_acl(id, create.acl);
            if let Some(cversion) = create.parent_cversion {
                self.raise_cversion(parent, parent_path, cversion, context.zxid);
            }
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
        let stat = StoredStat {
            czxid: context.zxid,
            mzxid: context.zxid,
            pzxid: context.zxid,
            ctime_ms: context.time_ms,
            mtime_ms: context.time_ms,
            owner,
            ..StoredStat::default()
        };
        let cversion = create
            .parent_cversion
            .unwrap_or_else(|| self.families.get(&parent).map_or(0, |f| f.cversion).wrapping_add(1));
        let id = self
            .plant_under(parent, name.as_bytes(), create.path, new, create.acl, &stat)
            .ok_or(Code::QUOTA_EXCEEDED)?;
        self.raise_cversion(parent, parent_path, cversion, context.zxid);
        observer.changed(Change::Created { path: create.path });
        Ok(Outcome::Stat(self.stat(id)))
    }

    /// A create's effect on its parent, unless a later one is there already. Compared as serial numbers, so that the
    /// count goes on past the end of its 32 bits.
    fn raise_cversion(&mut self, parent: NodeId, parent_path: &str, cversion: i32, zxid: Zxid) {
        self.change(parent, parent_path, |tree, parent| {
            let family = tree.family_mut(parent);
            if cversion.wrapping_sub(family.cversion) > 0 {
                (family.cversion, family.pzxid) = (cversion, zxid);
            }
        });
    }

    fn apply_delete(&mut self, path: &str, zxid: Zxid, observer: &mut impl Observer) -> Result<(), Code> {
        let (parent_path, name) = path::split(path).ok_or(Code::BAD_ARGUMENTS)?;
        let parent = self.find(parent_path).ok_or(Code::NO_NODE)?;
        self.warm_child(parent, name, Use::Remove);
        // Even if the node is gone: a replay may meet a parent that has not seen it go.
        self.change(parent, parent_path, |tree, parent| {
            let family = tree.family_mut(parent);
            family.pzxid = family.pzxid.max(zxid);
        });
        let id = self.find_child(parent, name).ok_or(Code::NO_NODE)?;
        // What is below it in the replay of a fuzzy range was created later, and will be again.
        self.uproot(id, path);
        observer.changed(Change::Deleted { path });
        Ok(())
    }

    fn apply_set_data(
        &mut self,
        path: &str,
        data: Option<&[u8]>,
        version: i32,
        context: Context,
        observer: &mut impl Observer,
    ) -> Result<Outcome, Code> {
        if let Some((parent, name)) = path::split(path) {
            let parent = self.find(parent).ok_or(Code::NO_NODE)?;
            self.warm_child(parent, name, Use::Look);
        }
        // While the memory comes.
        let new = Content::of(path, data);
        let id = self.find(path).ok_or(Code::NO_NODE)?;
        self.change(id, path, |tree, id| {
            tree.set_content(id, path, new);
            let node = tree.nodes.at_mut(id);
            node.version = version;
            node.set_mzxid(context.zxid);
            tree.set_mtime(id, context.time_ms);
        });
        observer.changed(Change::DataSet { path });
        Ok(Outcome::Stat(self.stat(id)))
    }

    /// Puts other data into a node.
    pub(super) fn set_content(&mut self, id: NodeId, path: &str, Content { data, crc }: Content<'_>) {
        let old_bytes = self.nodes.data(id).map_or(0, |d| d.len() as u64);
        self.approximate_bytes += data.map_or(0, |d| d.len() as u64);
        self.approximate_bytes -= old_bytes;
        self.quota_data_set(path, data, old_bytes);
        self.nodes.set_data(id, data);
        self.nodes.at_mut(id).content_crc = crc;
    }

    fn set_mtime(&mut self, id: NodeId, time_ms: i64) {
        let ctime_ms = self.rare(id).times_ms.map_or(self.nodes.at(id).ctime.get(), |(ctime_ms, _)| ctime_ms);
        self.set_times(id, ctime_ms, time_ms);
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
        if apart.is_some() || self.nodes.at(id).is(super::store::Node::RARE) {
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
