use std::io;

use super::{Disk, OpenMode};

/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// How a file got to another directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Duplicated {
    /// It has a name there too.
    Linked,
    /// Its bytes were copied, so many, and synced.
    Copied(u64),
}

/// Brings a file that is never written again into the directory `to`, under the same name: by a link, or by a copy
/// where the file system has none for it. Its name there is durable once `to` is synced.
pub(crate) fn duplicate(from: &dyn Disk, name: &str, to: &dyn Disk) -> io::Result<Duplicated> {
    match from.hard_link(name, to, name) {
        Ok(()) => Ok(Duplicated::Linked),
        Err(error) if copying_may_help(&error) => copy(from, name, to, u64::MAX).map(Duplicated::Copied),
        Err(error) => Err(error),
    }
}

/// Copies the first bytes of a file, at most so many, and syncs the copy. How many there were.
pub(crate) fn copy(from: &dyn Disk, name: &str, to: &dyn Disk, bytes_max: u64) -> io::Result<u64> {
    let source = from.open(name, OpenMode::Read)?;
    let dest = to.open(name, OpenMode::CreateNew { direct: false })?;
    let (mut piece, mut at) = (vec![0; PIECE_BYTES], 0);
    while at < bytes_max {
        let count = usize::try_from(bytes_max - at).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
        let read = source.read_at(at, &mut piece[..count])?;
        if read == 0 {
            break;
        }
        dest.write_all_at(at, &piece[..read])?;
        at += read as u64;
    }
    dest.sync()?;
    Ok(at)
}

/// Whether the file system refused the link only, and not the file: another file system, one without links, too many
/// of them, or a file of another owner.
fn copying_may_help(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), CrossesDevices | PermissionDenied | TooManyLinks | Unsupported)
}
