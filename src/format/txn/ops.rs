use std::fmt;

use super::TxnBody;
use super::decode::{Within, read_body};
use super::flaw::Flaw;
use super::input::Input;
use super::kind::Kind;

/// The operations of a multi in order: gathered by a leader, or still as a decoded txn has them. Both compare by
/// the operations.
///
/// An operation is a create, delete, `DeleteContainer`, `DeleteAll`, `SetData`, `SetAcl`, check or error.
#[derive(Clone, Copy)]
pub struct Ops<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    Slice(&'a [TxnBody<'a>]),
    /// So many, one behind the other; `read` has gone through them once.
    Encoded {
        count: u32,
        bytes: &'a [u8],
    },
}

impl<'a> Ops<'a> {
    /// These operations.
    ///
    /// # Panics
    /// If one of them is a multi, a reconfig, or begins or ends a session; or if there are 2^32 or more.
    pub fn from_slice(ops: &'a [TxnBody<'a>]) -> Ops<'a> {
        assert!(u32::try_from(ops.len()).is_ok(), "{} operations are more than a txn takes", ops.len());
        for op in ops {
            let kind = Kind::of_body(op);
            assert!(kind.may_be_in_multi(), "{kind:?} may not stand in a multi");
        }
        Ops(Form::Slice(ops))
    }

    /// How many there are.
    pub fn len(self) -> usize {
        match self.0 {
            Form::Slice(ops) => ops.len(),
            Form::Encoded { count, .. } => count as usize,
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The operations in order. None of them is a multi.
    pub fn iter(self) -> impl Iterator<Item = TxnBody<'a>> {
        // One half of the chain is empty.
        let (slice, bytes): (&[TxnBody<'a>], &[u8]) = match self.0 {
            Form::Slice(ops) => (ops, &[]),
            Form::Encoded { bytes, .. } => (&[], bytes),
        };
        let mut input = Input::new(bytes);
        let encoded = std::iter::from_fn(move || {
            (!input.is_empty()).then(|| {
                read_body(&mut input, Within::Multi).expect("reading the multi has read each operation")
            })
        });
        slice.iter().copied().chain(encoded)
    }

    /// Reads a list. What it takes is bounded by the input, whatever the count says: an operation has bytes.
    pub(super) fn read(input: &mut Input<'a>) -> Result<Ops<'a>, Flaw> {
        let count = input.u32()?;
        let start = *input;
        for _ in 0..count {
            read_body(input, Within::Multi)?;
        }
        Ok(Ops(Form::Encoded { count, bytes: input.read_since(start) }))
    }
}

impl PartialEq for Ops<'_> {
    fn eq(&self, other: &Ops<'_>) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Ops<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Zxid;
    use crate::format::{Paths, Txn};

    fn multi<'a>(ops: &'a [TxnBody<'a>]) -> Txn<'a> {
        let body = TxnBody::Multi(Ops::from_slice(ops));
        Txn { zxid: Zxid::new(1), time_ms: 0, session_id: 0, cxid: 0, digest: None, body }
    }

    #[test]
    fn both_forms_compare_by_what_is_in_them() {
        let paths = ["/a/b", "/a"].map(str::to_owned);
        let (all, one) = (Paths::from_slice(&paths), Paths::from_slice(&paths[..1]));
        let lists: [&[TxnBody<'_>]; 5] = [
            &[],
            &[TxnBody::Delete { path: "/a" }],
            &[TxnBody::Delete { path: "/b" }],
            &[TxnBody::DeleteAll { paths: all }, TxnBody::Check { path: "/c", version: 3 }],
            &[TxnBody::DeleteAll { paths: one }, TxnBody::Check { path: "/c", version: 3 }],
        ];
        let buffers = lists.map(|ops| multi(ops).to_buf());
        for (at, buffer) in buffers.iter().enumerate() {
            for (other, ops) in lists.into_iter().enumerate() {
                assert_eq!(buffer.as_txn() == multi(ops), at == other, "{at} {other}");
                assert_eq!(multi(ops) == buffer.as_txn(), at == other, "{at} {other}");
                assert_eq!(buffer.as_txn() == buffers[other].as_txn(), at == other, "{at} {other}");
            }
            let TxnBody::Multi(ops) = buffer.as_txn().body else { panic!("a multi") };
            assert_eq!((ops.len(), ops.is_empty()), (lists[at].len(), lists[at].is_empty()));
            assert_eq!(ops.iter().count(), ops.len());
        }
    }
}
