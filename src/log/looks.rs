use crate::base::{Error, ErrorKind, Result};

/// How often a log is looked at again that seems damaged: it may have moved on under the look.
const LOOKS_MAX: usize = 6;

/// Looks until what is seen is believed. A log that is being written shows things that no log at rest shows: a group
/// that was read before it came, with one behind it that claims it, or a segment that was purged after the listing.
/// Damage stays where it is, so it is believed when two looks in a row find it in the same place. `damage` names what
/// a look found that did not fail by it.
///
/// # Errors
/// Those of the look. [`ErrorKind::Busy`] if no two looks agree: that is no damage.
pub(crate) fn until_believed<T>(
    mut look: impl FnMut() -> Result<T>,
    damage: impl Fn(&T) -> Option<&Error>,
) -> Result<T> {
    let mut doubted: Option<Error> = None;
    for _ in 0..LOOKS_MAX {
        let seen = look();
        let found = match &seen {
            Err(error) if error.kind() == ErrorKind::Corrupt => Some(error),
            Err(_) => None,
            Ok(seen) => damage(seen),
        };
        let Some(found) = found else { return seen };
        if doubted.as_ref().is_some_and(|before| before.code() == found.code() && before.at() == found.at()) {
            return seen;
        }
        doubted = Some(found.clone());
    }
    let why = "the log is being written faster than it can be looked at; try again, or when it is at rest";
    Err(Error::new(ErrorKind::Busy, "busy", why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Damage at these places, one a look.
    fn looks(places: &[u64]) -> (Result<u64>, usize) {
        let mut count = 0;
        let seen = until_believed(
            || {
                count += 1;
                match places.get(count - 1) {
                    Some(0) | None => Ok(7),
                    Some(at) => Err(Error::corrupt("log_damaged", "damage").at_offset(*at)),
                }
            },
            |_| None,
        );
        (seen, count)
    }

    #[test]
    fn lk_01_damage_counts_when_two_looks_in_a_row_find_it() {
        let (seen, count) = looks(&[4, 8, 8]);
        assert_eq!((seen.expect_err("damage").code(), count), ("log_damaged", 3));
        let (seen, count) = looks(&[4, 8, 0]);
        assert_eq!((seen.expect("whole"), count), (7, 3));
    }

    #[test]
    fn lk_01_looks_that_never_agree_say_busy_and_not_damaged() {
        let (seen, count) = looks(&[1, 2, 1, 2, 1, 2, 3, 4]);
        let error = seen.expect_err("no two agree");
        assert_eq!((error.kind(), error.code(), count), (ErrorKind::Busy, "busy", LOOKS_MAX));
    }

    #[test]
    fn lk_01_a_verdict_is_doubted_like_an_error() {
        let mut count = 0;
        let look = || {
            count += 1;
            Ok(Error::corrupt("log_damaged", "damage"))
        };
        assert!(until_believed(look, |error| Some(error)).is_ok());
        assert_eq!(count, 2);
    }
}
