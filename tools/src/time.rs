//! Times as people write them: RFC 3339 in UTC. The calendar is Gregorian throughout.

const DAY_MS: i64 = 86_400_000;

/// Milliseconds since 1970 as RFC 3339; the bare number where that has no four-digit year.
pub(crate) fn format_time(time_ms: i64) -> String {
    let (days, ms) = (time_ms.div_euclid(DAY_MS), time_ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil_from_days(days);
    if !(0..=9999).contains(&year) {
        return format!("{time_ms}ms");
    }
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000)
}

/// RFC 3339 with `Z`, or milliseconds since 1970.
pub(crate) fn parse_time(text: &str) -> Result<i64, String> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    parse_rfc3339(text)
        .ok_or_else(|| "not a time: 2026-01-31T08:00:00Z, 2026-01-31, or milliseconds since 1970".into())
}

fn parse_rfc3339(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time.strip_suffix(['Z', 'z'])?),
        None => (text, "00:00:00"),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    // A leap second is taken as the last one before it: no clock here counts it.
    let in_range = (1..=12).contains(&month) && day >= 1 && hour < 24 && minute < 60 && second <= 60;
    if !in_range || fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    if civil_from_days(days) != (year, month, day) {
        return None;
    }
    let ms: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    Some(days * DAY_MS + hour * 3_600_000 + minute * 60_000 + second.min(59) * 1000 + ms)
}

/// Three numbers with exactly so many digits.
fn numbers(text: &str, separator: char, widths: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut out = [0; 3];
    for (number, width) in out.iter_mut().zip(widths) {
        let digits = parts.next().filter(|d| d.len() == width && d.bytes().all(|b| b.is_ascii_digit()))?;
        *number = digits.parse().ok()?;
    }
    parts.next().is_none().then_some(out)
}

/// Days since 1970 of a date (Howard Hinnant, *chrono-Compatible Low-Level Date Algorithms*).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        for (text, ms) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T12:34:56.789Z", 951_827_696_789),
            ("1969-12-31T23:59:59.999Z", -1),
            ("2026-11-29T15:16:24.000Z", 1_795_965_384_000),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ] {
            assert_eq!(format_time(ms), text);
            assert_eq!(parse_time(text), Ok(ms));
        }
        assert_eq!(parse_time("2000-02-29"), Ok(951_782_400_000));
        assert_eq!(parse_time("2000-02-29T00:00:00.5Z"), Ok(951_782_400_500));
        assert_eq!(parse_time("-5"), Ok(-5));
        assert_eq!(format_time(i64::MAX), format!("{}ms", i64::MAX));
        assert_eq!(format_time(i64::MIN), format!("{}ms", i64::MIN));
    }

    #[test]
    fn all_days_of_eight_centuries_round_trip() {
        for days in -150_000..150_000 {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    #[test]
    fn what_is_no_time() {
        for bad in [
            "",
            "now",
            "2001-02-29",
            "2000-13-01",
            "2000-00-01",
            "2000-01-01T24:00:00Z",
            "2000-01-01T00:00:00",
            "2000-01-01T00:00:00+01:00",
            "2000-01-01T00:00:00.Z",
            "2000-1-1",
        ] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }
}
