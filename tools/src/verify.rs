use arborlog::inspect::{DamagedBytes, Examination, Verdict};
use serde_json::json;

use crate::advice::Advice;
use crate::args::Target;
use crate::ls::{examine, manifest_object, verdict_object};
use crate::outcome::Outcome;
use crate::output::{Failure, Output, damage_object, integer, note_object};

/// Reads every byte and says what is damaged.
pub(crate) fn run(target: &Target, output: &mut Output) -> Result<(), Failure> {
    let examination = examine(target)?;
    let outcome = Outcome::of_examination(&examination);
    let word = match outcome {
        Outcome::Clean => "nothing is damaged",
        Outcome::Damaged => "the log is damaged",
        _ => "opening refuses the log",
    };
    output.settle(outcome, word);
    if output.json { print_json(&examination, output) } else { print_text(&examination, output) }
}

fn print_text(examination: &Examination, output: &mut Output) -> Result<(), Failure> {
    for segment in examination.log() {
        for damage in &segment.damages {
            output.line(&damage.to_string())?;
        }
        let more = segment.damages_count - segment.damages.len() as u64;
        if more > 0 {
            output.line(&format!("{}: and {more} more places", segment.file))?;
        }
    }
    match &examination.verdict {
        Verdict::NoLog => return output.line("there is no log here: nothing to verify"),
        Verdict::Refused(error) => output.line(&format!("opening refuses this log: {error}"))?,
        Verdict::Torn { file, offset, bytes } => output.line(&format!(
            "note: the newest group in {file} was torn at byte {offset} ({bytes} bytes behind it). It was never \
             acknowledged as far as the log proves; the next open cuts it and keeps the bytes"
        ))?,
        Verdict::Unclean => output.line("note: the log is open, or was not closed cleanly; nothing is lost by it")?,
        _ => {}
    }
    for note in &examination.notes {
        output.line(&format!("note: {note}"))?;
    }
    if let Some(advice) = Advice::of(examination) {
        return output.line(&advice.text());
    }
    let records: u64 = examination.log().map(|s| s.records).sum();
    output.line(&format!("sound: {records} records in {} segments", examination.log().count()))
}

fn print_json(examination: &Examination, output: &mut Output) -> Result<(), Failure> {
    let advice = Advice::of(examination);
    let damages: Vec<&DamagedBytes> = examination.damages().collect();
    output.object(&json!({
        "type": "verification",
        "sound": examination.is_sound(),
        "records": integer(examination.log().map(|s| s.records).sum::<u64>()),
        "segments": integer(examination.log().count() as u64),
        "manifest": manifest_object(&examination.manifest),
        "verdict": verdict_object(&examination.verdict),
        "notes": examination.notes.iter().map(note_object).collect::<Vec<_>>(),
        "damages_count": integer(examination.log().map(|s| s.damages_count).sum::<u64>()),
        "next_step": advice.as_ref().map(Advice::as_str),
        "take_away": advice.as_ref().map_or(&[][..], Advice::files),
        "damages": damages.into_iter().map(damage_object).collect::<Vec<_>>(),
    }))
}
