use std::fmt;

use crate::base::{Result, Zxid};
use crate::format::{Txn, TxnBody};
use crate::log::{Log, LogReader};

/// The changes below a path, out of the log, in order: those of the past, and those to come.
pub struct ChangeFeed {
    /// It keeps what it has not read from being purged, and nothing else.
    reader: LogReader,
    prefix: String,
}

impl ChangeFeed {
    pub(super) fn new(log: &Log, after: Zxid, prefix: &str) -> Result<ChangeFeed> {
        let prefix = prefix.trim_end_matches('/').to_owned();
        Ok(ChangeFeed { reader: log.reader(after)?, prefix })
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
    use crate::base::{Code, Epoch};
    use crate::format::{AclList, Create, CreateKind, Ops, Paths};
    use crate::log::{LogOptions, Record};
    use crate::sim::SimDisk;

    #[test]
    fn a_prefix_ends_at_a_slash() {
        let delete = |path| TxnBody::Delete { path };
        assert!(touches(&delete("/a/b"), "/a") && touches(&delete("/a"), "/a") && touches(&delete("/x"), ""));
        assert!(!touches(&delete("/ab"), "/a") && !touches(&delete("/"), "/a"));
        assert!(!touches(&TxnBody::Error { code: Code::NO_NODE }, ""));
    }

    #[test]
    fn every_change_of_one_node_is_told() {
        let (path, acl) = ("/a/b", AclList::EMPTY);
        let kind = CreateKind::Container;
        for body in [
            TxnBody::Create(Create { path, data: None, acl, kind, parent_cversion: None }),
            TxnBody::Delete { path },
            TxnBody::DeleteContainer { path },
            TxnBody::SetData { path, data: None, version: 1 },
            TxnBody::Reconfig { path, data: None, version: 1 },
            TxnBody::SetAcl { path, acl, version: 1 },
        ] {
            assert!(touches(&body, "/a") && touches(&body, "/a/b") && touches(&body, ""), "{body:?}");
            assert!(!touches(&body, "/a/b/c") && !touches(&body, "/b"), "{body:?}");
        }
    }

    /// As a server is asked for it: the root is "/", and a slash at the end is no name.
    #[test]
    fn a_slash_at_the_end_of_a_prefix_is_no_part_of_it() {
        let (log, _) = LogOptions::new().open_sim(&SimDisk::new(1)).unwrap();
        log.advance_epoch(Epoch::new(1)).unwrap();
        let zxid = Zxid::from_parts(1, 1);
        let body = TxnBody::Delete { path: "/a" };
        let txn = Txn { zxid, time_ms: 5, session_id: 0, cxid: 0, digest: None, body }.to_buf();
        log.append(&Record::new(zxid, 5, txn.as_bytes())).unwrap().wait().unwrap();
        for (prefix, is_told) in [("/a/", true), ("/a", true), ("/", true), ("", true), ("/b/", false)] {
            let mut feed = ChangeFeed::new(&log, Zxid::ZERO, prefix).unwrap();
            let told = feed.next_txn(|txn| txn.zxid).unwrap();
            assert_eq!(told, is_told.then_some(zxid), "{prefix}");
        }
    }

    #[test]
    fn what_has_many_paths_is_told_to_who_asked_for_one_of_them() {
        let paths = ["/x".to_owned(), "/a/b".to_owned()];
        let paths = Paths::from_slice(&paths);
        for body in [TxnBody::DeleteAll { paths }, TxnBody::CloseSession { paths: Some(paths) }] {
            assert!(touches(&body, "/a") && touches(&body, "/x") && touches(&body, ""), "{body:?}");
            assert!(!touches(&body, "/b") && !touches(&body, "/x/y"), "{body:?}");
        }
        // Sessions have no path.
        for body in [TxnBody::CreateSession { timeout_ms: 1 }, TxnBody::CloseSession { paths: None }] {
            assert!(touches(&body, "") && !touches(&body, "/a"), "{body:?}");
        }
        // A multi that failed has changed nothing, whatever it was to do.
        let (delete, check) = (TxnBody::Delete { path: "/a" }, TxnBody::Check { path: "/c", version: 1 });
        let done = [check, delete];
        let done = TxnBody::Multi(Ops::from_slice(&done));
        assert!(touches(&done, "/a") && !touches(&done, "/c"));
        let failed = [delete, TxnBody::Error { code: Code::NO_NODE }];
        assert!(!touches(&TxnBody::Multi(Ops::from_slice(&failed)), "/a"));
    }
}
