use super::flaw::Flaw;
use super::input::Input;
use super::kind::{
    HAS_DATA, HAS_DIGEST, HAS_PARENT_CVERSION, HAS_PATHS, HAS_SESSION, IS_EPHEMERAL, Kind, VERSION,
};
use super::{Create, CreateKind, Ops, Paths, Txn, TxnBody};
use crate::base::limits::TTL_MS_MAX;
use crate::base::{Code, Result, Zxid};
use crate::format::AclList;

impl<'a> Txn<'a> {
    /// Reads the payload of a record with this zxid and time, without copying anything out of it.
    ///
    /// All of it is checked, so that nothing can fail later. What is accepted encodes to the same bytes again.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if the bytes are no txn, and
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if a newer arborlog has encoded it.
    pub fn decode(zxid: Zxid, time_ms: i64, bytes: &'a [u8]) -> Result<Txn<'a>> {
        read_txn(zxid, time_ms, bytes).map_err(|flaw| flaw.into_error(zxid))
    }
}

fn read_txn(zxid: Zxid, time_ms: i64, bytes: &[u8]) -> std::result::Result<Txn<'_>, Flaw> {
    let mut input = Input::new(bytes);
    let version = input.u8()?;
    if version != VERSION {
        return Err(Flaw::Version(version));
    }
    let flags = input.u8()?;
    if flags & !(HAS_SESSION | HAS_DIGEST) != 0 {
        return Err(Flaw::Field("flags"));
    }
    let cxid = input.i32()?;
    let mut session_id = 0;
    if flags & HAS_SESSION != 0 {
        session_id = input.i64()?;
        if session_id == 0 {
            return Err(Flaw::Field("session"));
        }
    }
    let digest = if flags & HAS_DIGEST == 0 { None } else { Some(input.u64()?) };
    let body = read_body(&mut input, Within::Txn)?;
    if !input.is_empty() {
        return Err(Flaw::Long);
    }
    Ok(Txn { zxid, time_ms, session_id, cxid, digest, body })
}

/// Where an operation stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Within {
    Txn,
    Multi,
}

/// Reads one operation. It goes one level deep, since a multi holds none.
pub(super) fn read_body<'a>(input: &mut Input<'a>, within: Within) -> std::result::Result<TxnBody<'a>, Flaw> {
    let number = input.u8()?;
    let kind = Kind::of_number(number).ok_or(Flaw::Kind(number))?;
    if within == Within::Multi && !kind.may_be_in_multi() {
        return Err(Flaw::KindInMulti(number));
    }
    let flags = input.u8()?;
    if flags & !kind.flags_allowed() != 0 {
        return Err(Flaw::Field("flags"));
    }
    Ok(match kind {
        Kind::Create | Kind::CreateWithStat | Kind::CreateContainer | Kind::CreateTtl => {
            TxnBody::Create(read_create(input, kind, flags)?)
        }
        Kind::Delete => TxnBody::Delete { path: input.path()? },
        Kind::DeleteContainer => TxnBody::DeleteContainer { path: input.path()? },
        Kind::DeleteAll => TxnBody::DeleteAll { paths: Paths::read(input)? },
        Kind::SetData => {
            let (path, data) = (input.path()?, read_data(input, flags)?);
            TxnBody::SetData { path, data, version: input.i32()? }
        }
        Kind::Reconfig => {
            let (path, data) = (input.path()?, read_data(input, flags)?);
            TxnBody::Reconfig { path, data, version: input.i32()? }
        }
        Kind::SetAcl => {
            let (path, acl) = (input.path()?, read_acl(input)?);
            TxnBody::SetAcl { path, acl, version: input.i32()? }
        }
        Kind::Check => TxnBody::Check { path: input.path()?, version: input.i32()? },
        Kind::CreateSession => TxnBody::CreateSession { timeout_ms: input.i32()? },
        Kind::CloseSession if flags & HAS_PATHS == 0 => TxnBody::CloseSession { paths: None },
        Kind::CloseSession => TxnBody::CloseSession { paths: Some(Paths::read(input)?) },
        Kind::Error => TxnBody::Error { code: Code::new(input.i32()?) },
        Kind::Multi => TxnBody::Multi(Ops::read(input)?),
    })
}

fn read_create<'a>(input: &mut Input<'a>, kind: Kind, flags: u8) -> std::result::Result<Create<'a>, Flaw> {
    let path = input.path()?;
    let data = read_data(input, flags)?;
    let acl = read_acl(input)?;
    let parent_cversion = if flags & HAS_PARENT_CVERSION == 0 { None } else { Some(input.i32()?) };
    let ephemeral = flags & IS_EPHEMERAL != 0;
    let kind = match kind {
        Kind::CreateWithStat => CreateKind::WithStat { ephemeral },
        Kind::CreateContainer => CreateKind::Container,
        Kind::CreateTtl => {
            let ttl_ms = input.i64()?;
            if !(1..=TTL_MS_MAX).contains(&ttl_ms) {
                return Err(Flaw::Field("TTL"));
            }
            CreateKind::Ttl { ttl_ms }
        }
        _ => CreateKind::Plain { ephemeral },
    };
    Ok(Create { path, data, acl, kind, parent_cversion })
}

