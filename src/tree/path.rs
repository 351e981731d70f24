//! Paths: `/` and names, as ZooKeeper allows them.

use crate::base::Code;

/// The root.
pub(crate) const ROOT: &str = "/";
/// What servers keep for themselves.
pub(crate) const ZOOKEEPER: &str = "/zookeeper";
/// Under it, the limits and totals of parts of the tree.
pub(crate) const QUOTA: &str = "/zookeeper/quota";
/// The ensemble's configuration.
pub(crate) const CONFIG: &str = "/zookeeper/config";

/// Checks a path as a create does.
///
/// Source: `org.apache.zookeeper.common.PathUtils.validatePath`, with the bounds of 3.5.2 and later.
///
/// # Errors
/// [`Code::BAD_ARGUMENTS`] unless it is `/`, or `/` and names with `/` between them, none of them empty, `.` or
/// `..`, and no character of it is a control character, a private one, or beyond U+FFEF.
pub fn check_path(path: &str) -> Result<(), Code> {
    if path == ROOT {
        return Ok(());
    }
    let names = path.strip_prefix('/').ok_or(Code::BAD_ARGUMENTS)?;
    let valid =
        names.split('/').all(|name| !matches!(name, "" | "." | "..")) && names.chars().all(is_allowed);
    if valid { Ok(()) } else { Err(Code::BAD_ARGUMENTS) }
}

/// ZooKeeper looks at UTF-16 units: what needs two of them is two surrogates, which it forbids.
fn is_allowed(c: char) -> bool {
    !matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// The parent of a path that is to be created or deleted, which is all that ZooKeeper checks of it at first.
///
/// # Errors
/// [`Code::BAD_ARGUMENTS`] if it has no `/`, or a NUL.
pub(crate) fn parent_loosely(path: &str) -> Result<&str, Code> {
    match path.rfind('/') {
        Some(0) if !path.contains('\0') => Ok(ROOT),
        Some(at) if !path.contains('\0') => Ok(&path[..at]),
        _ => Err(Code::BAD_ARGUMENTS),
    }
}

/// A path and those of all nodes above it but the root, the longest first.
pub(crate) fn self_and_above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rfind('/').map(|at| &path[..at]))
        .take_while(|path| path.len() > ROOT.len())
}

/// The parent's path and the name, of any path but the root's. `None` too for what can be no node's path: with an
/// empty name at its end or before it.
pub(crate) fn split(path: &str) -> Option<(&str, &str)> {
    let (parent, name) = path.rsplit_once('/').filter(|(_, name)| !name.is_empty())?;
    match parent {
        "" => Some((ROOT, name)),
        _ => (!parent.ends_with('/')).then_some((parent, name)),
    }
}

/// Whether servers need the node: it cannot be deleted.
pub(crate) fn is_reserved(path: &str) -> bool {
    matches!(path, ROOT | ZOOKEEPER | QUOTA | CONFIG)
}

/// Whether a node counts into the digest: all but those below `/zookeeper`.
pub(crate) fn is_in_digest(path: &str) -> bool {
    !path.strip_prefix(ZOOKEEPER).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether `path` is `root` or below it.
pub(crate) fn is_within(path: &str, root: &str) -> bool {
    root == ROOT || path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The suffix of a sequential node: the count of children created so far, in at least ten places.
///
/// Source: `PrepRequestProcessor`, which formats a signed number with `%010d`.
pub(crate) fn sequence_suffix(cversion: i32) -> String {
    format!("{cversion:010}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_allowed_as_zookeeper_allows_them() {
        for path in ["/", "/a", "/a/b.c/..d", "/ a", "/\u{20}", "/ä/日本", "/\u{ffef}", "/..."] {
            assert_eq!(check_path(path), Ok(()), "{path:?}");
        }
        for path in [
            "",
            "a",
            "/a/",
            "//",
            "/a//b",
            "/.",
            "/a/..",
            "/a/./b",
            "/\0",
            "/\u{1}",
            "/\u{1f}",
            "/\u{7f}",
            "/\u{9f}",
            "/\u{e000}",
            "/\u{f8ff}",
            "/\u{fff0}",
            "/\u{ffff}",
            "/\u{1f600}",
        ] {
            assert_eq!(check_path(path), Err(Code::BAD_ARGUMENTS), "{path:?}");
        }
    }

    #[test]
    fn paths_are_taken_apart() {
        for none in ["/", "", "a", "//", "//a", "/a/", "/a//b"] {
            assert_eq!(split(none), None, "{none:?}");
        }
        assert_eq!(split("/a"), Some(("/", "a")));
        assert_eq!(split("/a/b"), Some(("/a", "b")));
        assert!(
            is_in_digest("/zookeeper") && is_in_digest("/zookeepers/a") && !is_in_digest("/zookeeper/quota")
        );
        assert!(
            is_within("/a/b", "/a")
                && is_within("/a", "/a")
                && !is_within("/ab", "/a")
                && is_within("/a", "/")
        );
    }

    #[test]
    fn suffixes_are_those_of_java() {
        assert_eq!(sequence_suffix(7), "0000000007");
        assert_eq!(sequence_suffix(i32::MIN), "-2147483648");
        assert_eq!(sequence_suffix(-5), "-000000005");
    }
}
