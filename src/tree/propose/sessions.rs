use std::collections::BTreeSet;

use super::super::owner::Owner;
use super::body::{Body, LIST_BYTES_MAX, path_bytes_max};
use super::outstanding::Pending;
use super::state::SessionState;
use super::step::Step;
use crate::base::Code;

impl Step<'_> {
    /// A number that would read as a container's or a TTL node's owner is no session's, nor is 0.
    pub(super) fn create_session<'r>(&mut self, timeout_ms: i32) -> Result<Body<'r>, Code> {
        let id = self.context.session_id;
        if Owner::from_raw(id, self.options.extended_types) != Owner::Session(id) {
            return Err(Code::BAD_ARGUMENTS);
        }
        self.outstanding.set_session(self.context.zxid, id, SessionState::Live);
        Ok(Body::CreateSession { timeout_ms })
    }

    /// The end of a session, or its beginning if a txn does not take all of its nodes; and whether it is the end.
    ///
    /// It may come twice, from the client and from the server; there is nothing left for the second.
    pub(super) fn close_session<'r>(&mut self) -> Result<(Body<'r>, bool), Code> {
        let (zxid, id) = (self.context.zxid, self.context.session_id);
        if id == 0 {
            // The server itself, which would be shut out.
            return Err(Code::BAD_ARGUMENTS);
        }
        let all = self.ephemeral_paths();
        let count = all.len();
        let mut bytes = LIST_BYTES_MAX;
        let fitting = all.into_iter().take_while(|path| {
            bytes += path_bytes_max(path);
            bytes <= self.options.txn_bytes_max
        });
        let paths: Vec<String> = fitting.collect();
        for path in &paths {
            self.remove(path);
        }
        self.outstanding.set_session(zxid, id, SessionState::Closing);
        // One that is too large for any txn goes with the session, unlisted.
        if paths.len() == count || paths.is_empty() {
            Ok((Body::CloseSession { paths }, true))
        } else {
            Ok((Body::DeleteAll { paths }, false))
        }
    }

    /// The nodes that the session has when all that is logged is applied, in order.
    fn ephemeral_paths(&self) -> BTreeSet<String> {
        let id = self.context.session_id;
        let stays = |path: &String| matches!(self.outstanding.node(path), Pending::Untouched);
        let mut paths: BTreeSet<String> = self.tree.ephemeral_paths(id).into_iter().filter(stays).collect();
        paths.extend(self.outstanding.ephemerals(id).map(|path| path.as_ref().to_owned()));
        paths
    }
}
