use std::borrow::Cow;

use super::super::owner::Owner;
use super::super::path;
use super::super::quota::signed;
use super::super::store::len_of;
use super::super::stored_stat::StoredStat;
use super::body::Body;
use super::request::{CreateMode, CreateRequest, StatCheck};
use super::state::{AclState, NodeState};
use super::step::{Step, is_version, next_version};
use crate::base::Code;
use crate::format::{Acl, CreateKind, Perms, Stat};

/// Requests about one node. The order of the checks is that of ZooKeeper's `PrepRequestProcessor`: the first that
/// fails is what the client is told.
impl Step<'_> {
    pub(super) fn create<'r>(&mut self, request: &CreateRequest<'r>) -> Result<Body<'r>, Code> {
        let owner = self.owner(request.mode)?;
        let parent_path = path::parent_loosely(request.path)?;
        let acl = self.fix_acl(request.acl)?;
        let (mut parent, parent_at) = self.node_to_change(parent_path)?;
        self.allow(&parent, Perms::CREATE)?;
        let (path, cversion) = self.free_path(request, parent.stored.cversion)?;
        if matches!(parent.stored.owner, Owner::Session(_)) {
            return Err(Code::NO_CHILDREN_FOR_EPHEMERALS);
        }
        let data_bytes = len_of(request.data);
        self.check_quota(&path, 1, signed(data_bytes))?;

        let (zxid, time_ms) = (self.context.zxid, self.context.time_ms);
        let parent_cversion = cversion.wrapping_add(1);
        parent.child_count += 1;
        (parent.stored.cversion, parent.stored.pzxid) = (parent_cversion, zxid);
        self.put_at(parent_at, parent_path, parent);
        let stored = StoredStat::created(zxid, time_ms, owner);
        let node =
            NodeState { stored, child_count: 0, data_bytes, acl: AclState::Set(acl.clone()), place: None };
        self.put(&path, Some(node));
        self.note_limits(&path, request.data);
        let kind = kind_of(request);
        Ok(Body::Create { path, data: request.data, acl, kind, parent_cversion })
    }

    /// Who the node will belong to.
    fn owner(&self, mode: CreateMode) -> Result<Owner, Code> {
        if let CreateMode::Ttl { ttl_ms } | CreateMode::TtlSequential { ttl_ms } = mode {
            if !self.options.extended_types {
                return Err(Code::UNIMPLEMENTED);
            }
            if !(1..=Owner::TTL_MAX_MS).contains(&ttl_ms) {
                return Err(Code::BAD_ARGUMENTS);
            }
        }
        let owner = mode.owner(self.context.session_id);
        if let Owner::Session(_) = owner {
            self.is_live()?
        } else {
            self.is_not_closing()?
        }
        Ok(owner)
    }

    /// The path of the node to be created, and the number that its parent's count stands at for it.
    fn free_path<'r>(&self, request: &CreateRequest<'r>, cversion: i32) -> Result<(Cow<'r, str>, i32), Code> {
        if !request.mode.is_sequential() {
            path::check_path(request.path)?;
            if self.exists(request.path) {
                return Err(Code::NODE_EXISTS);
            }
            return Ok((Cow::Borrowed(request.path), cversion));
        }
        // ZooKeeper fails with NODE_EXISTS if the name is taken, and so will each later request until something else
        // moves the count. Nobody can want that, so the next number that is free is taken. It is found at once but
        // for names that somebody has made up, and each of these is passed once, for the count goes on behind it.
        let mut number = cversion;
        loop {
            let path = format!("{}{}", request.path, path::sequence_suffix(number));
            path::check_path(&path)?;
            if !self.exists(&path) {
                return Ok((Cow::Owned(path), number));
            }
            number = number.wrapping_add(1);
        }
    }

    /// The Stat of the node if it is there, and a txn that changes nothing; else its creation.
    pub(super) fn create_if_absent<'r>(
        &mut self,
        request: &CreateRequest<'r>,
    ) -> Result<(Body<'r>, Option<Stat>), Code> {
        not_sequential(request.mode)?;
        match self.create(request) {
            Err(Code::NODE_EXISTS) => {}
            result => return Ok((result?, None)),
        }
        let node = self.node(request.path)?;
        self.allow(&node, Perms::READ)?;
        Ok((Body::Check { path: request.path, version: -1 }, Some(node.stat())))
    }

    pub(super) fn upsert<'r>(&mut self, request: &CreateRequest<'r>) -> Result<Body<'r>, Code> {
        not_sequential(request.mode)?;
        if self.exists(request.path) {
            return self.set_data(request.path, request.data, -1);
        }
        self.create(request)
    }

    pub(super) fn delete<'r>(&mut self, path: &'r str, version: i32) -> Result<Body<'r>, Code> {
        self.is_not_closing()?;
        let parent_path = path::parent_loosely(path)?;
        if path::is_reserved(path) {
            return Err(Code::BAD_ARGUMENTS);
        }
        let parent = self.node(parent_path)?;
        self.allow(&parent, Perms::DELETE)?;
        let node = self.node(path)?;
        is_version(node.stored.version, version)?;
        if node.child_count > 0 {
            return Err(Code::NOT_EMPTY);
        }
        self.remove(path);
        Ok(Body::Delete { path })
    }

    /// Takes a node from its parent.
    pub(super) fn remove(&mut self, path: &str) {
        self.touch_parent(path, |parent| parent.child_count = parent.child_count.saturating_sub(1));
        self.put(path, None);
    }

    /// Stricter than ZooKeeper, which deletes a persistent node as well, and a TTL node that has just been changed.
    pub(super) fn delete_container<'r>(&mut self, path: &'r str) -> Result<Body<'r>, Code> {
        path::parent_loosely(path)?;
        if path::is_reserved(path) {
            return Err(Code::BAD_ARGUMENTS);
        }
        let node = self.node(path)?;
        if node.child_count > 0 {
            return Err(Code::NOT_EMPTY);
        }
        if !node.stored.may_go(self.context.time_ms) {
            return Err(Code::BAD_VERSION);
        }
        self.remove(path);
        Ok(Body::DeleteContainer { path })
    }

    pub(super) fn set_data<'r>(
        &mut self,
        path: &'r str,
        data: Option<&'r [u8]>,
        version: i32,
    ) -> Result<Body<'r>, Code> {
        self.is_not_closing()?;
        path::check_path(path)?;
        let (mut node, at) = self.node_to_change(path)?;
        self.allow(&node, Perms::WRITE)?;
        let data_bytes = len_of(data);
        self.check_quota(path, 0, signed(data_bytes) - signed(node.data_bytes))?;
        let version = next_version(node.stored.version, version)?;
        self.write(&mut node, data_bytes, version);
        self.put_at(at, path, node);
        self.note_limits(path, data);
        Ok(Body::SetData { path, data, version })
    }

    /// The configuration's version is always -1: it stands in the data.
    pub(super) fn reconfig<'r>(&mut self, data: Option<&'r [u8]>) -> Result<Body<'r>, Code> {
        self.is_not_closing()?;
        let (mut node, at) = self.node_to_change(path::CONFIG)?;
        self.allow(&node, Perms::WRITE)?;
        self.write(&mut node, len_of(data), -1);
        self.put_at(at, path::CONFIG, node);
        Ok(Body::Reconfig { path: path::CONFIG, data, version: -1 })
    }

    fn write(&self, node: &mut NodeState, data_bytes: usize, version: i32) {
        node.data_bytes = data_bytes;
        node.stored.version = version;
        (node.stored.mzxid, node.stored.mtime_ms) = (self.context.zxid, self.context.time_ms);
    }

    pub(super) fn set_acl<'r>(&mut self, path: &'r str, acl: &[Acl], version: i32) -> Result<Body<'r>, Code> {
        self.is_not_closing()?;
        path::check_path(path)?;
        let acl = self.fix_acl(acl)?;
        let (mut node, at) = self.node_to_change(path)?;
        self.allow(&node, Perms::ADMIN)?;
        let version = next_version(node.stored.aversion, version)?;
        node.stored.aversion = version;
        // From here on it is this list that requests have to pass, though the tree has the old one.
        node.acl = AclState::Set(acl.clone());
        self.put_at(at, path, node);
        Ok(Body::SetAcl { path, acl, version })
    }

    pub(super) fn check<'r>(&mut self, path: &'r str, version: i32) -> Result<Body<'r>, Code> {
        is_version(self.readable(path)?.stored.version, version)?;
        Ok(Body::Check { path, version })
    }

    pub(super) fn check_stat<'r>(&mut self, path: &'r str, expected: &StatCheck) -> Result<Body<'r>, Code> {
        let node = self.readable(path)?;
        if !expected.holds(&node.stored, node.stored.shown_cversion(node.child_count), node.child_count) {
            return Err(Code::BAD_VERSION);
        }
        Ok(Body::Check { path, version: expected.version.unwrap_or(-1) })
    }

    /// That a node is not there may be known by everybody, as with ZooKeeper's `exists`.
    pub(super) fn check_not_exists<'r>(&mut self, path: &'r str) -> Result<Body<'r>, Code> {
        match self.readable(path) {
            Err(Code::NO_NODE) => Ok(Body::Check { path, version: -1 }),
            Err(code) => Err(code),
            Ok(_) => Err(Code::NODE_EXISTS),
        }
    }

    fn readable(&self, path: &str) -> Result<NodeState, Code> {
        self.is_not_closing()?;
        path::check_path(path)?;
        let node = self.node(path)?;
        self.allow(&node, Perms::READ)?;
        Ok(node)
    }
}

fn not_sequential(mode: CreateMode) -> Result<(), Code> {
    if mode.is_sequential() { Err(Code::BAD_ARGUMENTS) } else { Ok(()) }
}

fn kind_of(request: &CreateRequest<'_>) -> CreateKind {
    match request.mode {
        CreateMode::Container => CreateKind::Container,
        CreateMode::Ttl { ttl_ms } | CreateMode::TtlSequential { ttl_ms } => CreateKind::Ttl { ttl_ms },
        mode => {
            let ephemeral = matches!(mode, CreateMode::Ephemeral | CreateMode::EphemeralSequential);
            if request.with_stat {
                CreateKind::WithStat { ephemeral }
            } else {
                CreateKind::Plain { ephemeral }
            }
        }
    }
}
