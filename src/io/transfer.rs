//! The loops that finish interrupted calls and short transfers, apart from the calls themselves.

use std::io;

use rustix::io::Errno;

/// How often in a row a transfer may bring nothing (interrupted, told to come again, cancelled) before it
/// is taken for a failure. Only such a count keeps a broken driver from turning a call into a hang.
pub(super) const IDLE_ATTEMPTS_MAX: u32 = 100;

/// Whether the call did nothing and asks to be made again.
pub(super) fn is_transient(errno: Errno) -> bool {
    // Cancelled: io_uring cancels what a thread handed in when that thread ends. We never cancel.
    matches!(errno, Errno::INTR | Errno::AGAIN | Errno::CANCELED)
}

/// Counts attempts that brought nothing, and ends them.
#[derive(Default)]
struct Idle(u32);

impl Idle {
    fn again(&mut self, failure: impl Into<io::Error>) -> io::Result<()> {
        self.0 += 1;
        if self.0 > IDLE_ATTEMPTS_MAX { Err(failure.into()) } else { Ok(()) }
    }
}

/// Fills `buf` from `offset` as far as the file reaches. With `align` above 1, offset and length are
/// multiples of it, and so is every offset asked of `pread`.
///
/// Only a read of nothing, or the length of the file itself, says that the file ends: a short read does
/// not, or an interrupted call would cut good records off.
pub(super) fn read_fully(
    align: usize,
    offset: u64,
    buf: &mut [u8],
    file_len: impl Fn() -> io::Result<u64>,
    mut pread: impl FnMut(u64, &mut [u8]) -> Result<usize, Errno>,
) -> io::Result<usize> {
    let (mut done, mut idle) = (0, Idle::default());
    while done < buf.len() {
        let from = done - done % align;
        match pread(offset + from as u64, &mut buf[from..]) {
            Ok(0) => break,
            Ok(count) if from + count > done => {
                done = from + count;
                idle = Idle::default();
                if !done.is_multiple_of(align) && offset + done as u64 >= file_len()? {
                    break;
                }
            }
            Ok(_) => idle.again(io::ErrorKind::UnexpectedEof)?,
            Err(errno) if is_transient(errno) => idle.again(errno)?,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(done)
}

/// Writes all of `buf`, from multiples of `align` only: a direct write that ended between two is repeated
/// from the lower one, with the same bytes.
pub(super) fn write_fully(
    align: usize,
    offset: u64,
    buf: &[u8],
    mut pwrite: impl FnMut(u64, &[u8]) -> Result<usize, Errno>,
) -> io::Result<()> {
    let (mut done, mut idle) = (0, Idle::default());
    while done < buf.len() {
        match pwrite(offset + done as u64, &buf[done..]) {
            Ok(count) => match advance(align, done, count, buf.len()) {
                Some(end) if end > done => (done, idle) = (end, Idle::default()),
                Some(_) => idle.again(io::ErrorKind::WriteZero)?,
                None => return Err(io::Error::other("the kernel reports more bytes than it was given")),
            },
            Err(errno) if is_transient(errno) => idle.again(errno)?,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Where a write goes on that stood at `done` and wrote `count` more of `len` bytes; none if that cannot be.
pub(super) fn advance(align: usize, done: usize, count: usize, len: usize) -> Option<usize> {
    let end = done.checked_add(count).filter(|end| *end <= len)?;
    Some(if end == len { end } else { (end - end % align).max(done) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Vec<u8> {
        (0..3000u32).map(|i| u8::try_from(i % 251).unwrap()).collect()
    }

    #[test]
    fn tt_05_interrupted_and_short_reads_are_no_end_of_file() {
        let file = content();
        let mut calls = 0;
        let mut buf = vec![0; 4000];
        let count = read_fully(
            1,
            10,
            &mut buf,
            || Ok(3000),
            |offset, buf| {
                calls += 1;
                if calls % 3 == 0 {
                    return Err(Errno::INTR);
                }
                let rest = &file[usize::try_from(offset).unwrap()..];
                let count = rest.len().min(buf.len()).min(1 + calls % 7);
                buf[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            },
        );
        assert_eq!((count.unwrap(), &buf[..2990]), (2990, &file[10..]));
    }

    #[test]
    fn tt_05_a_short_direct_read_goes_on_from_an_aligned_offset() {
        let file = content();
        for per_call in [513, 1000, 1024, 5000] {
            let mut buf = vec![0; 4096];
            let count = read_fully(
                512,
                0,
                &mut buf,
                || Ok(3000),
                |offset, buf| {
                    assert_eq!((offset % 512, buf.len() % 512), (0, 0));
                    let rest = &file[usize::try_from(offset).unwrap()..];
                    let count = rest.len().min(buf.len()).min(per_call);
                    buf[..count].copy_from_slice(&rest[..count]);
                    Ok(count)
                },
            );
            assert_eq!((count.unwrap(), &buf[..3000]), (3000, &file[..]), "{per_call}");
        }
    }

    #[test]
    fn tt_05_a_failed_read_is_an_error_and_endless_interruption_too() {
        for errno in [Errno::IO, Errno::INTR, Errno::AGAIN] {
            let error = read_fully(1, 0, &mut [0; 8], || Ok(8), |_, _| Err(errno)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(errno.raw_os_error()));
        }
    }

    #[test]
    fn short_and_interrupted_writes_are_finished_in_place() {
        let bytes = content();
        for (align, per_call) in [(1, 7), (1, 1), (8, 9), (8, 15), (8, 3000)] {
            let mut file = vec![0; bytes.len()];
            let mut calls = 0;
            write_fully(align, 0, &bytes, |offset, buf| {
                calls += 1;
                let offset = usize::try_from(offset).unwrap();
                assert_eq!(offset % align, 0);
                if calls % 3 == 0 {
                    return Err(Errno::AGAIN);
                }
                let count = buf.len().min(per_call);
                file[offset..offset + count].copy_from_slice(&buf[..count]);
                Ok(count)
            })
            .unwrap();
            assert_eq!(file, bytes);
        }
    }

    #[test]
    fn a_write_that_gets_nowhere_ends() {
        let error = write_fully(1, 0, &[1], |_, _| Ok(0)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
        let error = write_fully(512, 0, &[1; 1024], |_, _| Ok(511)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
        let error = write_fully(1, 0, &[1], |_, _| Err(Errno::NOSPC)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
        assert!(write_fully(1, 0, &[1], |_, _| Ok(2)).is_err());
    }
}
