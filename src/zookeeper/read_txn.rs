//! Txns as they stand in ZooKeeper's log, made into ours.

use std::borrow::Cow;

use super::jute::{Flaw, Input, text_lossy};
use crate::base::limits::TTL_MS_MAX;
use crate::base::{Code, Zxid};
use crate::format::{AclBuf, AclEntry, Create, CreateKind, Ops, Paths, Perms, Txn, TxnBody};

/// The digest's version in every release.
pub(super) const DIGEST_VERSION: i32 = 2;
/// What the digest takes at the end of a txn.
const DIGEST_BYTES: usize = 12;

/// For so many bytes of the longest payload that is read, a multi may have an operation, and a session's end a path.
const BYTES_FOR_EACH: u32 = 64;
/// So many they may have whatever the limit is.
const COUNT_MIN: u32 = 1024;

/// A txn that was read, owned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadTxn {
    /// The payload of its entry, which was decoded once.
    payload: Vec<u8>,
    zxid: Zxid,
}

/// A txn as its payload has it. Whoever applies txns by the million has nothing of them copied.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Decoded<'a> {
    pub(super) zxid: Zxid,
    pub(super) time_ms: i64,
    session_id: i64,
    cxid: i32,
    digest: Option<u64>,
    body: Body<'a>,
}

/// What it does; see [`TxnBody`].
#[derive(Clone, PartialEq, Debug)]
enum Body<'a> {
    Create {
        path: Cow<'a, str>,
        data: Option<&'a [u8]>,
        acl: AclBuf,
        kind: CreateKind,
        parent_cversion: Option<i32>,
    },
    Delete {
        path: Cow<'a, str>,
    },
    DeleteContainer {
        path: Cow<'a, str>,
    },
    SetData {
        path: Cow<'a, str>,
        data: Option<&'a [u8]>,
        version: i32,
    },
    Reconfig {
        path: Cow<'a, str>,
        data: Option<&'a [u8]>,
        version: i32,
    },
    SetAcl {
        path: Cow<'a, str>,
        acl: AclBuf,
        version: i32,
    },
    Check {
        path: Cow<'a, str>,
        version: i32,
    },
    CreateSession {
        timeout_ms: i32,
    },
    CloseSession {
        paths: Option<Vec<String>>,
    },
    Error {
        code: i32,
    },
    Multi(Vec<Body<'a>>),
}

impl ReadTxn {
    /// Its place in the one order.
    pub fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// Shows it as a txn of ours.
    pub fn with<T>(&self, show: impl FnOnce(&Txn<'_>) -> T) -> T {
        let txn = Decoded::read(&self.payload, u32::MAX).expect("it was decoded once");
        show(&txn.shown(&txn.ops()))
    }

    /// Reads the payload of an entry.
    pub(super) fn decode(payload: &[u8], limit: u32) -> Result<ReadTxn, Flaw> {
        let zxid = Decoded::read(payload, limit)?.zxid;
        Ok(ReadTxn { payload: payload.to_vec(), zxid })
    }
}

impl<'p> Decoded<'p> {
    /// The operations of a multi, for [`shown`](Self::shown).
    pub(super) fn ops(&self) -> Vec<TxnBody<'_>> {
        match &self.body {
            Body::Multi(ops) => ops.iter().map(Body::shown).collect(),
            _ => Vec::new(),
        }
    }

    /// It as a txn of ours; `ops` are its own.
    pub(super) fn shown<'a>(&'a self, ops: &'a [TxnBody<'a>]) -> Txn<'a> {
        let body = match &self.body {
            Body::Multi(_) => TxnBody::Multi(Ops::from_slice(ops)),
            body => body.shown(),
        };
        let Decoded { zxid, time_ms, session_id, cxid, digest, .. } = *self;
        Txn { zxid, time_ms, session_id, cxid, digest, body }
    }

    /// Reads the payload of an entry.
    pub(super) fn read(payload: &'p [u8], limit: u32) -> Result<Decoded<'p>, Flaw> {
        let mut input = Input::new(payload, limit);
        let session_id = input.i64()?;
        let cxid = input.i32()?;
        // Names of files cannot tell a zxid below 0, so no server has got there.
        let zxid = u64::try_from(input.i64()?).map_err(|_| Flaw::Field("zxid"))?;
        let time_ms = input.i64()?;
        let kind = input.i32()?;
        let body = if kind == -11 { close_session(&mut input)? } else { body(&mut input, kind, false)? };
        // What else stands behind is ignored, as every server does.
        let digest = match input.i32() {
            Ok(DIGEST_VERSION) => input.i64().ok().map(i64::cast_unsigned),
            _ => None,
        };
        Ok(Decoded { zxid: Zxid::new(zxid), time_ms, session_id, cxid, digest, body })
    }
}

