use crate::base::Error;

/// What opening the log would make of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// There is no log here: opening would create one.
    NoLog,
    /// It was closed cleanly, or cut off and not opened since.
    Clean,
    /// It is open elsewhere, or was not closed cleanly; nothing stands behind its last whole group.
    Unclean,
    /// The newest group was torn, or groups behind it were in flight. Nothing proves that they were durable:
    /// opening cuts them and loses nothing that was acknowledged.
    Torn {
        /// The file in which the log ends.
        file: String,
        /// Where it ends.
        offset: u64,
        /// Bytes behind it that are no part of the log.
        bytes: u64,
    },
    /// Opening refuses it and changes nothing.
    Refused(Error),
}

impl Verdict {
    /// A stable lower-case word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Verdict::NoLog => "no_log",
            Verdict::Clean => "clean",
            Verdict::Unclean => "unclean",
            Verdict::Torn { .. } => "torn",
            Verdict::Refused(_) => "refused",
        }
    }

    /// Whether the log can be opened, and all that was acknowledged is in it.
    pub fn opens(&self) -> bool {
        !matches!(self, Verdict::Refused(_))
    }
}
