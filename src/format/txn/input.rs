use super::flaw::Flaw;

/// What is left of a txn while it is read, field after field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that were read since the input was `earlier`.
    pub(super) fn read_since(self, earlier: Input<'a>) -> &'a [u8] {
        &earlier.0[..earlier.0.len() - self.0.len()]
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let (field, rest) = self.0.split_first_chunk().ok_or(Flaw::Short)?;
        self.0 = rest;
        Ok(*field)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Flaw> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Flaw> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Flaw> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Flaw> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Flaw> {
        self.array().map(i64::from_le_bytes)
    }

    /// A length and so many bytes.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Flaw> {
        let len = usize::try_from(self.u32()?).map_err(|_| Flaw::Short)?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Flaw::Short)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A path: any text, since old logs hold paths that no server accepts any more.
    pub(super) fn path(&mut self) -> Result<&'a str, Flaw> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Flaw::Field("path"))
    }
}
