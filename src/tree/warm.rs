//! Several paths at once: a look-up is mostly waiting for memory, and those of several paths can wait together.

use super::data_tree::DataTree;
use super::lookup::{NodePlace, Spot};
use super::path;
use super::read::NodeRef;
use super::store::{Node, NodeId};
use crate::format::{Txn, TxnBody};

/// So many look-ups are under way together. More lines than that a processor does not wait for at once.
pub(crate) const AHEAD: usize = 32;

/// What a node is looked up for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// To read it, or to change it in its place.
    Look,
    Add,
    Remove,
}

/// What was found on the way to a node, for who comes to change it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hint<'p> {
    spot: Spot<'p>,
    /// The node is there, as far as that is known.
    has_record: bool,
    /// What the tree had counted then; `None` if its count says nothing of this parent, which had no children.
    parents_gone: Option<u64>,
    /// The node itself, if it was found before.
    place: Option<NodePlace>,
}

impl DataTree {
    /// The nodes at several paths, each as [`get`](DataTree::get) finds it. Faster than one after the other when there
    /// are many nodes: a server that has several requests to answer asks for all of them.
    pub fn get_many(&self, paths: &[&str]) -> Vec<Option<NodeRef<'_>>> {
        let mut nodes = Vec::with_capacity(paths.len());
        for paths in paths.chunks(AHEAD) {
            let hints = self.warm(paths.iter().map(|path| Some((*path, Use::Look))));
            nodes.extend(paths.iter().zip(hints).map(|(path, hint)| match self.hinted(hint) {
                Some(spot) => self.at_spot(&spot).map(|id| self.node(id)),
                None => self.get(path),
            }));
        }
        nodes
    }

    /// Has the memory fetched that these txns will need, at most [`AHEAD`] of them. What they change for each other
    /// makes no difference but in time.
    pub(crate) fn warm_for<'t>(&self, txns: &[Txn<'t>]) -> Vec<Option<Hint<'t>>> {
        self.warm(txns.iter().map(|txn| path_of(&txn.body)))
    }

    /// The same of txns with what was found when they were proposed, if something was.
    pub(crate) fn warm_for_found<'t>(&self, txns: &[(Txn<'t>, Option<NodePlace>)]) -> Vec<Option<Hint<'t>>> {
        let hints: Vec<_> =
            txns.iter().map(|(txn, place)| self.warm_found(&txn.body, place.as_ref())).collect();
        self.warm_records(&hints);
        hints
    }

    fn warm_found<'t>(&self, body: &TxnBody<'t>, place: Option<&NodePlace>) -> Option<Hint<'t>> {
        let (path, to) = path_of(body)?;
        if let Some(place) = place.filter(|_| to == Use::Look)
            && let Some(spot) = self.spot_again(place, path)
        {
            self.nodes.prefetch(place.id);
            let parents_gone = Some(self.parents_gone);
            return Some(Hint { spot, has_record: false, parents_gone, place: Some(*place) });
        }
        self.warm_path(path, to)
    }

    /// The node that was found, unless it may be gone by now.
    pub(super) fn found_by(&self, hint: Option<Hint<'_>>) -> Option<NodeId> {
        hint.and_then(|hint| hint.place).filter(|place| self.is_still(place)).map(|place| place.id)
    }

    /// What was found, unless it may be another node's by now.
    pub(super) fn hinted<'p>(&self, hint: Option<Hint<'p>>) -> Option<Spot<'p>> {
        hint.filter(|hint| hint.parents_gone == Some(self.parents_gone)).map(|hint| hint.spot)
    }

    /// Has the memory fetched of at most [`AHEAD`] nodes, and of what their parents have. A hint for each of the paths.
    fn warm<'p>(&self, paths: impl Iterator<Item = Option<(&'p str, Use)>>) -> Vec<Option<Hint<'p>>> {
        let hints: Vec<_> =
            paths.map(|asked| asked.and_then(|(path, to)| self.warm_path(path, to))).collect();
        self.warm_records(&hints);
        hints
    }

    fn warm_records(&self, hints: &[Option<Hint<'_>>]) {
        for hint in hints.iter().flatten().filter(|hint| hint.has_record) {
            self.warm_record(hint.spot.hash);
        }
    }

    fn warm_path<'p>(&self, path: &'p str, to: Use) -> Option<Hint<'p>> {
        let (parent, name) = path::split(path)?;
        let parent = self.find_parent(parent)?;
        let mut spot = self.spot(parent, name.as_bytes());
        self.warm_spot(&mut spot, to);
        // One that is no parent yet may go without being counted.
        let parents_gone = self.nodes.at(parent).is(Node::PARENT).then_some(self.parents_gone);
        Some(Hint { spot, has_record: to != Use::Add, parents_gone, place: None })
    }

    /// Has the memory fetched in which a child is found, and of what its parent has.
    pub(super) fn warm_spot(&self, spot: &mut Spot<'_>, to: Use) {
        self.index.prefetch(spot.hash);
        if to != Use::Look
            && let Some(family) = self.families.get(&spot.parent)
        {
            spot.chunk = Some(family.children.prefetch(spot.name, to == Use::Remove));
        }
    }

    /// Has the record fetched of what has that hash, most probably the node that is wanted, and tells which it is.
    pub(super) fn warm_record(&self, hash: u64) -> Option<NodeId> {
        let id = self.index.find(hash, |_| true)?;
        self.nodes.prefetch(id);
        Some(id)
    }
}

