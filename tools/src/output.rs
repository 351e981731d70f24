//! Standard output: text or JSON lines, and the one place where failures are told.

use std::io::{self, BufWriter, Stdout, Write};

use arborlog::inspect::{DamagedBytes, Note, harmless};
use arborlog::{Error, ErrorKind, Zxid};
use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::payload::harmless_json;

/// Why a command did not come to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library refused, or the disk failed.
    Log(Error),
    /// The tool itself could not do what was asked for.
    Refused {
        /// The word of `docs/RECOVERY.md`.
        code: &'static str,
        message: String,
    },
    /// What was to be looked at is damaged, so that there is nothing to print of it.
    Damaged {
        /// The word of `docs/RECOVERY.md`.
        code: &'static str,
        message: String,
    },
    /// The request makes no sense.
    Usage(String),
    /// Standard output took no more.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Log(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

/// Where results go.
#[derive(Debug)]
pub(crate) struct Output {
    out: BufWriter<Stdout>,
    pub(crate) json: bool,
    outcome: Outcome,
    /// What holds whether it can be printed or not.
    settled: Option<&'static str>,
    /// What is to be told behind a failure.
    hint: Option<String>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Output {
        let out = BufWriter::with_capacity(64 * 1024, io::stdout());
        Output { out, json, outcome: Outcome::Clean, settled: None, hint: None }
    }

    /// What is known of the log by now; what is printed is what was asked for, and without it the command
    /// has failed. The first finding counts.
    pub(crate) fn found(&mut self, outcome: Outcome) {
        if self.outcome == Outcome::Clean {
            self.outcome = outcome;
        }
    }

    /// What was done, or judged: it holds though nobody can be told, so the exit code says it then too. `what`
    /// is told where the output cannot be.
    pub(crate) fn settle(&mut self, outcome: Outcome, what: &'static str) {
        (self.outcome, self.settled) = (outcome, Some(what));
    }

    /// What there is to know once a failure was told.
    pub(crate) fn add_hint(&mut self, hint: String) {
        self.hint = Some(hint);
    }

    /// What the process is to end with if all can be printed.
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// One line of text. What names and paths in damaged or hostile data would do to a terminal is escaped.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.raw_line(&harmless(text))
    }

    fn raw_line(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.out.write_all(bytes)?)
    }

    /// One JSON object on a line of its own.
    pub(crate) fn object(&mut self, object: &Value) -> Result<(), Failure> {
        self.raw_line(&harmless_json(&object.to_string()))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    /// Tells the failure, and what the process ends with. A reader that has seen enough is no failure.
    pub(crate) fn fail(&mut self, failure: &Failure) -> Outcome {
        let outcome = self.tell_failure(failure);
        if let Some(hint) = self.hint.take() {
            tell(&hint);
        }
        outcome
    }

    fn tell_failure(&mut self, failure: &Failure) -> Outcome {
        match failure {
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => self.outcome,
            Failure::Output(error) => {
                let settled = self.settled.map_or(String::new(), |what| format!("; {what}"));
                tell(&format!("cannot write the output: {error}{settled}"));
                if self.settled.is_some() { self.outcome } else { Outcome::Refused }
            }
            Failure::Log(error) => {
                self.tell_error(&error_object(error), &error.to_string());
                Outcome::of_error(error)
            }
            Failure::Refused { code, message } => {
                self.tell_error(&json!({ "code": code, "kind": code, "message": message }), message);
                Outcome::Refused
            }
            Failure::Damaged { code, message } => {
                self.tell_error(&json!({ "code": code, "kind": "corrupt", "message": message }), message);
                Outcome::Damaged
            }
            Failure::Usage(message) => {
                let word = "invalid_option";
                self.tell_error(&json!({ "code": word, "kind": "invalid", "message": message }), message);
                Outcome::Usage
            }
        }
    }

    fn tell_error(&mut self, object: &Value, text: &str) {
        if self.json {
            let told = self.object(&json!({ "error": object })).and_then(|()| self.flush());
            if told.is_err() {
                tell(text);
            }
        } else {
            if self.flush().is_err() {
                // Nobody reads the results any more; the error still goes to the terminal.
            }
            tell(text);
        }
    }
}

/// One line to the operator, apart from the results, and as harmless as they are.
pub(crate) fn tell(text: &str) {
    let text = harmless(text);
    // If even this is closed, there is no one left to tell.
    let _ = writeln!(io::stderr(), "arborlog: {text}");
}

/// A number of things in words: `1 record`, `2 records`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// Integers within 2^53 are numbers, others strings: a double holds the first ones exactly.
pub(crate) fn integer(number: impl Into<i128>) -> Value {
    const EXACT: i128 = 1 << 53;
    let number = number.into();
    match i64::try_from(number) {
        Ok(small) if (-EXACT..=EXACT).contains(&number) => json!(small),
        _ => json!(number.to_string()),
    }
}

pub(crate) fn zxid(zxid: Zxid) -> Value {
    json!(zxid.to_string())
}

pub(crate) fn maybe_zxid(value: Option<Zxid>) -> Value {
    value.map_or(Value::Null, zxid)
}

pub(crate) fn error_object(error: &Error) -> Value {
    let place = error.at();
    json!({
        "code": error.code(),
        "kind": kind_word(error.kind()),
        "message": error.to_string(),
        "file": place.file,
        "offset": place.offset.map(integer),
        "zxid": maybe_zxid(place.zxid),
        "zxid_end": maybe_zxid(place.zxid_end),
    })
}

pub(crate) fn damage_object(damage: &DamagedBytes) -> Value {
    json!({
        "file": damage.file,
        "code": damage.code,
        "offset": integer(damage.offset),
        "end_offset": damage.end_offset.map(integer),
        "first_zxid": maybe_zxid(damage.first_zxid),
        "last_zxid": maybe_zxid(damage.last_zxid),
    })
}

pub(crate) fn note_object(note: &Note) -> Value {
    json!({
        "file": note.file,
        "code": note.code,
        "offset": integer(note.offset),
        "bytes": integer(note.bytes),
        "message": note.to_string(),
    })
}

/// `OutOfOrder` as `out_of_order`.
fn kind_word(kind: ErrorKind) -> String {
    let mut word = String::new();
    for c in format!("{kind:?}").chars() {
        if c.is_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_a_double_are_strings() {
        assert_eq!(integer(1u64 << 53), json!(9_007_199_254_740_992u64));
        assert_eq!(integer((1u64 << 53) + 1), json!("9007199254740993"));
        assert_eq!(integer(u64::MAX), json!("18446744073709551615"));
        assert_eq!(integer(-5), json!(-5));
        assert_eq!(integer(i64::MIN), json!("-9223372036854775808"));
    }

    #[test]
    fn kinds_are_words() {
        assert_eq!(kind_word(ErrorKind::OutOfOrder), "out_of_order");
        assert_eq!(kind_word(ErrorKind::Io), "io");
    }
}
