use std::fmt;
use std::sync::Arc;

use super::{Zxid, harmless};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller can act on. A kind exists only where a caller would do something different.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Bytes that were acknowledged have changed, or files are missing, swapped or foreign. Nothing on
    /// disk was touched. Restore from a peer or a backup, or salvage by hand.
    Corrupt,
    /// Written by a newer arborlog. Open it with that version.
    Unsupported,
    /// The directory belongs to another database than the one asked for. Check the paths.
    WrongOwner,
    /// Another process (or another handle of this one) has the log open. Stop it first.
    Locked,
    /// An append of an older epoch than the durable one, or of an epoch that was never made durable.
    /// This leader has been replaced: step down.
    Fenced,
    /// The identifier does not follow the last one. A bug in the caller.
    OutOfOrder,
    /// The 32-bit counter (or the 64-bit index) is at its end. Start a new epoch.
    CounterExhausted,
    /// The record is larger than the limit. Refuse the client's request.
    TooLarge,
    /// The queue before the disk is full. Slow down and try again.
    Busy,
    /// The time given ran out; the append may still become durable.
    Timeout,
    /// The disk is full. Free space; appends go on by themselves if nothing was lost.
    NoSpace,
    /// An earlier write or sync failed, so nothing more is accepted until the log is opened anew.
    /// The first failure is the source.
    Poisoned,
    /// The log was closed.
    Closed,
    /// The zxid asked for is not in the log: purged, truncated away, or not written yet.
    NotInLog,
    /// An option or an argument is out of its bounds.
    Invalid,
    /// The operating system refused or failed a call.
    Io,
}

/// Where in the log something is: file, byte offset, zxid, as far as they are known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The file's name inside the log's directory, as it is: whoever made it may have put what does harm to a terminal in it.
    pub file: Option<String>,
    /// The byte offset in that file.
    pub offset: Option<u64>,
    /// The transaction concerned: the first one, where there are several.
    pub zxid: Option<Zxid>,
    /// The last transaction concerned, where a range is.
    pub zxid_end: Option<Zxid>,
}

/// The one error of the crate, one word wide. Branch on [`kind`](Error::kind), report with `Display`: that is one line, in
/// which names of files and what comes out of them are [`harmless`](crate::inspect::harmless).
///
/// [`code`](Error::code) is a stable word; `docs/RECOVERY.md` has a paragraph for each on what to do next.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    code: &'static str,
    message: String,
    place: Place,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, code: &'static str, message: String) -> Error {
        Error(Arc::new(Inner { kind, code, message, place: Place::default(), source: None }))
    }

    /// An error of the operating system while `doing` something.
    #[cold]
    pub(crate) fn io(doing: &str, source: std::io::Error) -> Error {
        let kind = match source.raw_os_error() {
            Some(code) if is_out_of_space(code) => ErrorKind::NoSpace,
            _ => ErrorKind::Io,
        };
        let code = if kind == ErrorKind::NoSpace { "no_space" } else { "io" };
        let message = format!("cannot {doing}: {source}");
        Error(Arc::new(Inner {
            kind,
            code,
            message,
            place: Place::default(),
            source: Some(Box::new(source)),
        }))
    }

    #[cold]
    pub(crate) fn corrupt(code: &'static str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corrupt, code, message.into())
    }

    #[cold]
    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, "invalid_option", message.into())
    }

    /// The same failure, as everyone sees it who comes after the first.
    #[cold]
    pub(crate) fn poisoned_by(first: &Error) -> Error {
        Error(Arc::new(Inner {
            kind: ErrorKind::Poisoned,
            code: "poisoned",
            message: format!("the log takes no more writes until it is opened anew, because: {first}"),
            place: first.0.place.clone(),
            source: Some(Box::new(first.clone())),
        }))
    }

    fn with_place(self, change: impl FnOnce(&mut Place)) -> Error {
        let mut inner = match Arc::try_unwrap(self.0) {
            Ok(inner) => inner,
            // A shared error already names its place and is passed on as it is.
            Err(shared) => return Error(shared),
        };
        change(&mut inner.place);
        Error(Arc::new(inner))
    }

    pub(crate) fn in_file(self, file: &str) -> Error {
        self.with_place(|p| {
            p.file.get_or_insert_with(|| file.to_owned());
        })
    }

    pub(crate) fn at_offset(self, offset: u64) -> Error {
        self.with_place(|p| {
            p.offset.get_or_insert(offset);
        })
    }

    /// Names file and offset, as far as they are known.
    pub(crate) fn in_place(self, place: Option<(&str, Option<u64>)>) -> Error {
        let Some((file, offset)) = place else { return self };
        let error = self.in_file(file);
        match offset {
            Some(offset) => error.at_offset(offset),
            None => error,
        }
    }

    pub(crate) fn with_zxids(self, first: Zxid, last: Zxid) -> Error {
        self.with_place(|p| {
            p.zxid.get_or_insert(first);
            if last != first {
                p.zxid_end.get_or_insert(last);
            }
        })
    }

    /// What a caller can act on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// A stable word for this failure, the anchor of its paragraph in `docs/RECOVERY.md`.
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// What happened, without the place.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it is: file, offset, zxid, as far as they are known.
    pub fn at(&self) -> &Place {
        &self.0.place
    }

    /// The operating system's error number, if it was one that failed.
    pub fn raw_os_error(&self) -> Option<i32> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if let Some(io) = error.downcast_ref::<std::io::Error>() {
                return io.raw_os_error();
            }
            cause = error.source();
        }
        None
    }
}

