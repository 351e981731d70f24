//! As much of Rust's lexical structure as the rules need: what is code, and what is comment.

/// The text twice, each byte outside of its class made a blank. Lines and offsets stay the same in both.
pub(super) struct Masked {
    pub(super) code: String,
    pub(super) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Code,
    Comment,
    Literal,
}

pub(super) fn mask(text: &str) -> Masked {
    let bytes = text.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    let mut comments = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let (class, len) = token(bytes, at);
        for &byte in &bytes[at..at + len] {
            let blank = if byte == b'\n' { b'\n' } else { b' ' };
            code.push(if class == Class::Code { byte } else { blank });
            comments.push(if class == Class::Comment { byte } else { blank });
        }
        at += len;
    }
    Masked {
        code: String::from_utf8_lossy(&code).into_owned(),
        comments: String::from_utf8_lossy(&comments).into_owned(),
    }
}

/// The class and length of what begins at `at`: a comment, a literal, a whole word, or one other byte.
fn token(bytes: &[u8], at: usize) -> (Class, usize) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        let len = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        return (Class::Comment, len);
    }
    if rest.starts_with(b"/*") {
        return (Class::Comment, block_comment(rest));
    }
    if let Some(len) = string(rest) {
        return (Class::Literal, len);
    }
    if rest[0] == b'\'' {
        return character(rest).map_or((Class::Code, 1), |len| (Class::Literal, len));
    }
    let word = rest.iter().take_while(|&&b| is_word(b)).count();
    (Class::Code, word.max(1))
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// A string of any kind: plain, byte, C, raw.
fn string(rest: &[u8]) -> Option<usize> {
    let prefix = [&b"br"[..], b"cr", b"b", b"c", b"r"]
        .into_iter()
        .find(|prefix| rest.starts_with(prefix) && matches!(rest.get(prefix.len()), Some(b'"' | b'#')))
        .unwrap_or(b"");
    let raw = prefix.contains(&b'r');
    let hashes = rest[prefix.len()..].iter().take_while(|&&b| raw && b == b'#').count();
    let open = prefix.len() + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut at = open + 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if !raw => at += 1,
            b'"' if rest[at + 1..].iter().take(hashes).filter(|&&b| b == b'#').count() == hashes => {
                return Some(at + 1 + hashes);
            }
            _ => {}
        }
        at += 1;
    }
    Some(rest.len())
}

/// A character literal; `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|&b| b == b'\'')?;
        return Some(close + 4);
    }
    let first = *rest.get(1)?;
    let width = match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Where `needle` stands in `code` as whole words: an end that is a word's byte must be a word's end.
pub(super) fn find_words<'a>(code: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let word_at = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|&b| is_word(b));
    code.match_indices(needle).map(|(at, _)| at).filter(move |&at| {
        let end = at + needle.len();
        let starts = !(word_at(Some(at)) && word_at(at.checked_sub(1)));
        starts && !(word_at(Some(end - 1)) && word_at(Some(end)))
    })
}

/// The offset just after the bracket that closes the one at `open`.
pub(super) fn close_of(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text[..offset].matches('\n').count()
}

#[test]
fn tells_code_from_comments_and_literals() {
    let text = "let a = \"b // c\"; // d \"e\nf('\"', '\\'', '\\u{41}', 'é', b'x'); /* g /* h */ i */ j::<'k>(r#\"l\"m\"#);";
    let masked = mask(text);
    let squeeze = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeeze(&masked.code), "let a = ; f( , , , , b ); j::<'k>( );");
    assert_eq!(squeeze(&masked.comments), "// d \"e /* g /* h */ i */");
    assert_eq!(masked.code.matches('\n').count(), 1);
}

#[test]
fn finds_whole_words_only() {
    let found: Vec<usize> = find_words("unsafe unsafe_op not_unsafe (unsafe{", "unsafe").collect();
    assert_eq!(found, [0, 29]);
    assert_eq!(find_words("a.ok(); b.ok()?", ".ok();").count(), 1);
}

#[test]
fn closes_the_bracket_that_was_opened() {
    assert_eq!(close_of("f(a[1], {b}) + (c)", 1), 12);
}
