//! Txns as ZooKeeper's log has them.

use super::format::ZkFormat;
use super::jute::{put_buffer, put_len, put_text};
use super::read_txn::DIGEST_VERSION;
use crate::base::Result;
use crate::format::{AclList, Create, CreateKind, Ops, Txn, TxnBody};

/// Appends the payload of an entry: header, body, and the digest of the tree after it if one is given.
pub(super) fn put_txn(out: &mut Vec<u8>, txn: &Txn<'_>, digest: Option<u64>, format: ZkFormat) -> Result<()> {
    let body = match &txn.body {
        TxnBody::DeleteAll { paths } => {
            let deletes: Vec<TxnBody<'_>> = paths.iter().map(|path| TxnBody::Delete { path }).collect();
            return put_txn_of(out, txn, &TxnBody::Multi(Ops::from_slice(&deletes)), digest, format);
        }
        // By itself, no server reads it again.
        TxnBody::Check { .. } => {
            let check = [txn.body];
            return put_txn_of(out, txn, &TxnBody::Multi(Ops::from_slice(&check)), digest, format);
        }
        body => body,
    };
    put_txn_of(out, txn, body, digest, format)
}

fn put_txn_of(
    out: &mut Vec<u8>,
    txn: &Txn<'_>,
    body: &TxnBody<'_>,
    digest: Option<u64>,
    format: ZkFormat,
) -> Result<()> {
    out.extend_from_slice(&txn.session_id.to_be_bytes());
    out.extend_from_slice(&txn.cxid.to_be_bytes());
    out.extend_from_slice(&txn.zxid.get().to_be_bytes());
    out.extend_from_slice(&txn.time_ms.to_be_bytes());
    out.extend_from_slice(&kind_of(body, format).to_be_bytes());
    put_body(out, body, format)?;
    // A request that failed has none, as servers write it.
    if let Some(digest) = digest.filter(|_| format.has_digests() && !matches!(body, TxnBody::Error { .. })) {
        out.extend_from_slice(&DIGEST_VERSION.to_be_bytes());
        out.extend_from_slice(&digest.to_be_bytes());
    }
    Ok(())
}

fn kind_of(body: &TxnBody<'_>, format: ZkFormat) -> i32 {
    match body {
        TxnBody::Create(create) => match create.kind {
            CreateKind::WithStat { .. } if format.has_extended_nodes() => 15,
            CreateKind::Plain { .. } | CreateKind::WithStat { .. } => 1,
            CreateKind::Container => 19,
            CreateKind::Ttl { .. } => 21,
        },
        TxnBody::Delete { .. } => 2,
        TxnBody::DeleteContainer { .. } => 20,
        TxnBody::DeleteAll { .. } | TxnBody::Multi(_) => 14,
        TxnBody::SetData { .. } => 5,
        TxnBody::Reconfig { .. } => 16,
        TxnBody::SetAcl { .. } => 7,
        TxnBody::Check { .. } => 13,
        TxnBody::CreateSession { .. } => -10,
        TxnBody::CloseSession { .. } => -11,
        TxnBody::Error { .. } => -1,
    }
}

fn put_body(out: &mut Vec<u8>, body: &TxnBody<'_>, format: ZkFormat) -> Result<()> {
    let needs_extended = match body {
        TxnBody::Create(create) => matches!(create.kind, CreateKind::Container | CreateKind::Ttl { .. }),
        TxnBody::DeleteContainer { .. } | TxnBody::Reconfig { .. } => true,
        _ => false,
    };
    if needs_extended && !format.has_extended_nodes() {
        return Err(format.refuses("a txn makes or deletes a container, sets a time to live or reconfigures"));
    }
    match body {
        TxnBody::Create(create) => put_create(out, create),
        TxnBody::Delete { path } | TxnBody::DeleteContainer { path } => put_text(out, path),
        TxnBody::DeleteAll { .. } => {}
        TxnBody::SetData { path, data, version } | TxnBody::Reconfig { path, data, version } => {
            put_text(out, path);
            put_buffer(out, *data);
            out.extend_from_slice(&version.to_be_bytes());
        }
        TxnBody::SetAcl { path, acl, version } => {
            put_text(out, path);
            put_acl(out, *acl);
            out.extend_from_slice(&version.to_be_bytes());
        }
        TxnBody::Check { path, version } => {
            put_text(out, path);
            out.extend_from_slice(&version.to_be_bytes());
        }
        TxnBody::CreateSession { timeout_ms } => out.extend_from_slice(&timeout_ms.to_be_bytes()),
        TxnBody::CloseSession { paths } => {
            if format.has_digests() {
                // With a digest behind it, a list must be there, if only an empty one.
                let paths: Vec<&str> = paths.iter().flat_map(|paths| paths.iter()).collect();
                put_len(out, paths.len());
                paths.iter().for_each(|path| put_text(out, path));
            }
        }
        TxnBody::Error { code } => out.extend_from_slice(&code.get().to_be_bytes()),
        TxnBody::Multi(ops) => put_multi(out, *ops, format)?,
    }
    Ok(())
}

fn put_create(out: &mut Vec<u8>, create: &Create<'_>) {
    put_text(out, create.path);
    put_buffer(out, create.data);
    put_acl(out, create.acl);
    if let CreateKind::Plain { ephemeral } | CreateKind::WithStat { ephemeral } = create.kind {
        out.push(ephemeral.into());
    }
    out.extend_from_slice(&create.parent_cversion.unwrap_or(-1).to_be_bytes());
    if let CreateKind::Ttl { ttl_ms } = create.kind {
        out.extend_from_slice(&ttl_ms.to_be_bytes());
    }
}

fn put_multi(out: &mut Vec<u8>, ops: Ops<'_>, format: ZkFormat) -> Result<()> {
    let count_at = out.len();
    put_len(out, 0);
    let mut count = 0;
    let mut put = |out: &mut Vec<u8>, op: &TxnBody<'_>| {
        let kind = match kind_of(op, format) {
            // Servers before 3.8.2 do not take it here, and it does the same for all.
            15 => 1,
            7 => return Err(format.refuses("a multi sets an ACL")),
            kind => kind,
        };
        let mut bytes = Vec::new();
        put_body(&mut bytes, op, format)?;
        out.extend_from_slice(&kind.to_be_bytes());
        put_buffer(out, Some(&bytes));
        count += 1;
        Ok(())
    };
    for op in ops.iter() {
        match op {
            TxnBody::DeleteAll { paths } => {
                for path in paths.iter() {
                    put(out, &TxnBody::Delete { path })?;
                }
            }
            op => put(out, &op)?,
        }
    }
    let mut field = Vec::new();
    put_len(&mut field, count);
    out[count_at..count_at + 4].copy_from_slice(&field);
    Ok(())
}

/// A list of ACL entries; none is null.
pub(super) fn put_acl(out: &mut Vec<u8>, list: AclList<'_>) {
    if list.is_empty() {
        return out.extend_from_slice(&(-1_i32).to_be_bytes());
    }
    put_len(out, list.iter().count());
    for entry in list.iter() {
        out.extend_from_slice(&entry.perms.get().to_be_bytes());
        put_text(out, entry.scheme);
        put_text(out, entry.id);
    }
}
