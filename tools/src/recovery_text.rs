//! What `docs/RECOVERY.md` says of a code: the tool carries it along, so that it is there on a bad day.

const TEXT: &str = include_str!("../../docs/RECOVERY.md");

/// The paragraph of a code, on one line and without the marks of a link; none if it has none.
pub(crate) fn paragraph(code: &str) -> Option<String> {
    let mut lines = TEXT.lines().skip_while(|line| line.strip_prefix("## ") != Some(code)).skip(1);
    let lines: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with('#')).collect();
    let text = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| without_links(&text))
}

/// `[text](#target)` as `text`.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((_, behind)) = after.split_once(')') else { break };
        match before.rsplit_once('[') {
            Some((head, word)) => out.extend([head, word]),
            None => out.push_str(before),
        }
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_found_and_read_as_text() {
        let damaged = paragraph("log_damaged").unwrap();
        assert!(
            damaged.starts_with("Bytes that were durable have changed") && !damaged.contains('#'),
            "{damaged}"
        );
        let header = paragraph("group_header").unwrap();
        assert!(header.contains("As for log_damaged; `verify`"), "{header}");
        assert_eq!((paragraph("no_such_code"), paragraph("")), (None, None));
    }
}
