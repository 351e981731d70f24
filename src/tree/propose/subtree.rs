use super::super::path;
use super::body::{Body, LIST_BYTES_MAX, path_bytes_max};
use super::outstanding::Pending;
use super::step::Step;
use crate::base::Code;
use crate::format::Perms;

impl Step<'_> {
    pub(super) fn delete_recursive<'r>(&mut self, root: &str) -> Result<Body<'r>, Code> {
        self.is_not_closing()?;
        let parent_path = path::parent_loosely(root)?;
        // Above those that are reserved are others that are: none is below.
        if path::is_reserved(root) {
            return Err(Code::BAD_ARGUMENTS);
        }
        let parent = self.node(parent_path)?;
        self.allow(&parent, Perms::DELETE)?;
        self.node(root)?;
        let mut paths = Vec::new();
        let mut bytes = LIST_BYTES_MAX;
        self.each_within(root, &mut |path, _| {
            bytes += path_bytes_max(path);
            if bytes > self.options.txn_bytes_max {
                return Err(Code::MARSHALLING_ERROR);
            }
            let node = self.node(path)?;
            if node.child_count > 0 {
                self.allow(&node, Perms::DELETE)?;
            }
            paths.push(path.to_owned());
            Ok(())
        })?;
        // A path is greater than any that it begins with, so children come before their parents.
        paths.sort_unstable_by(|a, b| b.cmp(a));
        for path in &paths {
            self.remove(path);
        }
        Ok(Body::DeleteAll { paths })
    }

    /// Hands out the path of each node that will be there at `root` or below it, with the bytes of its data.
    pub(super) fn each_within(
        &self,
        root: &str,
        take: &mut impl FnMut(&str, usize) -> Result<(), Code>,
    ) -> Result<(), Code> {
        let mut todo: Vec<_> = self.tree.get(root).into_iter().collect();
        while let Some(node) = todo.pop() {
            let path = node.path();
            // What changes touch comes below; but what is under a deleted node may be there again.
            if matches!(self.outstanding.node(&path), Pending::Untouched) {
                take(&path, node.stored_data_bytes())?;
            }
            todo.extend(node.children(None));
        }
        for (path, state) in self.outstanding.nodes() {
            if let Some(state) = state.filter(|_| path::is_within(path, root)) {
                take(path, state.data_bytes)?;
            }
        }
        Ok(())
    }
}
