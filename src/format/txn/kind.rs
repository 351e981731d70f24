use super::{CreateKind, TxnBody};

/// The version of the encoding, and a txn's first byte.
pub(super) const VERSION: u8 = 1;

/// In the txn's flags: a session id follows. Without it the id is 0.
pub(super) const HAS_SESSION: u8 = 1;
/// In the txn's flags: a digest follows.
pub(super) const HAS_DIGEST: u8 = 2;

/// In an operation's flags: it has data. Without it the data is null.
pub(super) const HAS_DATA: u8 = 1;
/// In a create's flags: it has the parent's cversion.
pub(super) const HAS_PARENT_CVERSION: u8 = 2;
/// In a create's flags: the node belongs to the session.
pub(super) const IS_EPHEMERAL: u8 = 4;
/// In the flags of a session's end: it has a list of paths.
pub(super) const HAS_PATHS: u8 = 8;

/// What an operation is, as its first byte tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Create = 1,
    CreateWithStat = 2,
    CreateContainer = 3,
    CreateTtl = 4,
    Delete = 5,
    DeleteContainer = 6,
    DeleteAll = 7,
    SetData = 8,
    Reconfig = 9,
    SetAcl = 10,
    Check = 11,
    CreateSession = 12,
    CloseSession = 13,
    Error = 14,
    Multi = 15,
}

impl Kind {
    /// Each at its number less one.
    const ALL: [Kind; 15] = [
        Kind::Create,
        Kind::CreateWithStat,
        Kind::CreateContainer,
        Kind::CreateTtl,
        Kind::Delete,
        Kind::DeleteContainer,
        Kind::DeleteAll,
        Kind::SetData,
        Kind::Reconfig,
        Kind::SetAcl,
        Kind::Check,
        Kind::CreateSession,
        Kind::CloseSession,
        Kind::Error,
        Kind::Multi,
    ];

    pub(super) fn of_number(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    pub(super) fn of_body(body: &TxnBody<'_>) -> Kind {
        match body {
            TxnBody::Create(create) => match create.kind {
                CreateKind::Plain { .. } => Kind::Create,
                CreateKind::WithStat { .. } => Kind::CreateWithStat,
                CreateKind::Container => Kind::CreateContainer,
                CreateKind::Ttl { .. } => Kind::CreateTtl,
            },
            TxnBody::Delete { .. } => Kind::Delete,
            TxnBody::DeleteContainer { .. } => Kind::DeleteContainer,
            TxnBody::DeleteAll { .. } => Kind::DeleteAll,
            TxnBody::SetData { .. } => Kind::SetData,
            TxnBody::Reconfig { .. } => Kind::Reconfig,
            TxnBody::SetAcl { .. } => Kind::SetAcl,
            TxnBody::Check { .. } => Kind::Check,
            TxnBody::CreateSession { .. } => Kind::CreateSession,
            TxnBody::CloseSession { .. } => Kind::CloseSession,
            TxnBody::Error { .. } => Kind::Error,
            TxnBody::Multi(_) => Kind::Multi,
        }
    }

    pub(super) fn number(self) -> u8 {
        self as u8
    }

    /// Whether it may stand in a multi. What is said of a session or of the ensemble stands alone.
    pub(super) fn may_be_in_multi(self) -> bool {
        !matches!(self, Kind::Reconfig | Kind::CreateSession | Kind::CloseSession | Kind::Multi)
    }

    /// The flags that it may have.
    pub(super) fn flags_allowed(self) -> u8 {
        match self {
            Kind::Create | Kind::CreateWithStat => HAS_DATA | HAS_PARENT_CVERSION | IS_EPHEMERAL,
            Kind::CreateContainer | Kind::CreateTtl => HAS_DATA | HAS_PARENT_CVERSION,
            Kind::SetData | Kind::Reconfig => HAS_DATA,
            Kind::CloseSession => HAS_PATHS,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_one_kind() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(kind.number()), at + 1);
            assert_eq!(Kind::of_number(kind.number()), Some(kind));
        }
        assert_eq!((Kind::of_number(0), Kind::of_number(16), Kind::of_number(255)), (None, None, None));
    }
}