/// The zxid that stands in a payload, whatever else does.
pub(super) fn zxid_of(payload: &[u8]) -> Option<Zxid> {
    let bytes = payload.get(12..20)?.first_chunk()?;
    Some(Zxid::new(u64::from_be_bytes(*bytes)))
}

impl Body<'_> {
    fn shown(&self) -> TxnBody<'_> {
        match self {
            Body::Create { path, data, acl, kind, parent_cversion } => TxnBody::Create(Create {
                path,
                data: *data,
                acl: acl.as_list(),
                kind: *kind,
                parent_cversion: *parent_cversion,
            }),
            Body::Delete { path } => TxnBody::Delete { path },
            Body::DeleteContainer { path } => TxnBody::DeleteContainer { path },
            Body::SetData { path, data, version } => {
                TxnBody::SetData { path, data: *data, version: *version }
            }
            Body::Reconfig { path, data, version } => {
                TxnBody::Reconfig { path, data: *data, version: *version }
            }
            Body::SetAcl { path, acl, version } => {
                TxnBody::SetAcl { path, acl: acl.as_list(), version: *version }
            }
            Body::Check { path, version } => TxnBody::Check { path, version: *version },
            Body::CreateSession { timeout_ms } => TxnBody::CreateSession { timeout_ms: *timeout_ms },
            Body::CloseSession { paths } => {
                TxnBody::CloseSession { paths: paths.as_deref().map(Paths::from_slice) }
            }
            Body::Error { code } => TxnBody::Error { code: Code::new(*code) },
            Body::Multi(_) => TxnBody::Multi(Ops::from_slice(&[])),
        }
    }
}

fn body<'a>(input: &mut Input<'a>, kind: i32, in_multi: bool) -> Result<Body<'a>, Flaw> {
    match (kind, in_multi) {
        (-10, false) => Ok(Body::CreateSession { timeout_ms: input.i32()? }),
        (-1, _) => Ok(Body::Error { code: input.i32()? }),
        (1 | 15 | 19 | 21, _) => create(input, kind),
        (2, _) => Ok(Body::Delete { path: input.path()? }),
        (20, _) => Ok(Body::DeleteContainer { path: input.path()? }),
        (5, _) => {
            let (path, data) = (input.path()?, input.buffer()?);
            Ok(Body::SetData { path, data, version: input.i32()? })
        }
        (16, false) => {
            let (path, data) = (input.path()?, input.buffer()?);
            Ok(Body::Reconfig { path, data, version: input.i32()? })
        }
        (7, false) => {
            let (path, acl) = (input.path()?, acl(input)?);
            Ok(Body::SetAcl { path, acl, version: input.i32()? })
        }
        // Alone, old servers could log it (ZOOKEEPER-2623) and not read it again; it does nothing.
        (13, _) => Ok(Body::Check { path: input.path()?, version: input.i32()? }),
        (14, false) => multi(input),
        _ => Err(Flaw::Type(kind)),
    }
}

fn create<'a>(input: &mut Input<'a>, kind: i32) -> Result<Body<'a>, Flaw> {
    let (path, data, acl) = (input.path()?, input.buffer()?, acl(input)?);
    let mut ephemeral = false;
    if matches!(kind, 1 | 15) {
        ephemeral = input.bool()?;
    }
    // Up to 3.3 there is no count. -1 leaves it to the parent.
    let parent_cversion = if kind == 1 && input.rest().is_empty() { -1 } else { input.i32()? };
    let kind = match kind {
        1 => CreateKind::Plain { ephemeral },
        15 => CreateKind::WithStat { ephemeral },
        19 => CreateKind::Container,
        _ => {
            let ttl_ms = input.i64()?;
            if !(1..=TTL_MS_MAX).contains(&ttl_ms) {
                return Err(Flaw::Field("time to live"));
            }
            CreateKind::Ttl { ttl_ms }
        }
    };
    let parent_cversion = Some(parent_cversion).filter(|count| *count != -1);
    Ok(Body::Create { path, data, acl, kind, parent_cversion })
}

/// Since 3.6 with a list of paths, unless that is switched off; then a digest may stand in its place.
fn close_session<'a>(input: &mut Input<'a>) -> Result<Body<'a>, Flaw> {
    let rest = input.rest();
    let digest_alone = rest.len() == DIGEST_BYTES && rest.starts_with(&DIGEST_VERSION.to_be_bytes());
    if rest.is_empty() || digest_alone {
        return Ok(Body::CloseSession { paths: None });
    }
    let paths = match input.count()? {
        None => None,
        Some(count) => {
            let count = bounded(input, count)?;
            Some((0..count).map(|_| input.path().map(Cow::into_owned)).collect::<Result<_, _>>()?)
        }
    };
    Ok(Body::CloseSession { paths })
}

