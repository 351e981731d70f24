//! What a directory's medium offers: direct I/O and its alignment, and the unit that it writes as one.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::{Errno, pwrite};

use super::Buffer;
use super::file::go_direct;

/// Taken where the kernel does not tell: what nearly all disks of today write as one.
const BLOCK_BYTES_UNKNOWN: u64 = 4096;

/// The largest unit believed: beyond it is a mistake of a driver, and we would pad every group to it.
const BLOCK_BYTES_MAX: u64 = 65_536;

/// The findings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Medium {
    /// The alignment of direct writes; none if there are none.
    pub(super) direct_align: Option<u64>,
    pub(super) physical_block_bytes: u64,
}

/// Tries a direct write to a file without a name, so that nothing is left in the directory.
pub(super) fn examine(dir: BorrowedFd<'_>) -> Medium {
    // Where a nameless file is refused (read-only, full, an old or a network file system), we do without
    // direct I/O: slower, and never wrong.
    let scratch =
        fs::openat(dir, ".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    Medium {
        direct_align: scratch.ok().and_then(|scratch| direct_align(&scratch)),
        physical_block_bytes: block_bytes(dir),
    }
}

/// The unit that the medium writes as one, by looking alone.
pub(super) fn block_bytes(dir: BorrowedFd<'_>) -> u64 {
    physical_block_bytes(dir).unwrap_or(BLOCK_BYTES_UNKNOWN)
}

fn direct_align(scratch: &OwnedFd) -> Option<u64> {
    let told = told_align(scratch.as_fd());
    if told == Some(0) || !go_direct(scratch.as_fd()).ok()? {
        return None;
    }
    // Even what was told is tried: some file systems take the flag and then refuse every write.
    let candidates = told.map_or(vec![512, 4096], |align| vec![align]);
    candidates.into_iter().filter(|align| align.is_power_of_two() && *align <= BLOCK_BYTES_MAX).find(
        |align| {
            let mut block = Buffer::with_capacity(usize::try_from(*align).expect("at most 65,536"));
            block.resize_zeroed(block.capacity().min(usize::try_from(*align).expect("at most 65,536")));
            pwrite(scratch, block.as_slice(), *align) == Ok(block.len())
        },
    )
}

/// The alignment as `statx` tells it: 0 means no direct I/O, none means that the kernel (before 6.1) or the
/// file system does not say.
fn told_align(file: BorrowedFd<'_>) -> Option<u64> {
    let stat = fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    if stat.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return None;
    }
    // A buffer begins at a page; memory that must be aligned beyond that cannot be had.
    let memory_fits = u64::from(stat.stx_dio_mem_align) <= Buffer::ALIGN as u64;
    let align = stat.stx_dio_offset_align.max(stat.stx_dio_mem_align);
    Some(if memory_fits && stat.stx_dio_offset_align > 0 { u64::from(align) } else { 0 })
}

fn physical_block_bytes(dir: BorrowedFd<'_>) -> Option<u64> {
    let device = fs::fstat(dir).ok()?.st_dev;
    let device = format!("/sys/dev/block/{}:{}", fs::major(device), fs::minor(device));
    // A partition has no queue of its own, its disk has.
    let text = ["queue", "../queue"]
        .iter()
        .find_map(|queue| std::fs::read_to_string(format!("{device}/{queue}/physical_block_size")).ok())?;
    plausible_block_bytes(&text)
}

fn plausible_block_bytes(text: &str) -> Option<u64> {
    let bytes: u64 = text.trim().parse().ok()?;
    (bytes.is_power_of_two() && bytes >= 512).then_some(bytes.min(BLOCK_BYTES_MAX))
}

/// Why io_uring is not used on the file system of this directory, though the kernel offers it.
pub(super) fn uring_denied(dir: BorrowedFd<'_>) -> Result<Option<&'static str>, Errno> {
    let magic = fs::fstatfs(dir)?.f_type;
    // The numbers have 32 bits; some architectures widen them with their sign.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the upper half is the sign's"
    )]
    Ok(denied_magic(magic as u64 as u32))
}

fn denied_magic(magic: u32) -> Option<&'static str> {
    match magic {
        0x6573_5546 => Some("fuse: a write may hang with the daemon behind it, out of our reach"),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => Some("cifs: wrong data was seen with io_uring"),
        0x0102_1997 => {
            Some("9p: the server, not the kernel, decides what is durable, and io_uring gains nothing")
        }
        0x2fc1_2fc1 => Some("zfs: workers were seen to hang"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iu_11_file_systems_that_io_uring_is_kept_from() {
        for denied in [0x6573_5546, 0xff53_4d42, 0xfe53_4d42, 0x517b, 0x0102_1997, 0x2fc1_2fc1] {
            assert!(denied_magic(denied).is_some(), "{denied:#x}");
        }
        // ext4, xfs, btrfs, tmpfs, overlayfs
        for fine in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(denied_magic(fine), None, "{fine:#x}");
        }
    }

    #[test]
    fn a_block_size_is_believed_within_bounds() {
        for (text, expected) in [
            ("512\n", Some(512)),
            ("4096\n", Some(4096)),
            ("16384", Some(16384)),
            ("1048576\n", Some(65_536)),
            ("0\n", None),
            ("3000\n", None),
            ("", None),
            ("-1", None),
        ] {
            assert_eq!(plausible_block_bytes(text), expected, "{text:?}");
        }
    }

    #[test]
    fn examining_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let fd = fs::open(dir.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let medium = examine(fd.as_fd());
        assert!(medium.physical_block_bytes.is_power_of_two());
        assert!(medium.direct_align.is_none_or(u64::is_power_of_two));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
