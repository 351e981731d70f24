use std::fmt;

use crate::base::{Result, Zxid};
use crate::format::{Txn, TxnBody};
use crate::log::{Log, LogPin, LogReader};

/// The changes below a path, out of the log, in order: those of the past, and those to come.
pub struct ChangeFeed {
    reader: LogReader,
    /// What is still to be read is not purged.
    _pin: LogPin,
    prefix: String,
}

impl ChangeFeed {
    pub(super) fn new(log: &Log, after: Zxid, prefix: &str) -> Result<ChangeFeed> {
        let pin = log.pin(after)?;
        let prefix = prefix.trim_end_matches('/').to_owned();
        Ok(ChangeFeed { reader: log.reader(after)?, _pin: pin, prefix })
    }

    /// Hands the next txn that touches the path to `take`; none if there is none that is durable yet. Errors are told
    /// by no txn, and those of sessions only to who asked for the root.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if the log was damaged since it was opened;
    /// [`ErrorKind::NotInLog`](crate::ErrorKind::NotInLog) if it was truncated, and what is left of it has been read, or
    /// if a snapshot was installed in its place.
    pub fn next_txn<T>(&mut self, mut take: impl FnMut(&Txn<'_>) -> T) -> Result<Option<T>> {
        let ChangeFeed { reader, prefix, .. } = self;
        while let Some(record) = reader.next_record()? {
            let txn = Txn::decode(record.zxid, record.time_ms, record.payload)?;
            if touches(&txn.body, prefix) {
                return Ok(Some(take(&txn)));
            }
        }
        Ok(None)
    }
}

impl fmt::Debug for ChangeFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeFeed").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

fn touches(body: &TxnBody<'_>, prefix: &str) -> bool {
    let within =
        |path: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    match body {
        TxnBody::Create(create) => within(create.path),
        TxnBody::Delete { path }
        | TxnBody::DeleteContainer { path }
        | TxnBody::SetData { path, .. }
        | TxnBody::Reconfig { path, .. }
        | TxnBody::SetAcl { path, .. } => within(path),
        TxnBody::DeleteAll { paths } => paths.iter().any(within),
        TxnBody::CloseSession { paths } => {
            prefix.is_empty() || paths.as_ref().is_some_and(|paths| paths.iter().any(within))
        }
        TxnBody::CreateSession { .. } => prefix.is_empty(),
        TxnBody::Multi(ops) => {
            let is_error = |op: &TxnBody<'_>| matches!(op, TxnBody::Error { .. });
            !ops.iter().any(|op| is_error(&op)) && ops.iter().any(|op| touches(&op, prefix))
        }
        TxnBody::Check { .. } | TxnBody::Error { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_a_slash() {
        let delete = |path| TxnBody::Delete { path };
        assert!(touches(&delete("/a/b"), "/a") && touches(&delete("/a"), "/a") && touches(&delete("/x"), ""));
        assert!(!touches(&delete("/ab"), "/a") && !touches(&delete("/"), "/a"));
        assert!(!touches(&TxnBody::Error { code: crate::base::Code::NO_NODE }, ""));
    }
}
