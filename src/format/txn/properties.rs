//! What holds for all txns and all bytes: each txn has one encoding, and no other bytes are taken for one.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::kind::{Kind, VERSION};
use super::{Create, CreateKind, Ops, Paths, Txn, TxnBody};
use crate::base::limits::TTL_MS_MAX;
use crate::base::{Code, ErrorKind, Zxid};
use crate::format::{AclBuf, AclEntry, Perms};

/// What an operation of any kind is made of, owned.
#[derive(Clone, Debug)]
struct Parts {
    kind: u8,
    path: String,
    data: Option<Vec<u8>>,
    acl: AclBuf,
    paths: Option<Vec<String>>,
    parent_cversion: Option<i32>,
    ephemeral: bool,
    ttl_ms: i64,
    number: i32,
}

impl Parts {
    fn create(&self, kind: CreateKind) -> TxnBody<'_> {
        let (path, data, acl) = (self.path.as_str(), self.data.as_deref(), self.acl.as_list());
        TxnBody::Create(Create { path, data, acl, kind, parent_cversion: self.parent_cversion })
    }

    /// `ops` are those of a multi.
    fn body<'a>(&'a self, ops: &'a [TxnBody<'a>]) -> TxnBody<'a> {
        let (path, data, version) = (self.path.as_str(), self.data.as_deref(), self.number);
        let paths = self.paths.as_deref().map(Paths::from_slice);
        let ephemeral = self.ephemeral;
        match Kind::of_number(self.kind).expect("a kind") {
            Kind::Create => self.create(CreateKind::Plain { ephemeral }),
            Kind::CreateWithStat => self.create(CreateKind::WithStat { ephemeral }),
            Kind::CreateContainer => self.create(CreateKind::Container),
            Kind::CreateTtl => self.create(CreateKind::Ttl { ttl_ms: self.ttl_ms }),
            Kind::Delete => TxnBody::Delete { path },
            Kind::DeleteContainer => TxnBody::DeleteContainer { path },
            Kind::DeleteAll => TxnBody::DeleteAll { paths: paths.unwrap_or(Paths::from_slice(&[])) },
            Kind::SetData => TxnBody::SetData { path, data, version },
            Kind::Reconfig => TxnBody::Reconfig { path, data, version },
            Kind::SetAcl => TxnBody::SetAcl { path, acl: self.acl.as_list(), version },
            Kind::Check => TxnBody::Check { path, version },
            Kind::CreateSession => TxnBody::CreateSession { timeout_ms: version },
            Kind::CloseSession => TxnBody::CloseSession { paths },
            Kind::Error => TxnBody::Error { code: Code::new(version) },
            Kind::Multi => TxnBody::Multi(Ops::from_slice(ops)),
        }
    }
}

fn acls() -> impl Strategy<Value = AclBuf> {
    vec((any::<i32>(), "[a-z]{0,6}", ".{0,6}"), 0..3).prop_map(|entries| {
        let mut list = AclBuf::new();
        for (perms, scheme, id) in &entries {
            list.push(AclEntry { perms: Perms::new(*perms), scheme, id });
        }
        list
    })
}

fn parts(kinds: impl Strategy<Value = u8>) -> impl Strategy<Value = Parts> {
    let texts = ("/.{0,12}", option::of(vec(any::<u8>(), 0..40)), acls(), option::of(vec("/.{0,8}", 0..4)));
    let numbers = (option::of(any::<i32>()), any::<bool>(), 1..=TTL_MS_MAX, any::<i32>());
    (kinds, texts, numbers).prop_map(|(kind, (path, data, acl, paths), numbers)| {
        let (parent_cversion, ephemeral, ttl_ms, number) = numbers;
        Parts { kind, path, data, acl, paths, parent_cversion, ephemeral, ttl_ms, number }
    })
}

