//! Jute, in which ZooKeeper writes: fields one behind the other, big-endian, with no tags.

use std::borrow::Cow;

use crate::base::{Error, ErrorKind};

/// Why bytes are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// They end inside a field.
    Short,
    /// A length below -1, or beyond the limit.
    Length(i32),
    /// So many operations or paths, beyond the limit.
    Count(u32),
    /// A type of txn that nobody knows, or not there.
    Type(i32),
    /// A field that must not be what it is.
    Field(&'static str),
}

impl Flaw {
    /// The error of a txn.
    pub(super) fn of_txn(self) -> Error {
        let what = match self {
            Flaw::Short => "the txn ends inside a field".to_owned(),
            Flaw::Length(length) => return too_long(length),
            Flaw::Count(count) => {
                let what = format!("{count} operations or paths in a txn are beyond the limit");
                return Error::new(ErrorKind::Corrupt, "zk_length", what);
            }
            Flaw::Type(kind) => format!("no txn of type {kind} may stand here"),
            Flaw::Field(field) => format!("the txn's {field} cannot be"),
        };
        Error::corrupt("zk_txn", what)
    }
}

/// A length that is refused.
pub(super) fn too_long(length: i32) -> Error {
    let what = format!("a length of {length} is beyond the limit");
    Error::new(ErrorKind::Corrupt, "zk_length", what)
}

/// Fields of bytes in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    /// The longest string or buffer.
    limit: u32,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8], limit: u32) -> Input<'a> {
        Input { bytes, limit }
    }

    /// The longest string or buffer.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// The bytes that are left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let (array, rest) = self.bytes.split_first_chunk().ok_or(Flaw::Short)?;
        self.bytes = rest;
        Ok(*array)
    }

    pub(super) fn bool(&mut self) -> Result<bool, Flaw> {
        Ok(self.array::<1>()? != [0])
    }

    pub(super) fn i32(&mut self) -> Result<i32, Flaw> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, Flaw> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// A buffer, or null.
    pub(super) fn buffer(&mut self) -> Result<Option<&'a [u8]>, Flaw> {
        let length = self.i32()?;
        if length == -1 {
            return Ok(None);
        }
        let len = u32::try_from(length).ok().filter(|len| *len <= self.limit).ok_or(Flaw::Length(length))?;
        let (bytes, rest) = self.bytes.split_at_checked(len as usize).ok_or(Flaw::Short)?;
        self.bytes = rest;
        Ok(Some(bytes))
    }

    /// A string that names a node: not null, and text.
    pub(super) fn path(&mut self) -> Result<Cow<'a, str>, Flaw> {
        let bytes = self.buffer()?.ok_or(Flaw::Field("path"))?;
        text(bytes).ok_or(Flaw::Field("path"))
    }

    /// A count of elements; `None` for a null vector.
    pub(super) fn count(&mut self) -> Result<Option<u32>, Flaw> {
        let count = self.i32()?;
        // Below -1, ZooKeeper reads none.
        Ok((count != -1).then_some(u32::try_from(count).unwrap_or(0)))
    }
}

/// Text of a string. ZooKeeper writes each half of a surrogate pair by itself; `None` if it is no text either way.
pub(super) fn text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(Cow::Borrowed(text));
    }
    let (text, whole) = from_cesu8(bytes);
    whole.then_some(Cow::Owned(text))
}

/// The same, with U+FFFD for what is no text, as ZooKeeper reads it.
pub(super) fn text_lossy(bytes: &[u8]) -> Cow<'_, str> {
    text(bytes).unwrap_or_else(|| Cow::Owned(from_cesu8(bytes).0))
}

fn from_cesu8(bytes: &[u8]) -> (String, bool) {
    let (mut text, mut whole) = (String::new(), true);
    let mut rest = bytes;
    while !rest.is_empty() {
        let valid = match std::str::from_utf8(rest) {
            Ok(all) => all,
            Err(e) => std::str::from_utf8(&rest[..e.valid_up_to()]).expect("so far it was found valid"),
        };
        text.push_str(valid);
        rest = &rest[valid.len()..];
        match (rest, surrogate(rest), surrogate(rest.get(3..).unwrap_or(&[]))) {
            ([], ..) => {}
            (_, Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
                let scalar = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                text.push(char::from_u32(scalar).expect("a pair of surrogates is a character"));
                rest = &rest[6..];
            }
            _ => {
                text.push(char::REPLACEMENT_CHARACTER);
                whole = false;
                rest = &rest[1..];
            }
        }
    }
    (text, whole)
}

