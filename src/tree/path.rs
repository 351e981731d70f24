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
    let mut names = path.as_bytes().strip_prefix(b"/").ok_or(Code::BAD_ARGUMENTS)?;
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    while let Some(end) = first_slash(names) {
        if !is_name(&names[..end]) {
            return Err(Code::BAD_ARGUMENTS);
        }
        names = &names[end + 1..];
    }
    // Most paths are plain text, all bytes of which are compared together.
    let is_plain = path.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    let valid = is_name(names) && (is_plain || path.chars().all(is_allowed));
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

/// What stands before a path's last `/`: its parent's path, but empty for a child of the root.
pub(crate) fn above(path: &str) -> &str {
    &path[..last_slash(path.as_bytes()).unwrap_or(0)]
}

/// The parent's path and the name, of any path but the root's. `None` too for what can be no node's path: with an
/// empty name at its end or before it.
pub(crate) fn split(path: &str) -> Option<(&str, &str)> {
    let at = last_slash(path.as_bytes())?;
    let (parent, name) = (&path[..at], &path[at + 1..]);
    match parent {
        _ if name.is_empty() => None,
        "" => Some((ROOT, name)),
        _ => (!parent.ends_with('/')).then_some((parent, name)),
    }
}

/// In the high bit of each byte whether there is a `/`.
fn slashes(bytes: [u8; 8]) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
    let other = u64::from_le_bytes(bytes) ^ u64::from_le_bytes([b'/'; 8]);
    // No byte carries into the next one.
    !(((other & LOW) + LOW) | other | LOW)
}

/// The place of the first `/`. Looked for in eight bytes at once: paths are taken apart with every look-up.
pub(crate) fn first_slash(text: &[u8]) -> Option<usize> {
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let found = slashes(*word);
        if found != 0 {
            return Some(at * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let at = rest.iter().position(|byte| *byte == b'/')?;
    Some(words.len() * 8 + at)
}

/// The place of the last `/`.
pub(crate) fn last_slash(text: &[u8]) -> Option<usize> {
    let (rest, words) = text.as_rchunks::<8>();
    for (at, word) in words.iter().enumerate().rev() {
        let found = slashes(*word);
        if found != 0 {
            return Some(rest.len() + at * 8 + 7 - (found.leading_zeros() / 8) as usize);
        }
    }
    rest.iter().rposition(|byte| *byte == b'/')
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

    /// As it reads: name by name, character by character.
    #[test]
    fn a_path_is_checked_as_its_characters_are() {
        let mut random = crate::base::Random::from_seed(2);
        let alphabet = [
            '/', '/', '.', 'a', ' ', '~', '\u{1f}', '\u{7f}', '\u{80}', '\u{9f}', '\u{a0}', 'ä', '日',
            '\u{e000}',
        ];
        for turn in 0..50_000 {
            // Most of them plain, so that names decide.
            let letters = if turn % 4 == 0 { alphabet.len() } else { 6 };
            let len = usize::try_from(random.next_u64() % 12).unwrap();
            let pick = |_| alphabet[usize::try_from(random.next_u64()).unwrap() % letters];
            let path: String = ['/'].into_iter().chain((0..len).map(pick)).collect();
            let names = || path[1..].split('/');
            let valid = path == ROOT
                || names().all(|name| !matches!(name, "" | "." | ".."))
                    && names().all(|name| name.chars().all(is_allowed));
            assert_eq!(check_path(&path).is_ok(), valid, "{path:?}");
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
    fn slashes_are_found_wherever_they_stand() {
        let mut random = crate::base::Random::from_seed(1);
        for _ in 0..20_000 {
            let len = usize::try_from(random.next_u64() % 40).unwrap();
            // Bytes that differ from a slash in one bit, or in the highest too.
            let text: Vec<u8> = (0..len)
                .map(|_| match random.next_u64() % 12 {
                    0 => b'/',
                    bit @ 1..9 => b'/' ^ (1_u8 << (bit - 1)),
                    _ => random.next_u64().to_le_bytes()[0],
                })
                .collect();
            assert_eq!(first_slash(&text), text.iter().position(|byte| *byte == b'/'), "{text:?}");
            assert_eq!(last_slash(&text), text.iter().rposition(|byte| *byte == b'/'), "{text:?}");
        }
    }

    #[test]
    fn suffixes_are_those_of_java() {
        assert_eq!(sequence_suffix(7), "0000000007");
        assert_eq!(sequence_suffix(i32::MIN), "-2147483648");
        assert_eq!(sequence_suffix(-5), "-000000005");
    }
}
