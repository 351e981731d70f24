use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

/// How a snapshot is compressed; its name tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// As gzip does.
    Gz,
    /// In snappy blocks, as snappy-java frames them.
    Snappy,
}

impl Compression {
    /// What a file's name ends with.
    pub const fn suffix(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Gz => ".gz",
            Compression::Snappy => ".snappy",
        }
    }
}

/// Bytes of the file that are read at once.
const BUFFER_BYTES: usize = 64 * 1024;
/// What begins a snappy file: a word, then two numbers.
pub(super) const SNAPPY_HEADER: &[u8; 16] = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
/// The bytes of a block before compression.
pub(super) const SNAPPY_BLOCK_BYTES: usize = 32 * 1024;
/// The most that a block of another writer may have; its memory is bounded by this.
const SNAPPY_BLOCK_BYTES_MAX: usize = 16 << 20;

/// The bytes of a file before compression.
pub(super) enum Plain<R: Read> {
    None(R),
    Gz(Box<Members<R>>),
    Snappy(Box<Blocks<BufReader<R>>>),
}

impl<R: Read> std::fmt::Debug for Plain<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Plain")
    }
}

impl<R: Read> Plain<R> {
    pub(super) fn new(inner: R, compression: Compression) -> Plain<R> {
        let buffered = |inner| BufReader::with_capacity(BUFFER_BYTES, inner);
        match compression {
            Compression::None => Plain::None(inner),
            Compression::Gz => Plain::Gz(Box::new(Members::new(inner))),
            Compression::Snappy => Plain::Snappy(Box::new(Blocks::new(buffered(inner)))),
        }
    }

    /// What is read.
    pub(super) fn inner(&self) -> &R {
        match self {
            Plain::None(inner) => inner,
            Plain::Gz(inner) => &inner.decoder().get_ref().inner,
            Plain::Snappy(inner) => inner.inner.get_ref(),
        }
    }
}

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Plain::None(inner) => inner.read(buf),
            Plain::Gz(inner) => inner.read(buf),
            Plain::Snappy(inner) => inner.read(buf),
        }
    }
}

/// Members of gzip, one behind the other. What stands behind them and has no whole header of one is not read, as Java does not
/// read it. A header that is whole begins a member, and what is wrong in it is an error.
pub(super) struct Members<R> {
    decoder: Option<GzDecoder<Window<R>>>,
    is_first: bool,
    has_ended: bool,
}

/// What a member begins with.
const GZ_MAGIC: &[u8] = b"\x1f\x8b";
/// The part of a member's header that each has: the last six bytes of it may be any.
const GZ_HEADER_BYTES: usize = 10;
/// Bits of the flags that mean nothing yet.
const GZ_RESERVED: u8 = 0xe0;

/// Whether a header of a member begins so, but for flags that RFC 1952 wants refused: what they announce may change how
/// the rest is to be read. Java takes no notice of them and reads the member, so to pass over it would lose it.
fn has_reserved_flags(head: &[u8]) -> bool {
    head.len() == GZ_HEADER_BYTES && head[2] == 8 && head[3] & GZ_RESERVED != 0
}

impl<R: Read> Members<R> {
    fn new(inner: R) -> Members<R> {
        Members { decoder: Some(GzDecoder::new(Window::new(inner))), is_first: true, has_ended: false }
    }

    fn decoder(&self) -> &GzDecoder<Window<R>> {
        self.decoder.as_ref().expect("it is taken away for the next one alone")
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = self.decoder.as_mut().filter(|_| !self.has_ended) {
            let begins = !self.is_first && decoder.header().is_none();
            let read = match decoder.read(buf) {
                Err(error) if begins && is_no_header(&error) => 0,
                read => read?,
            };
            if read > 0 || buf.is_empty() {
                return Ok(read);
            }
            let next: &[u8] = if begins { &[] } else { decoder.get_mut().peek(GZ_HEADER_BYTES)? };
            if !next.starts_with(GZ_MAGIC) {
                self.has_ended = true;
                return Ok(0);
            }
            if has_reserved_flags(next) {
                return Err(invalid("a gzip header has flags that are reserved"));
            }
            self.decoder = self.decoder.take().map(|ended| GzDecoder::new(ended.into_inner()));
            self.is_first = false;
        }
        Ok(0)
    }
}

