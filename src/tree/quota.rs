use std::sync::OnceLock;

use hashbrown::HashMap;

use super::data_tree::DataTree;
use super::path;
use super::store::{Node, NodeId, len_of};

/// The limits and totals of parts of the tree.
///
/// A quota is there as long as its limits node, `/zookeeper/quota<path>/zookeeper_limits`. Its totals are a matter of
/// the tree alone: all nodes at `<path>` and below, other quotas or not, however they came there. What a client
/// writes into `/zookeeper/quota<path>/zookeeper_stats` is kept and not looked at; who reads it gets the totals.
///
/// Source: ZooKeeper's `DataTree` and `StatsTrack`. Deviation: ZooKeeper counts all nodes when it starts or when the
/// node for the totals is created, and later on changes only under the nearest quota; and it reads the totals from
/// what a client may have written, which can stop every server for good.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    by_root: HashMap<Box<str>, Quota>,
    /// The nodes that show totals, with the paths of their quotas.
    stats_nodes: HashMap<NodeId, Box<str>>,
}

#[derive(Debug)]
struct Quota {
    state: QuotaState,
    /// ZooKeeper's text of the totals, made when it is asked for.
    text: OnceLock<Box<str>>,
}

/// A quota's limits and totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotaState {
    /// What was set.
    pub limits: QuotaLimits,
    /// The nodes at its path and below.
    pub nodes: i64,
    /// The bytes of all their data.
    pub bytes: i64,
}

impl QuotaState {
    pub(crate) fn new(limits: QuotaLimits) -> QuotaState {
        QuotaState { limits, nodes: 0, bytes: 0 }
    }
}

/// A quota's limits. Soft ones stop nobody: a server tells of them (ZooKeeper in its log). Hard ones are enforced
/// where requests become txns, if that is switched on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuotaLimits {
    /// As many nodes should be enough.
    pub nodes_soft: Option<i64>,
    /// As many bytes of data should be enough.
    pub bytes_soft: Option<i64>,
    /// More nodes are refused.
    pub nodes_hard: Option<i64>,
    /// More bytes of data are refused.
    pub bytes_hard: Option<i64>,
}

impl QuotaState {
    /// Whether a soft limit is exceeded.
    pub fn exceeds_soft(&self) -> bool {
        self.limits.nodes_soft.is_some_and(|limit| self.nodes > limit)
            || self.limits.bytes_soft.is_some_and(|limit| self.bytes > limit)
    }
}

impl QuotaLimits {
    /// Reads `count=1,bytes=2=;byteHardLimit=3;countHardLimit=4`, or parts of it in any order. What cannot be read
    /// is no limit, as is a negative one.
    pub(crate) fn parse(text: &[u8]) -> QuotaLimits {
        let mut limits = QuotaLimits::default();
        for pair in text.split(|byte| matches!(byte, b',' | b';')) {
            let mut parts = pair.split(|byte| *byte == b'=');
            let (Some(key), Some(value)) = (parts.next(), parts.next()) else { continue };
            let limit = std::str::from_utf8(value).ok().and_then(|value| value.trim().parse::<i64>().ok());
            let limit = limit.filter(|limit| *limit >= 0);
            match key.trim_ascii() {
                b"count" => limits.nodes_soft = limit,
                b"bytes" => limits.bytes_soft = limit,
                b"countHardLimit" => limits.nodes_hard = limit,
                b"byteHardLimit" => limits.bytes_hard = limit,
                _ => {}
            }
        }
        limits
    }
}

/// The path that a limits node sets limits to. The root cannot have any.
pub(crate) fn limits_root(path: &str) -> Option<&str> {
    root_of(path, "/zookeeper_limits")
}

fn root_of<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    path.strip_prefix(path::QUOTA)?.strip_suffix(name).filter(|root| root.starts_with('/'))
}

impl Quotas {
    /// Whether there is no quota at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_root.is_empty()
    }

    /// The quota of exactly this path.
    pub(crate) fn state(&self, root: &str) -> Option<QuotaState> {
        self.by_root.get(root).map(|quota| quota.state)
    }

    /// What a node shows instead of its data, if it is one for a quota's totals.
    #[inline]
    pub(super) fn text(&self, id: NodeId) -> Option<&str> {
        if self.by_root.is_empty() {
            return None;
        }
        let quota = self.by_root.get(self.stats_nodes.get(&id)?)?;
        let QuotaState { nodes, bytes, .. } = quota.state;
        Some(quota.text.get_or_init(|| format!("count={nodes},bytes={bytes}").into()))
    }

    fn count(&mut self, path: &str, nodes: i64, bytes: i64) {
        for root in path::self_and_above(path) {
            if let Some(quota) = self.by_root.get_mut(root) {
                quota.state.nodes += nodes;
                quota.state.bytes += bytes;
                quota.text.take();
            }
        }
    }
}

