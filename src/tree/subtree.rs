use super::data_tree::DataTree;
use super::digest::whole_digest;
use super::path;
use super::read::NodeRef;

/// What a part of the tree amounts to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SubtreeTotals {
    /// Its nodes, the topmost included.
    pub nodes: u64,
    /// The bytes of all their data.
    pub data_bytes: u64,
    /// The sum of their digests, as the tree's digest counts them.
    pub digest: u64,
}

/// The nodes below a node in the order of their paths: each before its children, children by name.
struct Descendants<'t> {
    /// For each level what is left of it, the deepest last.
    levels: Vec<Box<dyn Iterator<Item = NodeRef<'t>> + 't>>,
}

impl<'t> Iterator for Descendants<'t> {
    type Item = NodeRef<'t>;

    fn next(&mut self) -> Option<NodeRef<'t>> {
        loop {
            let level = self.levels.last_mut()?;
            let Some(node) = level.next() else {
                self.levels.pop();
                continue;
            };
            if node.child_count() > 0 {
                self.levels.push(Box::new(node.children(None)));
            }
            return Some(node);
        }
    }
}

impl DataTree {
    /// The nodes below the one at `root`, in the order of their paths name by name: each before its children. With
    /// `after`, those that come behind that path, whether or not there is (still) such a node: for pages, take as
    /// many as are wanted and go on after the last one. Nothing if `root` does not exist.
    pub fn descendants<'t>(
        &'t self,
        root: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = NodeRef<'t>> + use<'t> {
        let mut levels: Vec<Box<dyn Iterator<Item = NodeRef<'t>> + 't>> = Vec::new();
        if let Some(top) = self.get(root) {
            let below = after.filter(|after| *after != root && path::is_within(after, root));
            match below {
                None => levels.push(Box::new(top.children(None))),
                Some(after) => {
                    let names = if root == path::ROOT { &after[1..] } else { &after[root.len() + 1..] };
                    resume(top, names, &mut levels);
                }
            }
        }
        Descendants { levels }
    }

    /// Counts, bytes and digest of the node at `root` with everything below it. Visits all of it.
    pub fn subtree_totals(&self, root: &str) -> Option<SubtreeTotals> {
        let top = self.get(root)?;
        let mut totals = SubtreeTotals::default();
        for node in std::iter::once(top).chain(self.descendants(root, None)) {
            totals.nodes += 1;
            totals.data_bytes += node.stored_data_bytes() as u64;
            let path = node.path();
            if path::is_in_digest(&path) {
                // From the node itself, not from what is kept of it: so it checks that.
                let digest = whole_digest(&path, node.data(), &node.stored());
                totals.digest = totals.digest.wrapping_add(digest.into());
            }
        }
        Some(totals)
    }
}

/// Stands behind the path whose names below `top` are `names`.
fn resume<'t>(top: NodeRef<'t>, names: &str, levels: &mut Vec<Box<dyn Iterator<Item = NodeRef<'t>> + 't>>) {
    let mut at = top;
    for name in names.split('/') {
        levels.push(Box::new(at.children(Some(name))));
        let Some(child) = at.child(name) else { return };
        at = child;
    }
    levels.push(Box::new(at.children(None)));
}