/// A txn and the operations that it has if it is a multi.
fn owned() -> impl Strategy<Value = (Parts, Vec<Parts>, i64, i32, Option<u64>)> {
    let in_multi = (1u8..=15)
        .prop_filter("may be in a multi", |kind| Kind::of_number(*kind).is_some_and(Kind::may_be_in_multi));
    let session = prop_oneof![Just(0), any::<i64>()];
    // A multi as often as all else together.
    let kind = prop_oneof![1u8..=14, Just(Kind::Multi.number())];
    (parts(kind), vec(parts(in_multi), 0..5), session, any::<i32>(), option::of(any::<u64>()))
}

/// Goes through everything that is read lazily.
fn touch(txn: &Txn<'_>) -> usize {
    format!("{txn:?}").len()
}

fn encoded(txn: &Txn<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    txn.encode(&mut bytes);
    bytes
}

/// What must hold for any bytes.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    match Txn::decode(Zxid::new(7), -3, bytes) {
        Ok(txn) => {
            touch(&txn);
            prop_assert_eq!(encoded(&txn), bytes, "two encodings of {:?}", txn);
        }
        Err(error) => {
            prop_assert_eq!(error.at().zxid, Some(Zxid::new(7)));
            let is_newer = bytes.first().is_some_and(|version| *version != VERSION);
            prop_assert_eq!(error.kind() == ErrorKind::Unsupported, is_newer, "{}", error);
            prop_assert_eq!(error.kind() == ErrorKind::Corrupt, !is_newer, "{}", error);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_txn_is_read_back((parts, ops, session_id, cxid, digest) in owned(), zxid: u64, time_ms: i64) {
        let ops: Vec<TxnBody<'_>> = ops.iter().map(|op| op.body(&[])).collect();
        let body = parts.body(&ops);
        let txn = Txn { zxid: Zxid::new(zxid), time_ms, session_id, cxid, digest, body };
        let bytes = encoded(&txn);
        let back = Txn::decode(txn.zxid, time_ms, &bytes).unwrap();
        prop_assert_eq!(back, txn);
        prop_assert_eq!(format!("{back:?}"), format!("{txn:?}"));
        prop_assert_eq!(&encoded(&back), &bytes);
        let buffer = txn.to_buf();
        prop_assert_eq!(buffer.as_txn(), txn);
        prop_assert_eq!(buffer.as_bytes(), &bytes);
    }

    #[test]
    fn a_txn_that_was_cut_or_changed_is_refused_or_another(
        (parts, ops, session_id, cxid, digest) in owned(), change in 1u8..,
    ) {
        let ops: Vec<TxnBody<'_>> = ops.iter().map(|op| op.body(&[])).collect();
        let body = parts.body(&ops);
        let txn = Txn { zxid: Zxid::new(7), time_ms: -3, session_id, cxid, digest, body };
        let mut bytes = encoded(&txn);
        for len in 0..bytes.len() {
            let error = Txn::decode(txn.zxid, txn.time_ms, &bytes[..len]).unwrap_err();
            prop_assert_eq!(error.code(), "txn_short", "cut to {}", len);
        }
        for at in 0..bytes.len() {
            for change in [change, 1, 2, 4, 8, 0x80] {
                bytes[at] ^= change;
                check(&bytes)?;
                prop_assert_ne!(Txn::decode(txn.zxid, txn.time_ms, &bytes).ok(), Some(txn), "byte {}", at);
                bytes[at] ^= change;
            }
        }
        bytes.push(change);
        prop_assert_eq!(Txn::decode(txn.zxid, txn.time_ms, &bytes).unwrap_err().code(), "txn_long");
    }

    #[test]
    fn no_bytes_make_a_reader_panic(
        mut bytes in vec(prop_oneof![0u8..16, any::<u8>()], 0..120), kind in 1u8..=15, flags in 0u8..4,
    ) {
        check(&bytes)?;
        // And with a head that leads into the body.
        if let [version, head, _, _, _, _, rest @ ..] = &mut bytes[..] {
            (*version, *head) = (VERSION, flags);
            let at = usize::from(flags & 1) * 8 + usize::from(flags & 2) * 4;
            if let Some(number) = rest.get_mut(at) {
                *number = kind;
            }
            check(&bytes)?;
        }
    }
}