impl DataTree {
    /// The quota of exactly this path, if it has one: its limits, and totals that the tree counts itself.
    pub fn quota(&self, path: &str) -> Option<QuotaState> {
        self.quotas.state(path)
    }

    /// All quotas by path, in the order of their paths.
    pub fn quotas(&self) -> Vec<(String, QuotaState)> {
        let mut all: Vec<_> =
            self.quotas.by_root.iter().map(|(path, quota)| (path.to_string(), quota.state)).collect();
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// A node was added.
    pub(super) fn quota_planted(&mut self, id: NodeId, path: &str, data: Option<&[u8]>) {
        if self.has_no_quota_for(path) {
            return;
        }
        self.quotas.count(path, 1, signed(len_of(data)));
        if let Some(root) = limits_root(path) {
            self.set_limits(root, data);
        } else if let Some(root) = root_of(path, "/zookeeper_stats") {
            self.quotas.stats_nodes.insert(id, root.into());
        }
    }

    /// A node is being removed that has this data.
    pub(super) fn quota_uprooted(&mut self, id: NodeId, path: &str, data_bytes: usize) {
        if self.has_no_quota_for(path) {
            return;
        }
        self.quotas.count(path, -1, -signed(data_bytes));
        if let Some(root) = limits_root(path) {
            self.quotas.by_root.remove(root);
        }
        self.quotas.stats_nodes.remove(&id);
    }

    /// A node's data was set; before, it had so many bytes.
    pub(super) fn quota_data_set(&mut self, path: &str, data: Option<&[u8]>, old_bytes: usize) {
        if self.has_no_quota_for(path) {
            return;
        }
        self.quotas.count(path, 0, signed(len_of(data)) - signed(old_bytes));
        if let Some(root) = limits_root(path) {
            self.set_limits(root, data);
        }
    }

    /// Whether a node neither counts to a quota nor is a part of one: what almost all changes end with.
    fn has_no_quota_for(&self, path: &str) -> bool {
        self.quotas.is_empty() && path::is_in_digest(path)
    }

    fn set_limits(&mut self, root: &str, data: Option<&[u8]>) {
        let limits = QuotaLimits::parse(data.unwrap_or(b""));
        if let Some(quota) = self.quotas.by_root.get_mut(root) {
            quota.state.limits = limits;
            return;
        }
        let mut state = QuotaState::new(limits);
        let mut todo: Vec<NodeId> = self.find(root).into_iter().collect();
        while let Some(id) = todo.pop() {
            state.nodes += 1;
            state.bytes += signed(self.stored_data_bytes(id));
            if self.nodes.at(id).is(Node::PARENT)
                && let Some(family) = self.families.get(&id)
            {
                todo.extend(family.children.iter(None, |id| self.name(id)));
            }
        }
        self.quotas.by_root.insert(root.into(), Quota { state, text: OnceLock::new() });
    }
}

/// A number of bytes, to be counted up or down by.
pub(super) fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_any_text() {
        let soft = |nodes_soft, bytes_soft, hard| QuotaLimits { nodes_soft, bytes_soft, ..hard };
        let hard = |nodes_hard, bytes_hard| QuotaLimits { nodes_hard, bytes_hard, ..QuotaLimits::default() };
        for (text, expected) in [
            ("", hard(None, None)),
            ("count=5,bytes=10", soft(Some(5), Some(10), hard(None, None))),
            (
                "count=5,bytes=10=;byteHardLimit=3;countHardLimit=4",
                soft(Some(5), Some(10), hard(Some(4), Some(3))),
            ),
            ("countHardLimit=4", hard(Some(4), None)),
            ("byteHardLimit=-1;countHardLimit=-7", hard(None, None)),
            ("byteHardLimit=0", hard(None, Some(0))),
            ("byteHardLimit=;countHardLimit", hard(None, None)),
            ("byteHardLimit=9223372036854775808,countHardLimit=2", hard(Some(2), None)),
            (";;,,==;=,=5;countHardLimit=1=2=3", hard(Some(1), None)),
            ("\u{1f600}=1;countHardLimit=\u{1f600}", hard(None, None)),
        ] {
            assert_eq!(QuotaLimits::parse(text.as_bytes()), expected, "{text:?}");
        }
        assert_eq!(QuotaLimits::parse(b"\xff\xfe=1;countHardLimit=\xff"), hard(None, None));
    }

    #[test]
    fn only_a_node_below_the_quotas_path_has_limits() {
        assert_eq!(limits_root("/zookeeper/quota/a/b/zookeeper_limits"), Some("/a/b"));
        for path in [
            "/zookeeper/quota/zookeeper_limits",
            "/zookeeper/quotas/a/zookeeper_limits",
            "/zookeeper/quota/a/zookeeper_limits/b",
            "/zookeeper/quota/a/xzookeeper_limits",
            "/a/zookeeper_limits",
        ] {
            assert_eq!(limits_root(path), None, "{path}");
        }
    }
}
