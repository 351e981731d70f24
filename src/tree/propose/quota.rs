use super::super::path;
use super::super::quota::{QuotaLimits, QuotaState, limits_root, signed};
use super::outstanding::Pending;
use super::state::NodeState;
use super::step::Step;
use crate::base::Code;

/// Quotas as they will be when all that is logged is applied. Kept only if hard limits are to hold.
impl Step<'_> {
    fn has_quotas(&self) -> bool {
        self.options.enforce_quota && (!self.tree.quotas.is_empty() || self.outstanding.has_quotas())
    }

    fn quota(&self, root: &str) -> Option<QuotaState> {
        match self.outstanding.quota(root) {
            Pending::Is(quota) => Some(quota),
            Pending::Gone => None,
            Pending::Untouched => self.tree.quotas.state(root),
        }
    }

    /// Checks the hard limits of the nearest quota above a node.
    ///
    /// Source: ZooKeeper's `ZooKeeperServer.checkQuota`: a limit is looked at if what it limits would change, either
    /// way.
    ///
    /// # Errors
    /// [`Code::QUOTA_EXCEEDED`].
    pub(super) fn check_quota(&self, path: &str, nodes: i64, bytes: i64) -> Result<(), Code> {
        if !self.has_quotas() {
            return Ok(());
        }
        let Some(quota) = path::self_and_above(path).find_map(|root| self.quota(root)) else {
            return Ok(());
        };
        let exceeds = |limit: Option<i64>, total: i64, more: i64| {
            more != 0 && limit.is_some_and(|limit| total + more > limit)
        };
        if exceeds(quota.limits.nodes_hard, quota.nodes, nodes)
            || exceeds(quota.limits.bytes_hard, quota.bytes, bytes)
        {
            return Err(Code::QUOTA_EXCEEDED);
        }
        Ok(())
    }

    /// Counts a node's change to the quotas above it, before it is put.
    pub(super) fn count_for_quotas(&mut self, path: &str, state: Option<&NodeState>) {
        if !self.has_quotas() {
            return;
        }
        // No node is what a creation begins with.
        let before = self.node(path).ok();
        let nodes = i64::from(state.is_some()) - i64::from(before.is_some());
        let size = |state: Option<&NodeState>| state.map_or(0, |state| signed(state.data_bytes));
        let bytes = size(state) - size(before.as_ref());
        if nodes != 0 || bytes != 0 {
            for root in path::self_and_above(path) {
                if let Some(mut quota) = self.quota(root) {
                    quota.nodes += nodes;
                    quota.bytes += bytes;
                    self.outstanding.set_quota(self.context.zxid, root, Some(quota));
                }
            }
        }
        if let Some(root) = limits_root(path).filter(|_| state.is_none()) {
            self.outstanding.set_quota(self.context.zxid, root, None);
        }
    }

    /// Takes note of limits that were set, after the node was put.
    pub(super) fn note_limits(&mut self, path: &str, data: Option<&[u8]>) {
        let Some(root) = limits_root(path).filter(|_| self.options.enforce_quota) else { return };
        let limits = QuotaLimits::parse(data.unwrap_or(b""));
        let quota = self.quota(root).map_or_else(
            || {
                let mut quota = QuotaState::new(limits);
                let counted = self.each_within(root, &mut |_, bytes| {
                    quota.nodes += 1;
                    quota.bytes += signed(bytes);
                    Ok(())
                });
                debug_assert!(counted.is_ok(), "counting does not fail");
                quota
            },
            |quota| QuotaState { limits, ..quota },
        );
        self.outstanding.set_quota(self.context.zxid, root, Some(quota));
    }
}
