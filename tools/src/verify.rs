use arborlog::inspect::{DamagedBytes, Examination, Verdict};
use serde_json::json;

use crate::advice::Advice;
use crate::args::Target;
use crate::ls::{closing, examine, manifest_object, verdict_object};
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, damage_object, integer, note_object};

/// Reads every byte and says what is damaged.
pub(crate) fn run(target: &Target, output: &mut Output) -> Result<(), Failure> {
    let examination = examine(target)?;
    let outcome = Outcome::of_examination(&examination);
    let word = match outcome {
        Outcome::Clean => "nothing is damaged",
        Outcome::Damaged => "the log is damaged",
        _ if matches!(examination.verdict, Verdict::NoLog) => "there is no log",
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
            output.line(&format!("{}: and {} more", segment.file, counted(more, "place")))?;
        }
    }
    let closing = closing(&examination.verdict);
    match &examination.verdict {
        Verdict::NoLog | Verdict::Clean | Verdict::Refused(_) => output.line(&closing)?,
        _ => output.line(&format!("note: {closing}"))?,
    }
    for note in &examination.notes {
        output.line(&format!("note: {note}"))?;
    }
    if let Some(advice) = Advice::of(examination) {
        return advice.text().lines().try_for_each(|line| output.line(line));
    }
    if matches!(examination.verdict, Verdict::NoLog) {
        return Ok(());
    }
    let records = examination.log().map(|s| s.records).sum();
    let segments = examination.log().count() as u64;
    output.line(&format!("sound: {} in {}", counted(records, "record"), counted(segments, "segment")))
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