/// The surrogate that stands at the beginning.
fn surrogate(bytes: &[u8]) -> Option<u32> {
    match bytes {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] => {
            Some(0xd000 | (u32::from(*second & 0x3f) << 6) | u32::from(*third & 0x3f))
        }
        _ => None,
    }
}

/// A length or a count, which the writer's limits keep far below 2 GiB.
pub(super) fn put_len(out: &mut Vec<u8>, len: usize) {
    let len = i32::try_from(len).expect("limits are below 2 GiB");
    out.extend_from_slice(&len.to_be_bytes());
}

/// A buffer, or null.
pub(super) fn put_buffer(out: &mut Vec<u8>, data: Option<&[u8]>) {
    match data {
        None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        Some(data) => {
            put_len(out, data.len());
            out.extend_from_slice(data);
        }
    }
}

/// How many bytes a string takes, without its length.
pub(super) fn text_len(text: &str) -> usize {
    // Of four bytes, each half of the pair takes three.
    text.len() + 2 * text.bytes().filter(|byte| *byte >= 0xf0).count()
}

/// A string, each half of a surrogate pair by itself.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| byte < 0xf0) {
        return put_buffer(out, Some(text.as_bytes()));
    }
    let mut bytes = Vec::with_capacity(text.len() * 2);
    for c in text.chars() {
        let mut units = [0; 2];
        match c.encode_utf16(&mut units) {
            [high, low] => {
                for unit in [*high, *low] {
                    let [upper, lower] = unit.to_be_bytes();
                    let second = 0x80 | (upper & 0x0f) << 2 | lower >> 6;
                    bytes.extend_from_slice(&[0xed, second, 0x80 | lower & 0x3f]);
                }
            }
            _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    put_buffer(out, Some(&bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_beyond_the_first_plane_are_written_in_halves_and_read_in_either_way() {
        let mut out = Vec::new();
        put_text(&mut out, "a\u{1f600}\u{e4}");
        assert_eq!(out, [0, 0, 0, 9, b'a', 0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80, 0xc3, 0xa4]);
        assert_eq!(text(&out[4..]).as_deref(), Some("a\u{1f600}\u{e4}"));
        assert_eq!(text_len("a\u{1f600}\u{e4}"), 9);
        assert_eq!(text("\u{1f600}".as_bytes()).as_deref(), Some("\u{1f600}"));
        for broken in [&b"\xed\xa0\xbd"[..], b"\xed\xa0\xbdx", b"\xff", b"\xed\xb8\x80\xed\xa0\xbd"] {
            assert_eq!(text(broken), None, "{broken:?}");
            assert!(text_lossy(broken).starts_with('\u{fffd}'));
        }
    }

    #[test]
    fn null_is_not_empty_and_lengths_have_a_limit() {
        let read = |bytes: &[u8]| Input::new(bytes, 2).buffer().map(|b| b.map(<[u8]>::to_vec));
        assert_eq!(read(&[0xff; 4]), Ok(None));
        assert_eq!(read(&[0, 0, 0, 0]), Ok(Some(vec![])));
        assert_eq!(read(&[0, 0, 0, 2, 7, 8]), Ok(Some(vec![7, 8])));
        assert_eq!(read(&[0, 0, 0, 2, 7]), Err(Flaw::Short));
        assert_eq!(read(&[0, 0, 0, 3, 7, 8, 9]), Err(Flaw::Length(3)));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xfe]), Err(Flaw::Length(-2)));
        assert_eq!(Input::new(&[0xff; 4], 2).count(), Ok(None));
        assert_eq!(Input::new(&[0xff, 0xff, 0xff, 0xfe], 2).count(), Ok(Some(0)));
    }
}
