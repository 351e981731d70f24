use super::kind::{
    HAS_DATA, HAS_DIGEST, HAS_PARENT_CVERSION, HAS_PATHS, HAS_SESSION, IS_EPHEMERAL, Kind, VERSION,
};
use super::{Create, CreateKind, Ops, Paths, Txn, TxnBody};
use crate::base::limits::TTL_MS_MAX;
use crate::format::AclList;

impl Txn<'_> {
    /// Appends the payload of its record: all but zxid and time, which stand in the record's header.
    ///
    /// # Panics
    /// If a TTL is not 1 to [`TTL_MS_MAX`], or a path, data or ACL list has 4 GiB or more.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let has_session = flag(HAS_SESSION, self.session_id != 0);
        out.extend_from_slice(&[VERSION, has_session | flag(HAS_DIGEST, self.digest.is_some())]);
        put_i32(out, self.cxid);
        if self.session_id != 0 {
            put_i64(out, self.session_id);
        }
        if let Some(digest) = self.digest {
            out.extend_from_slice(&digest.to_le_bytes());
        }
        put_body(out, &self.body);
    }
}

fn put_body(out: &mut Vec<u8>, body: &TxnBody<'_>) {
    out.extend_from_slice(&[Kind::of_body(body).number(), flags(body)]);
    match *body {
        TxnBody::Create(create) => put_create(out, &create),
        TxnBody::Delete { path } | TxnBody::DeleteContainer { path } => put_bytes(out, path.as_bytes()),
        TxnBody::DeleteAll { paths } => put_paths(out, paths),
        TxnBody::SetData { path, data, version } | TxnBody::Reconfig { path, data, version } => {
            put_bytes(out, path.as_bytes());
            put_data(out, data);
            put_i32(out, version);
        }
        TxnBody::SetAcl { path, acl, version } => {
            put_bytes(out, path.as_bytes());
            put_acl(out, acl);
            put_i32(out, version);
        }
        TxnBody::Check { path, version } => {
            put_bytes(out, path.as_bytes());
            put_i32(out, version);
        }
        TxnBody::CreateSession { timeout_ms } => put_i32(out, timeout_ms),
        TxnBody::CloseSession { paths } => {
            if let Some(paths) = paths {
                put_paths(out, paths);
            }
        }
        TxnBody::Error { code } => put_i32(out, code.get()),
        TxnBody::Multi(ops) => put_ops(out, ops),
    }
}

/// The second byte of an operation: which of its fields there are.
fn flags(body: &TxnBody<'_>) -> u8 {
    match body {
        TxnBody::Create(create) => {
            let (CreateKind::Plain { ephemeral } | CreateKind::WithStat { ephemeral }) = create.kind else {
                return create_flags(create, false);
            };
            create_flags(create, ephemeral)
        }
        TxnBody::SetData { data, .. } | TxnBody::Reconfig { data, .. } => flag(HAS_DATA, data.is_some()),
        TxnBody::CloseSession { paths } => flag(HAS_PATHS, paths.is_some()),
        _ => 0,
    }
}

fn create_flags(create: &Create<'_>, ephemeral: bool) -> u8 {
    flag(HAS_DATA, create.data.is_some())
        | flag(HAS_PARENT_CVERSION, create.parent_cversion.is_some())
        | flag(IS_EPHEMERAL, ephemeral)
}

fn flag(bit: u8, on: bool) -> u8 {
    if on { bit } else { 0 }
}

fn put_create(out: &mut Vec<u8>, create: &Create<'_>) {
    put_bytes(out, create.path.as_bytes());
    put_data(out, create.data);
    put_acl(out, create.acl);
    if let Some(parent_cversion) = create.parent_cversion {
        put_i32(out, parent_cversion);
    }
    if let CreateKind::Ttl { ttl_ms } = create.kind {
        assert!((1..=TTL_MS_MAX).contains(&ttl_ms), "a TTL of {ttl_ms} ms; at most {TTL_MS_MAX}, at least 1");
        put_i64(out, ttl_ms);
    }
}

fn put_paths(out: &mut Vec<u8>, paths: Paths<'_>) {
    put_count(out, paths.len());
    for path in paths.iter() {
        put_bytes(out, path.as_bytes());
    }
}

fn put_ops(out: &mut Vec<u8>, ops: Ops<'_>) {
    put_count(out, ops.len());
    for op in ops.iter() {
        put_body(out, &op);
    }
}

fn put_acl(out: &mut Vec<u8>, acl: AclList<'_>) {
    put_bytes(out, acl.as_bytes());
}

fn put_data(out: &mut Vec<u8>, data: Option<&[u8]>) {
    if let Some(data) = data {
        put_bytes(out, data);
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("no part of a txn has 4 GiB, and no record of a log");
    out.extend_from_slice(&count.to_le_bytes());
}

fn put_i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Zxid;

    fn encode(body: TxnBody<'_>) {
        Txn { zxid: Zxid::new(1), time_ms: 0, session_id: 0, cxid: 0, digest: None, body }
            .encode(&mut Vec::new());
    }

    fn encode_ttl(ttl_ms: i64) {
        let kind = CreateKind::Ttl { ttl_ms };
        let create = Create { path: "/t", data: None, acl: AclList::EMPTY, kind, parent_cversion: None };
        encode(TxnBody::Create(create));
    }

    #[test]
    #[should_panic(expected = "a TTL of 0 ms")]
    fn no_ttl_is_written_that_is_not_read() {
        encode_ttl(1);
        encode_ttl(TTL_MS_MAX);
        encode_ttl(0);
    }

    #[test]
    #[should_panic(expected = "Multi may not stand in a multi")]
    fn no_multi_is_written_that_is_not_read() {
        let inner = [TxnBody::Delete { path: "/a" }];
        encode(TxnBody::Multi(Ops::from_slice(&[TxnBody::Multi(Ops::from_slice(&inner))])));
    }

    #[test]
    #[should_panic(expected = "CloseSession may not stand in a multi")]
    fn no_session_ends_in_a_multi() {
        encode(TxnBody::Multi(Ops::from_slice(&[TxnBody::CloseSession { paths: None }])));
    }
}
