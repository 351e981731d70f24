//! What to do next about a log that is not sound.

use std::collections::BTreeSet;

use arborlog::inspect::{Examination, SegmentInfo, Verdict, harmless};

use crate::outcome::Outcome;

/// The codes whose cause is a file that does not belong where it is: it has to go, and salvage has no part in it.
pub(crate) const ODD_FILES: [&str; 6] = [
    "not_a_file",
    "segment_exists",
    "segment_foreign",
    "segment_magic",
    "segment_misnamed",
    "segment_number",
];

const DAMAGE: &str = "\
what to do next, in this order (docs/RECOVERY.md has a paragraph for each code in brackets):
  1. stop the server that uses this directory, and copy the directory as it is
  2. if memory, the cable or the controller is at fault, the copy may verify elsewhere: try that
  3. if this log is one of a replicated set, or there is a backup: restore from it
  4. if few records are damaged and another copy has them: `arborlog log repair DIR --zxid ZXID --from OTHER_DIR`
  5. only then: `arborlog log salvage DIR` says what would be lost; with --yes the log ends before the damage";

/// The step that comes next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Advice {
    /// These files do not belong where they are.
    TakeAway(Vec<String>),
    /// Nothing is wrong with it for the version that wrote it.
    NewerVersion,
    /// Bytes or files of the log are lost.
    Restore,
}

impl Advice {
    /// None for a log that is sound.
    pub(crate) fn of(examination: &Examination) -> Option<Advice> {
        let foreign = |s: &SegmentInfo| s.damages.iter().any(|damage| damage.code == "segment_foreign");
        if examination.log().next().is_some() && examination.log().all(foreign) {
            // They agree with each other: it is the manifest that came from elsewhere.
            return Some(Advice::TakeAway(vec!["log.manifest".to_owned()]));
        }
        let verdict = match &examination.verdict {
            Verdict::Refused(error) => Some((error.code(), error.at().file.clone().unwrap_or_default())),
            _ => None,
        };
        let damages = examination.damages().map(|damage| (damage.code, damage.file.clone()));
        let found: Vec<_> = verdict.into_iter().chain(damages).collect();
        Advice::of_codes(&found)
    }

    fn of_codes(found: &[(&str, String)]) -> Option<Advice> {
        let odd = found.iter().filter(|(code, _)| ODD_FILES.contains(code));
        let odd: BTreeSet<&String> = odd.map(|(_, file)| file).collect();
        if !odd.is_empty() {
            return Some(Advice::TakeAway(odd.into_iter().cloned().collect()));
        }
        let newer = |(code, _): &(&str, String)| Outcome::of_damage(code) == Outcome::Refused;
        match found {
            [] => None,
            found if found.iter().any(newer) => Some(Advice::NewerVersion),
            _ => Some(Advice::Restore),
        }
    }

    /// A stable word.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Advice::TakeAway(_) => "take_away",
            Advice::NewerVersion => "newer_version",
            Advice::Restore => "restore",
        }
    }

    /// The files to take away.
    pub(crate) fn files(&self) -> &[String] {
        if let Advice::TakeAway(files) = self { files } else { &[] }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Advice::TakeAway(files) => format!(
                "what to do next (docs/RECOVERY.md has a paragraph for each code in brackets):\n  1. stop the server \
                 that uses this directory\n  2. move out of the directory what does not belong where it is: {}\n  \
                 3. if it took the place of a file of the log, put that one back\n  4. verify again: whatever else is \
                 wrong is judged anew then",
                files.iter().map(|file| harmless(file)).collect::<Vec<_>>().join(", ")
            ),
            Advice::NewerVersion => {
                "what to do next: use the newer arborlog that wrote this log; nothing here is \
                                     known to be damaged"
                    .to_owned()
            }
            Advice::Restore => DAMAGE.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paragraphs of `docs/RECOVERY.md` by their codes.
    fn paragraphs() -> Vec<(String, String)> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/RECOVERY.md");
        let text = std::fs::read_to_string(path).unwrap();
        let parts = text.split("\n## ").skip(1);
        let parts = parts.filter_map(|part| part.split_once('\n'));
        parts
            .map(|(code, text)| (code.to_owned(), text.split_whitespace().collect::<Vec<_>>().join(" ")))
            .collect()
    }

    #[test]
    fn the_document_gives_the_same_advice() {
        let paragraphs = paragraphs();
        for code in ODD_FILES {
            assert!(paragraphs.iter().any(|(heading, _)| heading == code), "{code}");
        }
        for (code, text) in paragraphs {
            let text = text.to_lowercase();
            let odd = ODD_FILES.contains(&code.as_str());
            assert_eq!(text.contains("out of the directory"), odd, "{code}: {text}");
            let remedies = text.contains("the order of remedies") || text.contains("(#log_damaged)");
            assert!(!odd || !remedies, "{code}: {text}");
            let newer = text.contains("a newer arborlog");
            assert_eq!(newer, Outcome::of_damage(&code) == Outcome::Refused, "{code}: {text}");
        }
    }

    #[test]
    fn odd_files_come_first() {
        let found = |codes: &[&'static str]| -> Vec<(&'static str, String)> {
            codes.iter().map(|code| (*code, format!("{code}.seg"))).collect()
        };
        assert_eq!(Advice::of_codes(&[]), None);
        assert_eq!(Advice::of_codes(&found(&["log_damaged", "record_checksum"])), Some(Advice::Restore));
        assert_eq!(Advice::of_codes(&found(&["segment_version"])), Some(Advice::NewerVersion));
        let odd = Advice::of_codes(&found(&["log_damaged", "segment_foreign", "segment_foreign"]));
        assert_eq!(odd, Some(Advice::TakeAway(vec!["segment_foreign.seg".to_owned()])));
    }
}