/// The node that a txn changes, and how.
fn path_of<'t>(body: &TxnBody<'t>) -> Option<(&'t str, Use)> {
    match *body {
        TxnBody::Create(ref create) => Some((create.path, Use::Add)),
        TxnBody::Delete { path } | TxnBody::DeleteContainer { path } => Some((path, Use::Remove)),
        TxnBody::SetData { path, .. } | TxnBody::SetAcl { path, .. } => Some((path, Use::Look)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::AclList;
    use crate::tree::SharedTree;
    use crate::tree::tests::{create, txn};

    #[test]
    fn many_are_found_as_one_by_one_and_a_group_is_applied_in_order() {
        let paths: Vec<String> = (0..100)
            .map(|n| if n % 10 == 0 { format!("/p{n}") } else { format!("/p{}/{n}", n / 10 * 10) })
            .collect();
        let group =
            || paths.iter().zip(1..).map(|(path, zxid)| txn(zxid, create(path, b"x", AclList::EMPTY, 1)));
        let mut single = DataTree::new();
        let outcomes: Vec<_> = group().map(|txn| single.apply(&txn, &mut ())).collect();
        let shared = SharedTree::new(DataTree::new());
        assert_eq!(shared.apply_group(group(), &mut ()), outcomes);
        let tree = shared.into_inner();
        assert_eq!((tree.digest(), tree.len()), (single.digest(), 104));
        let mut asked: Vec<&str> = paths.iter().map(String::as_str).collect();
        asked.extend(["/", "", "/none", "/p0/none", "//", "/p0/"]);
        let found: Vec<_> = tree.get_many(&asked).iter().map(|node| node.map(|node| node.path())).collect();
        let wanted: Vec<_> = asked.iter().map(|path| tree.get(path).map(|node| node.path())).collect();
        assert_eq!(found, wanted);
        assert_eq!(found.iter().flatten().count(), 101);
    }

    /// What a group has found beforehand may be gone, and another node in its place, when it is used.
    #[test]
    fn groups_that_delete_and_create_parents_end_as_one_by_one() {
        let mut random = crate::base::Random::from_seed(5);
        let mut pick = |count: u64| usize::try_from(random.next_u64() % count).unwrap();
        let names = ["/a", "/b", "/a/a", "/a/b", "/b/a", "/a/a/a", "/a/a/b", "/b/a/a"];
        let (mut single, shared) = (DataTree::new(), SharedTree::new(DataTree::new()));
        let mut done = 0;
        // As who proposes has found them, some groups before.
        let mut places = [None; 8];
        for group in 0..400 {
            for (path, place) in names.iter().zip(&mut places) {
                if pick(3) == 0 {
                    *place = shared.read().find_place(path);
                }
            }
            let found = |txn: &Txn<'_>| {
                let (path, _) = path_of(&txn.body)?;
                places[names.iter().position(|name| *name == path)?]
            };
            let txns: Vec<Txn<'_>> = (1..=70)
                .map(|n| {
                    let path = names[pick(8)];
                    let body = match pick(7) {
                        0..4 => create(path, b"x", AclList::EMPTY, i32::try_from(group * 70 + n).unwrap()),
                        4 => TxnBody::SetData { path, data: Some(b"yy"), version: 1 },
                        _ => TxnBody::Delete { path },
                    };
                    txn(group * 70 + n, body)
                })
                .collect();
            let outcomes: Vec<_> = txns.iter().map(|txn| single.apply(txn, &mut ())).collect();
            done += outcomes.iter().filter(|outcome| outcome.code().is_ok()).count();
            let txns = txns.iter().map(|txn| (*txn, found(txn)));
            assert_eq!(shared.apply_found(txns, &mut ()), outcomes, "group {group}");
            let tree = shared.read();
            assert_eq!((tree.digest(), tree.len()), (single.digest(), single.len()), "group {group}");
            assert_eq!(tree.approximate_bytes(), single.approximate_bytes());
        }
        assert!(done > 5000, "{done}");
    }

    /// What was found holds until a node goes, whichever it is.
    #[test]
    fn a_place_is_good_until_a_node_is_removed() {
        let mut tree = DataTree::new();
        for (path, zxid) in ["/a", "/a/b", "/c"].iter().zip(1..) {
            tree.apply(&txn(zxid, create(path, b"x", AclList::EMPTY, 1)), &mut ());
        }
        let set = txn(4, TxnBody::SetData { path: "/a/b", data: Some(b"y"), version: 1 });
        let place = tree.find_place("/a/b");
        let hint = |tree: &DataTree| tree.warm_for_found(&[(set, place)])[0];
        let found = tree.find("/a/b");
        assert!(found.is_some() && tree.found_by(hint(&tree)) == found);
        tree.apply(&txn(5, create("/d", b"x", AclList::EMPTY, 1)), &mut ());
        assert_eq!(tree.found_by(hint(&tree)), found, "what is added changes no place");
        let before = hint(&tree);
        tree.apply(&txn(6, TxnBody::Delete { path: "/c" }), &mut ());
        assert_eq!((tree.found_by(before), tree.found_by(hint(&tree))), (None, None));
        assert!(hint(&tree).is_some(), "it is looked for anew");
        assert!(tree.find_place("/none").is_none() && tree.find_place("/").is_none());
    }
}
