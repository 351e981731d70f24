//! Txns as they stand in ZooKeeper's log, made into ours.

use super::jute::{Flaw, Input, text_lossy};
use crate::base::limits::TTL_MS_MAX;
use crate::base::{Code, Zxid};
use crate::format::{AclBuf, AclEntry, Create, CreateKind, Ops, Paths, Perms, Txn, TxnBody};

/// The digest's version in every release.
pub(super) const DIGEST_VERSION: i32 = 2;
/// What the digest takes at the end of a txn.
const DIGEST_BYTES: usize = 12;

/// A txn that was read, owned.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadTxn {
    pub(super) zxid: Zxid,
    pub(super) time_ms: i64,
    session_id: i64,
    cxid: i32,
    digest: Option<u64>,
    body: Body,
}

/// What it does; see [`TxnBody`].
#[derive(Clone, PartialEq, Debug)]
enum Body {
    Create { path: String, data: Option<Vec<u8>>, acl: AclBuf, kind: CreateKind, parent_cversion: Option<i32> },
    Delete { path: String },
    DeleteContainer { path: String },
    SetData { path: String, data: Option<Vec<u8>>, version: i32 },
    Reconfig { path: String, data: Option<Vec<u8>>, version: i32 },
    SetAcl { path: String, acl: AclBuf, version: i32 },
    Check { path: String, version: i32 },
    CreateSession { timeout_ms: i32 },
    CloseSession { paths: Option<Vec<String>> },
    Error { code: i32 },
    Multi(Vec<Body>),
}

impl ReadTxn {
    /// Its place in the one order.
    pub fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// Shows it as a txn of ours.
    pub fn with<T>(&self, show: impl FnOnce(&Txn<'_>) -> T) -> T {
        let ops: Vec<TxnBody<'_>> = match &self.body {
            Body::Multi(ops) => ops.iter().map(Body::shown).collect(),
            _ => Vec::new(),
        };
        let body = match &self.body {
            Body::Multi(_) => TxnBody::Multi(Ops::from_slice(&ops)),
            body => body.shown(),
        };
        let ReadTxn { zxid, time_ms, session_id, cxid, digest, .. } = *self;
        show(&Txn { zxid, time_ms, session_id, cxid, digest, body })
    }

    /// Reads the payload of an entry.
    pub(super) fn decode(payload: &[u8], limit: u32) -> Result<ReadTxn, Flaw> {
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
        Ok(ReadTxn { zxid: Zxid::new(zxid), time_ms, session_id, cxid, digest, body })
    }
}

impl Body {
    fn shown(&self) -> TxnBody<'_> {
        match self {
            Body::Create { path, data, acl, kind, parent_cversion } => TxnBody::Create(Create {
                path,
                data: data.as_deref(),
                acl: acl.as_list(),
                kind: *kind,
                parent_cversion: *parent_cversion,
            }),
            Body::Delete { path } => TxnBody::Delete { path },
            Body::DeleteContainer { path } => TxnBody::DeleteContainer { path },
            Body::SetData { path, data, version } => {
                TxnBody::SetData { path, data: data.as_deref(), version: *version }
            }
            Body::Reconfig { path, data, version } => {
                TxnBody::Reconfig { path, data: data.as_deref(), version: *version }
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

fn body(input: &mut Input<'_>, kind: i32, in_multi: bool) -> Result<Body, Flaw> {
    match (kind, in_multi) {
        (-10, false) => Ok(Body::CreateSession { timeout_ms: input.i32()? }),
        (-1, _) => Ok(Body::Error { code: input.i32()? }),
        (1 | 15 | 19 | 21, _) => create(input, kind),
        (2, _) => Ok(Body::Delete { path: input.path()? }),
        (20, _) => Ok(Body::DeleteContainer { path: input.path()? }),
        (5, _) => {
            let (path, data) = (input.path()?, data(input)?);
            Ok(Body::SetData { path, data, version: input.i32()? })
        }
        (16, false) => {
            let (path, data) = (input.path()?, data(input)?);
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

fn create(input: &mut Input<'_>, kind: i32) -> Result<Body, Flaw> {
    let (path, data, acl) = (input.path()?, data(input)?, acl(input)?);
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
fn close_session(input: &mut Input<'_>) -> Result<Body, Flaw> {
    let rest = input.rest();
    let digest_alone = rest.len() == DIGEST_BYTES && rest.starts_with(&DIGEST_VERSION.to_be_bytes());
    if rest.is_empty() || digest_alone {
        return Ok(Body::CloseSession { paths: None });
    }
    let paths = match input.count()? {
        None => None,
        Some(count) => Some((0..count).map(|_| input.path()).collect::<Result<_, _>>()?),
    };
    Ok(Body::CloseSession { paths })
}

fn multi(input: &mut Input<'_>) -> Result<Body, Flaw> {
    let mut ops = Vec::new();
    for _ in 0..input.count()?.unwrap_or(0) {
        let kind = input.i32()?;
        let bytes = input.buffer()?.ok_or(Flaw::Field("operation"))?;
        // Within the limit, since the whole is.
        ops.push(body(&mut Input::new(bytes, u32::MAX), kind, true)?);
    }
    Ok(Body::Multi(ops))
}

fn data(input: &mut Input<'_>) -> Result<Option<Vec<u8>>, Flaw> {
    Ok(input.buffer()?.map(<[u8]>::to_vec))
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
