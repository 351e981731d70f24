use std::borrow::Cow;

/// A line of text with what moves a cursor, ends a line or turns the direction of writing around escaped: for a terminal, and
/// for a log of lines. Anything else stays as it is, backslashes too, so what is escaped already stays as well.
///
/// [`Display`](std::fmt::Display) of what this crate reports has names and messages so; the fields have them as they are.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.contains(does_harm) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if does_harm(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Whether it is one of those that [`harmless`] escapes: control characters, ends of lines, and the marks that turn the
/// direction of writing around. Each is within 16 bits.
pub fn does_harm(c: char) -> bool {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether it is all printable ASCII: most is, and that is seen fast.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_once_stays_as_it_is() {
        let harm = "a\\b\n\u{1b}\u{9b}\u{202e}\u{2028}\u{e9}";
        let once = harmless(harm).into_owned();
        assert_eq!(once, "a\\b\\n\\u{1b}\\u{9b}\\u{202e}\\u{2028}\u{e9}");
        assert_eq!(harmless(&once), once);
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for name in ["0000000000000001.seg", "it's \"so\"", "C:\\dir", "caf\u{e9}-\u{4e2d}", "a\u{301}", ""] {
            assert!(matches!(harmless(name), Cow::Borrowed(same) if same == name), "{name}");
        }
    }
}