/// Whether the decoder says this of a header, and not the disk of its bytes.
fn is_no_header(error: &io::Error) -> bool {
    let of_decoder = matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof);
    of_decoder && error.raw_os_error().is_none()
}

/// A buffered reader that looks ahead of what was read.
pub(super) struct Window<R> {
    inner: R,
    bytes: Vec<u8>,
    /// What of them was not read yet.
    unread: std::ops::Range<usize>,
}

impl<R: Read> Window<R> {
    fn new(inner: R) -> Window<R> {
        Window { inner, bytes: vec![0; BUFFER_BYTES], unread: 0..0 }
    }

    /// The next few bytes, or as many as there are.
    fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.unread.len() < count {
            self.bytes.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
            match self.inner.read(&mut self.bytes[self.unread.end..]) {
                Ok(0) => break,
                Ok(read) => self.unread.end += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(&self.bytes[self.unread.start..self.unread.end.min(self.unread.start + count)])
    }
}

impl<R: Read> Read for Window<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buf)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: Read> BufRead for Window<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.unread.is_empty() {
            self.unread = 0..0;
            self.unread.end = self.inner.read(&mut self.bytes)?;
        }
        Ok(&self.bytes[self.unread.clone()])
    }

    fn consume(&mut self, count: usize) {
        self.unread.start += count;
    }
}

/// Blocks of snappy, each behind its length.
pub(super) struct Blocks<R> {
    inner: R,
    begun: bool,
    packed: Vec<u8>,
    block: Vec<u8>,
    at: usize,
}

impl<R: BufRead> Blocks<R> {
    fn new(inner: R) -> Blocks<R> {
        Blocks { inner, begun: false, packed: Vec::new(), block: Vec::new(), at: 0 }
    }

