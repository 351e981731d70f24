use super::kind::VERSION;
use crate::base::{Error, ErrorKind, Zxid};

/// Why bytes are no txn: what [`Error`] tells, as small as the way through the decoder wants it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// A field goes on behind the end.
    Short,
    /// Something stands behind the last field.
    Long,
    /// An encoding of another version.
    Version(u8),
    /// No operation has this number.
    Kind(u8),
    /// This one may not stand in a multi.
    KindInMulti(u8),
    /// A field, by its name for people, has a value that is never written.
    Field(&'static str),
}

impl Flaw {
    #[cold]
    pub(super) fn into_error(self, zxid: Zxid) -> Error {
        let error = match self {
            Flaw::Short => Error::corrupt("txn_short", "the txn ends before its last field does"),
            Flaw::Long => Error::corrupt("txn_long", "the txn goes on behind its last field"),
            Flaw::Version(version) => Error::new(
                ErrorKind::Unsupported,
                "txn_version",
                format!("the txn is encoded in version {version}; this arborlog reads version {VERSION}"),
            ),
            Flaw::Kind(number) => Error::corrupt("txn_kind", format!("no txn is of kind {number}")),
            Flaw::KindInMulti(number) => {
                Error::corrupt("txn_kind", format!("the txn has an operation of kind {number} in a multi"))
            }
            Flaw::Field(name) => {
                Error::corrupt("txn_field", format!("the txn's {name} has a value that is never written"))
            }
        };
        error.with_zxids(zxid, zxid)
    }
}
