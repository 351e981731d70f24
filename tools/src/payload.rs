//! Payloads as text, and text that does a terminal no harm.

use std::borrow::Cow;

use arborlog::inspect::{does_harm, harmless};

use crate::args::PayloadFormat;

/// The payload in the format asked for; none if it is not asked for.
pub(crate) fn show(payload: &[u8], format: PayloadFormat) -> Option<String> {
    match format {
        PayloadFormat::None => None,
        PayloadFormat::Text => Some(text(payload)),
        PayloadFormat::Hex => Some(hex(payload)),
        PayloadFormat::Base64 => Some(base64(payload)),
    }
}

/// Text as it is, with backslashes, control characters and what is no UTF-8 escaped: one line, and harmless
/// to a terminal.
fn text(payload: &[u8]) -> String {
    let mut out = String::with_capacity(payload.len());
    for chunk in payload.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                c => push_harmless(&mut out, c),
            }
        }
        for byte in chunk.invalid() {
            out.push_str("\\x");
            push_hex(&mut out, *byte);
        }
    }
    out
}

fn push_harmless(out: &mut String, c: char) {
    if does_harm(c) { out.extend(c.escape_default()) } else { out.push(c) }
}

/// Of what JSON leaves as it is, the same in JSON's own escapes. It stands in strings only, so readers see no difference.
pub(crate) fn harmless_json(json: &str) -> Cow<'_, str> {
    if matches!(harmless(json), Cow::Borrowed(_)) {
        return Cow::Borrowed(json);
    }
    let escaped = |c: char| if does_harm(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(json.chars().map(escaped).collect())
}

fn hex(payload: &[u8]) -> String {
    let mut out = String::with_capacity(payload.len() * 2);
    for byte in payload {
        push_hex(&mut out, *byte);
    }
    out
}

fn push_hex(out: &mut String, byte: u8) {
    let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 });
    out.push(digit(byte >> 4));
    out.push(digit(byte & 15));
}

/// RFC 4648, with padding.
pub(crate) fn base64(payload: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(payload.len().div_ceil(3) * 4);
    for chunk in payload.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            let value = (bits >> (18 - 6 * index)) & 63;
            let used = index <= chunk.len();
            out.push(if used { char::from(ALPHABET[value as usize]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_rfc() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn text_stays_on_its_line_and_off_the_terminals_controls() {
        assert_eq!(text(b"a\\b\nc\x1b[31m\xff\xc3\xa9"), "a\\\\b\\nc\\u{1b}[31m\\xff\u{e9}");
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
    }

    #[test]
    fn json_without_harm_says_the_same() {
        let harm = "a\\b\n\u{1b}\u{9b}\u{202e}\u{2028}\u{e9}";
        let json = serde_json::to_string(harm).unwrap();
        let escaped = harmless_json(&json);
        assert!(escaped.contains("\\u009b\\u202e") && !escaped.contains(does_harm), "{escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), harm);
    }
}
