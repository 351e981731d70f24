use std::fmt;

use super::Txn;
use crate::base::{Result, Zxid};

/// Room for a small txn, so that most are encoded without growing.
const BYTES_EXPECTED: usize = 256;

/// A txn that owns its bytes: the payload of its record, and zxid and time. Equal if and only if the txns are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TxnBuf {
    zxid: Zxid,
    time_ms: i64,
    /// Decodes without an error.
    bytes: Box<[u8]>,
}

impl TxnBuf {
    /// Takes the payload of a record, as it was read or received.
    ///
    /// # Errors
    /// As [`Txn::decode`].
    pub fn from_bytes(zxid: Zxid, time_ms: i64, bytes: impl Into<Box<[u8]>>) -> Result<TxnBuf> {
        let bytes = bytes.into();
        Txn::decode(zxid, time_ms, &bytes)?;
        Ok(TxnBuf { zxid, time_ms, bytes })
    }

    /// Its place in the one order.
    pub fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// The leader's wall clock in milliseconds.
    pub fn time_ms(&self) -> i64 {
        self.time_ms
    }

    /// The payload of its record.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Borrowed.
    pub fn as_txn(&self) -> Txn<'_> {
        Txn::decode(self.zxid, self.time_ms, &self.bytes).expect("the bytes were encoded or decoded before")
    }
}

impl fmt::Debug for TxnBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_txn().fmt(f)
    }
}

impl Txn<'_> {
    /// A copy that owns its bytes.
    ///
    /// # Panics
    /// As [`encode`](Txn::encode).
    pub fn to_buf(&self) -> TxnBuf {
        self.encoded_by(&mut Vec::with_capacity(BYTES_EXPECTED))
    }

    /// The same, encoded in a buffer that is kept for the next one: the bytes take one allocation of their size.
    pub(crate) fn encoded_by(&self, buffer: &mut Vec<u8>) -> TxnBuf {
        buffer.clear();
        self.encode(buffer);
        TxnBuf { zxid: self.zxid, time_ms: self.time_ms, bytes: buffer.as_slice().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Code, ErrorKind};
    use crate::format::TxnBody;

    #[test]
    fn only_a_txn_is_taken_and_kept_as_it_is() {
        let body = TxnBody::Error { code: Code::NO_NODE };
        let txn = Txn { zxid: Zxid::new(9), time_ms: -1, session_id: 0, cxid: 5, digest: None, body };
        let buffer = txn.to_buf();
        let again = TxnBuf::from_bytes(txn.zxid, txn.time_ms, buffer.as_bytes()).unwrap();
        assert_eq!((again.as_txn(), again.zxid(), again.time_ms()), (txn, txn.zxid, txn.time_ms));
        assert_eq!(again, buffer);
        assert_ne!(TxnBuf::from_bytes(Zxid::new(8), txn.time_ms, buffer.as_bytes()).unwrap(), buffer);
        assert_eq!(format!("{buffer:?}"), format!("{txn:?}"));
    }

    #[test]
    fn each_flaw_has_its_code() {
        let corrupt = [
            ("txn_short", [1, 0, 0, 0, 0, 0, 14, 0].as_slice()),
            ("txn_long", &[1, 0, 0, 0, 0, 0, 14, 0, 0, 0, 0, 0, 0]),
            ("txn_kind", &[1, 0, 0, 0, 0, 0, 16, 0]),
            ("txn_kind", &[1, 0, 0, 0, 0, 0, 15, 0, 1, 0, 0, 0, 15, 0, 0, 0, 0, 0]),
            ("txn_field", &[1, 0xff, 0, 0, 0, 0, 14, 0]),
        ];
        for (code, bytes) in corrupt {
            let error = TxnBuf::from_bytes(Zxid::new(9), 0, bytes).unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, code), "{error}");
            assert!(error.to_string().contains("(zxid 0x9)"), "{error}");
        }
        let error = TxnBuf::from_bytes(Zxid::new(9), 0, [2, 0].as_slice()).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "txn_version"), "{error}");
    }
}
