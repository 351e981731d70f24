use super::TxnBody;

/// Several paths.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Paths<'a> {
    /// As the leader gathered them.
    Slice(&'a [String]),
}

impl<'a> Paths<'a> {
    /// The paths in order.
    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        match self {
            Paths::Slice(paths) => paths.iter().map(String::as_str),
        }
    }
}

/// The operations of a multi.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Ops<'a> {
    /// As the leader gathered them.
    Slice(&'a [TxnBody<'a>]),
}

impl<'a> Ops<'a> {
    /// The operations in order. None of them is a multi.
    pub fn iter(self) -> impl Iterator<Item = TxnBody<'a>> {
        match self {
            Ops::Slice(ops) => ops.iter().copied(),
        }
    }
}