/// ENOSPC, EDQUOT, EFBIG: one thing to an operator, make room.
pub(crate) fn is_out_of_space(errno: i32) -> bool {
    use rustix::io::Errno;
    [Errno::NOSPC, Errno::DQUOT, Errno::FBIG].iter().any(|e| e.raw_os_error() == errno)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.0.place;
        if let Some(file) = &place.file {
            f.write_str(&harmless(file))?;
            if let Some(offset) = place.offset {
                write!(f, " at byte {offset}")?;
            }
            write!(f, ": ")?;
        }
        f.write_str(&harmless(&self.0.message))?;
        match (place.zxid, place.zxid_end) {
            (Some(first), Some(last)) => write!(f, " (zxid {first} to {last})")?,
            (Some(zxid), None) => write!(f, " (zxid {zxid})")?,
            _ => {}
        }
        write!(f, " [{}]", self.0.code)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("code", &self.0.code)
            .field("message", &self.0.message)
            .field("place", &self.0.place)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|s| &**s as &(dyn std::error::Error + 'static))
    }
}

const _: () = assert!(size_of::<Error>() == size_of::<usize>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_file_offset_range_and_code() {
        let error = Error::corrupt("record_checksum", "the record's checksum does not match")
            .in_file("a.seg")
            .at_offset(4096)
            .with_zxids(Zxid::new(1), Zxid::new(2));
        assert_eq!(
            error.to_string(),
            "a.seg at byte 4096: the record's checksum does not match (zxid 0x1 to 0x2) [record_checksum]"
        );
    }

    /// It goes to the terminals and logs of whoever uses the library.
    #[test]
    fn names_and_messages_that_do_harm_are_told_on_one_line() {
        let harm = "\u{1b}[2J\nall-is-well\r\u{9b}\u{202e}";
        let told = r"\u{1b}[2J\nall-is-well\r\u{9b}\u{202e}";
        let error = Error::corrupt("zk_order", format!("it begins with {harm}")).in_file(harm).at_offset(3);
        assert_eq!(error.to_string(), format!("{told} at byte 3: it begins with {told} [zk_order]"));
        assert_eq!(error.at().file.as_deref(), Some(harm), "as data, it is as it is");
        let later = Error::poisoned_by(&error).to_string();
        assert!(!later.contains(crate::base::does_harm) && later.matches(told).count() == 3, "{later}");
        assert!(!format!("{error:?}").contains(crate::base::does_harm));
        let ordinary = Error::corrupt("zk_order", r#"C:\x "is" it's café"#).in_file("it's.seg");
        assert_eq!(ordinary.to_string(), r#"it's.seg: C:\x "is" it's café [zk_order]"#);
    }

    #[test]
    fn iu_15_the_error_keeps_the_errno_and_its_name() {
        let error = Error::io("write a group", std::io::Error::from_raw_os_error(5));
        assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Io, Some(5)));
        let poisoned = Error::poisoned_by(&error);
        assert_eq!((poisoned.kind(), poisoned.raw_os_error()), (ErrorKind::Poisoned, Some(5)));
        assert!(poisoned.to_string().contains("Input/output error"), "{poisoned}");
        let full = Error::io("write a group", std::io::Error::from_raw_os_error(28));
        assert_eq!(full.kind(), ErrorKind::NoSpace);
    }
}
