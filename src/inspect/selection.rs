use crate::base::Zxid;

/// Which records to hand out. All bounds are inclusive.
#[derive(Clone, Debug)]
pub struct Selection {
    pub(super) from: Zxid,
    pub(super) to: Zxid,
    pub(super) since_ms: i64,
    pub(super) until_ms: i64,
    pub(super) file: Option<String>,
}

impl Selection {
    /// Everything that is part of the log.
    pub fn all() -> Selection {
        Selection { from: Zxid::ZERO, to: Zxid::MAX, since_ms: i64::MIN, until_ms: i64::MAX, file: None }
    }

    /// Only records with this zxid or a later one. Segments that hold none are not read.
    #[must_use]
    pub fn from(mut self, zxid: Zxid) -> Selection {
        self.from = zxid;
        self
    }

    /// Only records with this zxid or an earlier one. What stands behind it is not read.
    #[must_use]
    pub fn to(mut self, zxid: Zxid) -> Selection {
        self.to = zxid;
        self
    }

    /// Only records whose time is this or later.
    #[must_use]
    pub fn since_ms(mut self, time_ms: i64) -> Selection {
        self.since_ms = time_ms;
        self
    }

    /// Only records whose time is this or earlier.
    #[must_use]
    pub fn until_ms(mut self, time_ms: i64) -> Selection {
        self.until_ms = time_ms;
        self
    }

    /// All records of this one file, whether it is part of the log or was moved aside, and whatever the
    /// manifest says of its end.
    #[must_use]
    pub fn file(mut self, name: &str) -> Selection {
        self.file = Some(name.to_owned());
        self
    }

    pub(super) fn takes(&self, zxid: Zxid, time_ms: i64) -> bool {
        (self.from..=self.to).contains(&zxid) && (self.since_ms..=self.until_ms).contains(&time_ms)
    }
}
