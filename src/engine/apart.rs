use std::path::{Path, PathBuf};

use crate::base::{Error, Result};
use crate::io::resolved;

/// Refuses to make something in what is only to be read, or around it: `made` is a directory that may be made yet, or not
/// even be there, and `read` one that is there. By links, too.
///
/// # Errors
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid); [`ErrorKind::Io`](crate::ErrorKind::Io) if a path cannot be followed.
fn check_not_inside(made: &Path, read: &Path) -> Result<()> {
    let (whole, of) = (place(made)?, place(read)?);
    if !whole.starts_with(&of) {
        return Ok(());
    }
    let (made, read) = (made.display(), read.display());
    Err(Error::invalid(format!("{made} lies inside {read}, which is only to be read")))
}

/// A directory, and the other one that has its log, if that stands apart.
pub(crate) type WithLog<'a> = (&'a Path, Option<&'a Path>);

/// The same of each that is made and each that is read, and that what is read does not lie in what is made.
///
/// # Errors
/// As [`check_not_inside`].
pub(crate) fn check_apart(made: WithLog<'_>, read: WithLog<'_>) -> Result<()> {
    for read in [read.0].into_iter().chain(read.1) {
        for made in [made.0].into_iter().chain(made.1) {
            check_not_inside(made, read)?;
        }
    }
    let (made, read) = (made.0, read.0);
    if !place(read)?.starts_with(place(made)?) {
        return Ok(());
    }
    Err(Error::invalid(format!("{} lies inside {}, which is to be made", read.display(), made.display())))
}

/// Where a path leads to, whatever it is called.
pub(crate) fn place(path: &Path) -> Result<PathBuf> {
    resolved(path).map_err(|e| Error::io("follow a path", e).in_file(&path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_in_another_is_found_whatever_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("data/version-2")).unwrap();
        fs::create_dir(at("database")).unwrap();
        symlink(at("data"), at("link")).unwrap();
        for inside in
            ["data", "data/new", "data/version-2", "link/new", "link/version-2/new", "database/../data/new"]
        {
            assert!(check_apart((&at(inside), None), (&at("data"), None)).is_err(), "{inside}");
            assert!(check_not_inside(&at(inside), &at("link")).is_err(), "{inside}");
        }
        for apart in ["database", "new", "link2"] {
            check_apart((&at(apart), None), (&at("data"), None)).unwrap();
        }
        assert!(check_apart((&at("data"), None), (&at("link/version-2"), None)).is_err());
        check_not_inside(&at("data"), &at("link/version-2")).unwrap();
    }
}
