//! Whole directories: the few things that are done to them beside what a [`Disk`](super::Disk) does inside of one.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::contract::EntryKind;
use super::dir::open_dir_to_read;

/// Makes sure that there is a directory at `path`, whose parent must exist, and that it survives a power cut.
pub(crate) fn ensure_dir(path: &Path) -> io::Result<()> {
    match fs::mkdir(path, Mode::RWXU | Mode::RGRP | Mode::XGRP) {
        // It may have been made by a process that died before the sync below.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    sync_parent(path)
}

/// Removes those files of a directory that are `ours` by their names, and the directory if nothing is left in it; that
/// it is not there is as good. A symbolic link is not followed, and stays.
pub(crate) fn remove_dir(path: &Path, ours: &dyn Fn(&str) -> bool) -> io::Result<()> {
    match fs::lstat(path) {
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Directory => return Ok(()),
        Ok(_) => {}
    }
    let disk = match open_dir_to_read(path) {
        Ok(disk) => disk,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    for entry in disk.list()?.iter().filter(|entry| entry.kind == EntryKind::File && ours(&entry.name)) {
        disk.remove(&entry.name)?;
    }
    match fs::unlinkat(fs::CWD, path, AtFlags::REMOVEDIR) {
        // What is not ours stays, and the directory with it.
        Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST) => sync_parent(path),
        Err(errno) => Err(errno.into()),
    }
}

/// The names in a directory, sorted; none if it is not there.
pub(crate) fn names_in(path: &Path) -> io::Result<Vec<String>> {
    let disk = match open_dir_to_read(path) {
        Ok(disk) => disk,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut names: Vec<String> = disk.list()?.into_iter().map(|entry| entry.name).collect();
    names.sort();
    Ok(names)
}

/// The path without links and dots. Of one that is not there, what it would be: its parent must be there.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    match std::fs::canonicalize(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or(e)?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Ok(std::fs::canonicalize(parent.unwrap_or(Path::new(".")))?.join(name))
        }
        found => found,
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = retry_on_intr(|| fs::open(parent, flags, Mode::empty()))?;
    match retry_on_intr(|| fs::fsync(parent.as_fd())) {
        // The file system has no such call, so it promises nothing by leaving it out either.
        Err(Errno::INVAL) => Ok(()),
        result => Ok(result?),
    }
}