    /// Reads the next block; false at the end.
    fn next(&mut self) -> io::Result<bool> {
        if !self.begun {
            let mut header = [0; SNAPPY_HEADER.len()];
            self.inner.read_exact(&mut header)?;
            if header[..8] != SNAPPY_HEADER[..8] {
                return Err(invalid("it does not begin like a snappy file"));
            }
            self.begun = true;
        }
        if self.inner.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let mut length = [0; 4];
        self.inner.read_exact(&mut length)?;
        let len = usize::try_from(i32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if len > snap::raw::max_compress_len(SNAPPY_BLOCK_BYTES_MAX) {
            return Err(invalid("a block is too long"));
        }
        self.packed.clear();
        let read = (&mut self.inner).take(len as u64).read_to_end(&mut self.packed)?;
        if read < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let bytes = snap::raw::decompress_len(&self.packed).map_err(|e| invalid(&e.to_string()))?;
        if bytes > SNAPPY_BLOCK_BYTES_MAX {
            return Err(invalid("a block is too long"));
        }
        self.block.resize(bytes, 0);
        let mut decoder = snap::raw::Decoder::new();
        let done = decoder.decompress(&self.packed, &mut self.block).map_err(|e| invalid(&e.to_string()))?;
        self.block.truncate(done);
        self.at = 0;
        Ok(true)
    }
}

impl<R: BufRead> Read for Blocks<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if !self.next()? {
                return Ok(0);
            }
        }
        let len = buf.len().min(self.block.len() - self.at);
        buf[..len].copy_from_slice(&self.block[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression as Level;
    use flate2::GzBuilder;

    use super::*;

    /// A member of exactly so many bytes.
    fn member(bytes: usize, content: &[u8]) -> Vec<u8> {
        let of_name = |len: usize| {
            let mut encoder = GzBuilder::new().filename(vec![b'a'; len]).write(Vec::new(), Level::fast());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        };
        of_name(bytes - of_name(0).len())
    }

    /// Wherever the buffer ends between two members, and however few bytes a read gives.
    #[test]
    fn members_are_read_to_the_last_one() {
        for bytes in BUFFER_BYTES - 3..BUFFER_BYTES + 3 {
            let mut packed = member(bytes, b"first ");
            assert_eq!(packed.len(), bytes);
            packed.extend(member(100, b"second "));
            packed.extend(member(101, b"third"));
            let no_deflate = b"\x1f\x8b\x07\0no member";
            for tail in [
                &b""[..],
                b"\x1f",
                b"\x1f\0",
                b"no member",
                b"\x1f\x8b",
                no_deflate,
                b"\x1f\x8b\x08\xe0short",
                &member(99, b"")[..9],
            ] {
                let all: Vec<u8> = [&packed[..], tail].concat();
                let mut plain = String::new();
                Plain::new(&all[..], Compression::Gz).read_to_string(&mut plain).unwrap();
                assert_eq!(plain, "first second third", "{bytes} {tail:?}");
            }
        }
    }

    /// Java reads such a member as any other. A decoder that follows RFC 1952 must not, and one that passes over it loses it.
    #[test]
    fn ix_05_reserved_flags_of_gzip_are_refused_in_every_header() {
        let read = |packed: &[u8]| {
            let mut plain = String::new();
            Plain::new(packed, Compression::Gz).read_to_string(&mut plain).map(|_| plain)
        };
        let first = member(100, b"first ");
        for flag in [0x20, 0x40, 0x80, 0xe0] {
            let mut second = member(101, b"second");
            second[3] |= flag;
            assert_eq!(read(&second).unwrap_err().kind(), io::ErrorKind::InvalidInput, "alone, {flag:#x}");
            let both = [&first[..], &second].concat();
            for len in 110..=both.len() {
                let error = read(&both[..len]).unwrap_err();
                assert!(error.to_string().contains("reserved"), "{flag:#x} {len}: {error}");
            }
            // What is shorter is no header.
            for len in 100..110 {
                assert_eq!(read(&both[..len]).unwrap(), "first ", "{flag:#x} {len}");
            }
        }
    }

    /// Java throws there, too.
    #[test]
    fn a_member_that_has_begun_is_read_to_its_end() {
        let (first, mut second) = (member(100, b"first "), member(101, b"second"));
        let read = |second: &[u8]| {
            let all = [&first[..], second].concat();
            Plain::new(&all[..], Compression::Gz).read_to_string(&mut String::new())
        };
        assert_eq!(read(&second).unwrap(), 12);
        assert_eq!(read(&second[..100]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        second[100] ^= 1;
        assert_eq!(read(&second).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        // Of the first, nothing may be missing.
        assert!(Plain::new(&first[..9], Compression::Gz).read_to_string(&mut String::new()).is_err());
    }

    /// A disk that fails says so wherever it does.
    #[test]
    fn a_disk_that_fails_behind_a_member_is_no_end() {
        struct Failing(Vec<u8>, usize, i32);
        impl Read for Failing {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                if self.1 == self.0.len() {
                    return Err(io::Error::from_raw_os_error(self.2));
                }
                buf[0] = self.0[self.1];
                self.1 += 1;
                Ok(1)
            }
        }
        for errno in [5, 22] {
            let whole = [&member(100, b"first ")[..], &member(101, b"second")].concat();
            for len in [99, 100, 101, 102, 105, 110, 150, 201] {
                let failing = Failing(whole[..len].to_vec(), 0, errno);
                let read = Plain::new(failing, Compression::Gz).read_to_string(&mut String::new());
                assert_eq!(read.unwrap_err().raw_os_error(), Some(errno), "{len}");
            }
        }
    }
}
