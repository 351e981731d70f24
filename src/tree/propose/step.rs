use std::sync::Arc;

use super::super::acl_check::{acl_allows, fix_acl};
use super::super::data_tree::{DataTree, ROOT};
use super::super::lookup::NodePlace;
use super::super::path;
use super::context::RequestContext;
use super::options::ProposeOptions;
use super::outstanding::{Latest, Outstanding, Pending};
use super::state::{AclState, NodeState, SessionState};
use crate::base::Code;
use crate::format::{Acl, AclList, Perms};

/// One request on its way to a txn: what it looks at, and what it changes.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) tree: &'a DataTree,
    pub(super) outstanding: &'a mut Outstanding,
    pub(super) context: &'a RequestContext<'a>,
    pub(super) options: &'a ProposeOptions,
    /// Where the node was found that was changed last.
    pub(super) place: Option<NodePlace>,
}

impl Step<'_> {
    /// The node at a path as it will be.
    ///
    /// # Errors
    /// [`Code::NO_NODE`] if it will not be there.
    pub(super) fn node(&self, path: &str) -> Result<NodeState, Code> {
        self.found(path, self.outstanding.node(path))
    }

    /// The same for who will change it: also where to put it.
    ///
    /// # Errors
    /// As [`node`](Step::node).
    pub(super) fn node_to_change(&self, path: &str) -> Result<(NodeState, Latest), Code> {
        let latest = self.outstanding.latest_of(path);
        Ok((self.found(path, self.outstanding.node_at(latest))?, latest))
    }

    fn found(&self, path: &str, pending: Pending<&NodeState>) -> Result<NodeState, Code> {
        match pending {
            Pending::Is(state) => return Ok(state.clone()),
            Pending::Gone => return Err(Code::NO_NODE),
            Pending::Untouched => {}
        }
        let is_root = path == path::ROOT;
        let place = if is_root { None } else { Some(self.tree.find_place(path).ok_or(Code::NO_NODE)?) };
        let id = place.map_or(ROOT, |place| place.id);
        Ok(NodeState {
            stored: self.tree.stored(id),
            child_count: self.tree.child_count(id),
            data_bytes: self.tree.stored_data_bytes(id),
            acl: AclState::InTree(self.tree.acl_number(id)),
            place,
        })
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        match self.outstanding.node(path) {
            Pending::Is(_) => true,
            Pending::Gone => false,
            Pending::Untouched => self.tree.find(path).is_some(),
        }
    }

    /// Puts a changed node in place of what was there; `None` deletes it.
    pub(super) fn put(&mut self, path: &str, state: Option<NodeState>) {
        self.count_for_quotas(path, state.as_ref());
        self.outstanding.set_node(self.context.zxid, path, state);
    }

    /// Puts a changed node where it was found.
    pub(super) fn put_at(&mut self, at: Latest, path: &str, state: NodeState) {
        self.count_for_quotas(path, Some(&state));
        self.place = state.place;
        self.outstanding.set_node_at(self.context.zxid, at, path, Some(state));
    }

    /// Checks the ACL of a node.
    ///
    /// # Errors
    /// [`Code::NO_AUTH`] unless it grants one of the permissions.
    pub(super) fn allow(&self, node: &NodeState, wanted: Perms) -> Result<(), Code> {
        if self.options.skip_acl {
            return Ok(());
        }
        let list = match &node.acl {
            AclState::Set(bytes) => AclList::of_valid(bytes),
            AclState::InTree(number) if self.tree.acls.allows_anyone(*number, wanted) => return Ok(()),
            AclState::InTree(number) => self.tree.acls.get(*number),
        };
        if acl_allows(list, self.context.identities, wanted) { Ok(()) } else { Err(Code::NO_AUTH) }
    }

    /// The list that is stored for one that was asked for.
    pub(super) fn fix_acl(&self, acl: &[Acl]) -> Result<Arc<[u8]>, Code> {
        let is_known = |scheme: &str| self.options.schemes.iter().any(|known| known == scheme);
        let fixed = fix_acl(acl, self.context.identities, is_known)?;
        Ok(Arc::from(fixed.as_list().as_bytes()))
    }

    /// Checks that the session that asks is not about to end. One that is not known may live elsewhere, if the options
    /// say so.
    pub(super) fn is_not_closing(&self) -> Result<(), Code> {
        let id = self.context.session_id;
        match self.outstanding.session(id) {
            Some(SessionState::Closing) => Err(Code::SESSION_EXPIRED),
            None if self.options.only_known_sessions && id != 0 => self.is_known(),
            _ => Ok(()),
        }
    }

    /// Checks that the session that asks can own nodes. One that is not known has expired.
    ///
    /// Source: `SessionTrackerImpl.checkGlobalSession` and `LeaderSessionTracker.checkGlobalSession`; a server of 3.8.0
    /// answers the same for a session that never was, one that is being closed and one that has ended, also where the
    /// path would be refused.
    pub(super) fn is_live(&self) -> Result<(), Code> {
        self.is_not_closing()?;
        self.is_known()
    }

    fn is_known(&self) -> Result<(), Code> {
        let id = self.context.session_id;
        let is_known = self.outstanding.session(id).is_some() || self.tree.session_timeout_ms(id).is_some();
        if is_known { Ok(()) } else { Err(Code::SESSION_EXPIRED) }
    }

    /// What a child's coming or going does to its parent: all of it, but for the count of those created.
    pub(super) fn touch_parent(&mut self, path: &str, change: impl FnOnce(&mut NodeState)) {
        let Some((parent_path, _)) = path::split(path) else { return };
        if let Ok((mut parent, at)) = self.node_to_change(parent_path) {
            parent.stored.pzxid = parent.stored.pzxid.max(self.context.zxid);
            change(&mut parent);
            self.put_at(at, parent_path, parent);
        }
    }
}

/// The version after this one. It wraps, but never to -1, which stands for any.
///
/// Source: ZooKeeper's `PrepRequestProcessor.checkAndIncVersion`, with ZOOKEEPER-4743.
///
/// # Errors
/// [`Code::BAD_VERSION`] if another one was expected.
pub(super) fn next_version(found: i32, expected: i32) -> Result<i32, Code> {
    is_version(found, expected)?;
    Ok(if found == -2 { 0 } else { found.wrapping_add(1) })
}

/// # Errors
/// [`Code::BAD_VERSION`] if another one was expected.
pub(super) fn is_version(found: i32, expected: i32) -> Result<(), Code> {
    if expected == -1 || expected == found { Ok(()) } else { Err(Code::BAD_VERSION) }
}