fn read_data<'a>(input: &mut Input<'a>, flags: u8) -> std::result::Result<Option<&'a [u8]>, Flaw> {
    if flags & HAS_DATA == 0 { Ok(None) } else { input.bytes().map(Some) }
}

fn read_acl<'a>(input: &mut Input<'a>) -> std::result::Result<AclList<'a>, Flaw> {
    AclList::from_bytes(input.bytes()?).ok_or(Flaw::Field("ACL"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    fn payload(flags: u8, rest: &[u8]) -> Vec<u8> {
        [&[VERSION, flags, 0, 0, 0, 0], rest].concat()
    }

    fn flaw(bytes: &[u8]) -> Flaw {
        read_txn(Zxid::new(1), 0, bytes).expect_err("a flaw")
    }

    /// A multi whose one operation begins like this.
    fn multi_of(operation: &[u8]) -> Vec<u8> {
        payload(0, &[&[Kind::Multi.number(), 0, 1, 0, 0, 0], operation].concat())
    }

    #[test]
    fn a_newer_version_is_unsupported_before_anything_else() {
        for version in [0, 2, 255] {
            let error = Txn::decode(Zxid::new(5), 0, &[version]).unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, "txn_version"));
            assert_eq!(error.at().zxid, Some(Zxid::new(5)));
        }
        assert_eq!(flaw(&[]), Flaw::Short);
    }

    #[test]
    fn only_what_is_written_is_read() {
        let error = [Kind::Error.number(), 0, 0, 0, 0, 0];
        assert!(read_txn(Zxid::new(1), 0, &payload(0, &error)).is_ok());
        assert_eq!(flaw(&payload(4, &error)), Flaw::Field("flags"));
        // Session 0 is written as none.
        assert_eq!(
            flaw(&payload(HAS_SESSION, &[[0; 8].as_slice(), &error].concat())),
            Flaw::Field("session")
        );
        assert_eq!(flaw(&payload(0, &[0, 0])), Flaw::Kind(0));
        assert_eq!(flaw(&payload(0, &[16, 0])), Flaw::Kind(16));
        assert_eq!(flaw(&payload(0, &[error.as_slice(), &[0]].concat())), Flaw::Long);
        assert_eq!(flaw(&payload(0, &[5, 0, 1, 0, 0, 0, 0xff])), Flaw::Field("path"));
        // An ACL list whose entry ends too early.
        assert_eq!(flaw(&payload(0, &[10, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0])), Flaw::Field("ACL"));
    }

    #[test]
    fn an_operation_has_no_flags_of_another() {
        for number in 1..=15u8 {
            let allowed = Kind::of_number(number).expect("a kind").flags_allowed();
            for bit in (0..8).map(|bit| 1 << bit) {
                let expected = if allowed & bit == 0 { Flaw::Field("flags") } else { Flaw::Short };
                assert_eq!(flaw(&payload(0, &[number, bit])), expected, "kind {number}, flag {bit}");
            }
        }
    }

    #[test]
    fn a_multi_holds_no_multi_no_session_and_no_reconfig() {
        for number in [9, 12, 13, 15] {
            assert_eq!(flaw(&multi_of(&[number, 0, 0, 0, 0, 0])), Flaw::KindInMulti(number));
        }
        for number in [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 14] {
            assert_eq!(flaw(&multi_of(&[number, 0])), Flaw::Short, "{number}");
        }
        assert!(read_txn(Zxid::new(1), 0, &multi_of(&[14, 0, 1, 2, 3, 4])).is_ok());
    }

    #[test]
    fn a_count_is_not_believed() {
        let many = u32::MAX.to_le_bytes();
        for kind in [Kind::DeleteAll, Kind::Multi] {
            assert_eq!(flaw(&payload(0, &[&[kind.number(), 0], many.as_slice()].concat())), Flaw::Short);
        }
        let path = [&[5, 0], many.as_slice(), b"/a"].concat();
        assert_eq!(flaw(&payload(0, &path)), Flaw::Short);
    }

    #[test]
    fn a_ttl_has_forty_bits_and_is_not_zero() {
        let with_ttl = |ttl_ms: i64| {
            payload(0, &[&[4, 0, 0, 0, 0, 0, 0, 0, 0, 0], ttl_ms.to_le_bytes().as_slice()].concat())
        };
        for ttl_ms in [1, TTL_MS_MAX] {
            assert!(read_txn(Zxid::new(1), 0, &with_ttl(ttl_ms)).is_ok(), "{ttl_ms}");
        }
        for ttl_ms in [i64::MIN, -1, 0, TTL_MS_MAX + 1, i64::MAX] {
            assert_eq!(flaw(&with_ttl(ttl_ms)), Flaw::Field("TTL"), "{ttl_ms}");
        }
    }
}