/// A count of operations or paths. Each takes more memory than bytes, if it has few, so they are held to the limit too.
fn bounded(input: &Input<'_>, count: u32) -> Result<u32, Flaw> {
    if count > (input.limit() / BYTES_FOR_EACH).max(COUNT_MIN) { Err(Flaw::Count(count)) } else { Ok(count) }
}

fn multi<'a>(input: &mut Input<'a>) -> Result<Body<'a>, Flaw> {
    let mut ops = Vec::new();
    let count = input.count()?.unwrap_or(0);
    for _ in 0..bounded(input, count)? {
        let kind = input.i32()?;
        let bytes = input.buffer()?.ok_or(Flaw::Field("operation"))?;
        // Within the limit, since the whole is.
        ops.push(body(&mut Input::new(bytes, u32::MAX), kind, true)?);
    }
    Ok(Body::Multi(ops))
}

/// A list of ACL entries; of a null list, none.
pub(super) fn acl(input: &mut Input<'_>) -> Result<AclBuf, Flaw> {
    let mut list = AclBuf::new();
    for _ in 0..input.count()?.unwrap_or(0) {
        let perms = Perms::new(input.i32()?);
        let scheme = text_lossy(input.buffer()?.ok_or(Flaw::Field("ACL scheme"))?);
        let id = text_lossy(input.buffer()?.ok_or(Flaw::Field("ACL id"))?);
        if u16::try_from(scheme.len()).is_err() {
            return Err(Flaw::Field("ACL scheme"));
        }
        list.push(AclEntry { perms, scheme: &scheme, id: &id });
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::super::format::ZkFormat;
    use super::super::jute::{put_buffer, put_len, put_text};
    use super::super::write_txn::put_txn;
    use super::*;
    use crate::format::AclList;
    use crate::tree::{DataTree, Outcome, random_txns};

    fn payload(kind: i32, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 28];
        bytes[19] = 9;
        bytes.extend(kind.to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    fn read(kind: i32, rest: &[u8]) -> Result<ReadTxn, Flaw> {
        ReadTxn::decode(&payload(kind, rest), 1000)
    }

    fn digest(value: u64) -> Vec<u8> {
        [&2_i32.to_be_bytes()[..], &value.to_be_bytes()].concat()
    }

    fn as_plain(op: TxnBody<'_>) -> TxnBody<'_> {
        match op {
            TxnBody::Create(Create {
                kind: CreateKind::WithStat { ephemeral },
                path,
                data,
                acl,
                parent_cversion,
            }) => {
                let kind = CreateKind::Plain { ephemeral };
                TxnBody::Create(Create { path, data, acl, kind, parent_cversion })
            }
            op => op,
        }
    }

    #[test]
    fn all_txns_come_back_as_they_were_written() {
        for txn in random_txns(5, 3000) {
            let txn = txn.as_txn();
            let mut bytes = Vec::new();
            let written = put_txn(&mut bytes, &txn, Some(7), ZkFormat::V3_9);
            if let TxnBody::Multi(ops) = &txn.body
                && ops.iter().any(|op| matches!(op, TxnBody::SetAcl { .. }))
            {
                // ZooKeeper has no such multi.
                assert!(written.is_err());
                continue;
            }
            written.unwrap();
            let back = ReadTxn::decode(&bytes, 1 << 20).unwrap();
            let digest = Some(7).filter(|_| !matches!(txn.body, TxnBody::Error { .. }));
            let body = match txn.body {
                // A list must be there.
                TxnBody::CloseSession { paths: None } => {
                    TxnBody::CloseSession { paths: Some(Paths::from_slice(&[])) }
                }
                ref check @ TxnBody::Check { .. } => {
                    let check = [*check];
                    back.with(|back| assert_eq!(back.body, TxnBody::Multi(Ops::from_slice(&check))));
                    continue;
                }
                body => body,
            };
            let is_other = match &txn.body {
                TxnBody::DeleteAll { .. } => true,
                TxnBody::Multi(ops) => ops.iter().any(|op| matches!(op, TxnBody::DeleteAll { .. })),
                _ => false,
            };
            if !is_other {
                // In a multi, a create2 is written as a create, which does the same.
                let plain: Vec<TxnBody<'_>> = match &body {
                    TxnBody::Multi(ops) => ops.iter().map(as_plain).collect(),
                    _ => Vec::new(),
                };
                let is_multi = matches!(body, TxnBody::Multi(_));
                let body = if is_multi { TxnBody::Multi(Ops::from_slice(&plain)) } else { body };
                back.with(|back| assert_eq!(*back, Txn { digest, body, ..txn }));
            }
            for len in 0..bytes.len() {
                // Whatever it is taken for, it is no panic.
                let _cut = ReadTxn::decode(&bytes[..len], 1 << 20);
            }
        }
    }

    #[test]
    fn tx_01_a_check_by_itself_that_old_servers_logged_is_read_and_does_nothing() {
        let mut rest = Vec::new();
        put_text(&mut rest, "/a");
        rest.extend(3_i32.to_be_bytes());
        read(13, &rest).unwrap().with(|txn| {
            assert_eq!((txn.zxid.get(), txn.body), (9, TxnBody::Check { path: "/a", version: 3 }));
            // With the node and without it: it has been checked when it was logged.
            for nodes in [0, 1] {
                let mut tree = DataTree::new();
                for path in ["/a"].iter().take(nodes) {
                    let kind = CreateKind::Plain { ephemeral: false };
                    let acl = AclList::EMPTY;
                    let body = TxnBody::Create(Create { path, data: None, acl, kind, parent_cversion: None });
                    tree.apply(&Txn { zxid: Zxid::new(8), body, ..*txn }, &mut ());
                }
                let before = (tree.digest(), tree.len());
                assert_eq!(tree.apply(txn, &mut ()), Outcome::Done);
                assert_eq!((tree.digest(), tree.len()), before);
                assert_eq!((tree.last_zxid(), tree.get("/a").is_some()), (txn.zxid, nodes == 1));
            }
        });
    }

    #[test]
    fn the_end_of_a_session_is_told_from_a_digest() {
        let paths = |txn: ReadTxn| {
            txn.with(|txn| match &txn.body {
                TxnBody::CloseSession { paths } => {
                    (paths.map(|paths| paths.iter().map(str::to_owned).collect::<Vec<_>>()), txn.digest)
                }
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(paths(read(-11, &[]).unwrap()), (None, None));
        // Servers fail on these, since they take the digest for a list of paths.
        for value in [0xf000_0000_u64, 0x1122_3344_5566_7788] {
            assert_eq!(paths(read(-11, &digest(value)).unwrap()), (None, Some(value)));
        }
        let mut list = Vec::new();
        put_len(&mut list, 1);
        put_text(&mut list, "/e");
        assert_eq!(paths(read(-11, &list).unwrap()), (Some(vec!["/e".to_owned()]), None));
        list.extend(digest(5));
        assert_eq!(paths(read(-11, &list).unwrap()), (Some(vec!["/e".to_owned()]), Some(5)));
    }

    #[test]
    fn a_create_of_old_servers_has_no_count_and_minus_one_is_none() {
        let mut rest = Vec::new();
        put_text(&mut rest, "/a");
        put_buffer(&mut rest, None);
        rest.extend((-1_i32).to_be_bytes());
        rest.push(0);
        let count = |rest: &[u8]| {
            read(1, rest).unwrap().with(|txn| match &txn.body {
                TxnBody::Create(Create { parent_cversion, data: None, .. }) => *parent_cversion,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(count(&rest), None);
        rest.extend((-1_i32).to_be_bytes());
        assert_eq!(count(&rest), None);
        rest.splice(rest.len() - 4.., 6_i32.to_be_bytes());
        assert_eq!(count(&rest), Some(6));
        assert_eq!(read(15, &rest[..rest.len() - 4]).unwrap_err(), Flaw::Short);
    }

    #[test]
    fn what_no_server_applies_is_refused() {
        assert_eq!(read(99, &[]).unwrap_err(), Flaw::Type(99));
        let mut ttl = Vec::new();
        put_text(&mut ttl, "/a");
        put_buffer(&mut ttl, None);
        ttl.extend((-1_i32).to_be_bytes());
        ttl.extend(1_i32.to_be_bytes());
        for ms in [0, -1, TTL_MS_MAX + 1] {
            let rest = [&ttl[..], &i64::to_be_bytes(ms)].concat();
            assert_eq!(read(21, &rest).unwrap_err(), Flaw::Field("time to live"));
        }
        // Sessions, lists and multis do not stand in a multi.
        for kind in [-10, -11, 7, 14, 16] {
            let mut rest = Vec::new();
            put_len(&mut rest, 1);
            rest.extend(i32::to_be_bytes(kind));
            put_buffer(&mut rest, Some(&[0; 40]));
            assert_eq!(read(14, &rest).unwrap_err(), Flaw::Type(kind));
        }
        let mut below = payload(-1, &[0; 4]);
        below[12] = 0x80;
        assert_eq!(ReadTxn::decode(&below, 9).unwrap_err(), Flaw::Field("zxid"));
    }
}
