use arborlog::inspect::{Depth, EngineExamination, Examination, Finding, Severity};
use serde_json::{Value, json};

use crate::engine_args::VerifyArguments;
use crate::inspect::is_unfinished;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, integer, maybe_zxid, zxid};
use crate::place::engine_at;
use crate::progress::Bar;

/// Reads every byte of an engine's directory and says what is damaged.
pub(crate) fn run(arguments: &VerifyArguments, output: &mut Output) -> Result<(), Failure> {
    let depth = if arguments.deep { Depth::Replay } else { Depth::Bytes };
    let mut bar = Bar::new();
    let found = engine_at(&arguments.engine)?.examine(depth, &mut |progress| bar.show(progress))?;
    drop(bar);
    let outcome = Outcome::of_findings(&found);
    let word = match outcome {
        Outcome::Clean => "nothing is damaged",
        Outcome::Damaged if is_unfinished(&found) => "the engine was never finished",
        Outcome::Damaged => "the engine's directory is damaged",
        _ => "opening refuses the engine",
    };
    output.settle(outcome, word);
    if output.json { output.object(&object(&found)) } else { print_text(&found, output) }
}

fn print_text(found: &EngineExamination, output: &mut Output) -> Result<(), Failure> {
    for finding in &found.findings {
        let word = if finding.severity == Severity::Note { "note: " } else { "" };
        output.line(&format!("{word}{finding}"))?;
    }
    if is_unfinished(found) {
        return Ok(());
    }
    for line in summary(found) {
        output.line(&line)?;
    }
    let damages = found.damages().count() as u64;
    if damages == 0 {
        return output.line("sound");
    }
    output.line(&format!(
        "{} damaged: `arborlog inspect` has the next step for each; stop the server and copy the directory first",
        counted(damages, "place")
    ))
}

/// What was read, a line for each part.
pub(crate) fn summary(found: &EngineExamination) -> Vec<String> {
    let mut lines = Vec::new();
    let generation = found.generation.unwrap_or(0);
    if let Some(log) = &found.log {
        let records = log.log().map(|segment| segment.records).sum();
        let segments = log.log().count() as u64;
        let range =
            found.log_range.map_or(String::new(), |(floor, last)| format!(", after {floor} up to {last}"));
        lines.push(format!(
            "log-{generation}: {} in {}{range}",
            counted(records, "record"),
            counted(segments, "segment")
        ));
    }
    let whole = found.snapshots.iter().filter(|s| s.is_whole()).count();
    lines.push(format!(
        "snapshots-{generation}: {whole} of {} whole",
        counted(found.snapshots.len() as u64, "snapshot")
    ));
    let oldest = found.snapshots.iter().rev().find(|s| s.is_whole());
    if let (Some(oldest), Some((floor, last))) = (oldest, found.log_range) {
        let does = if (floor..=last).contains(&oldest.end) { "reaches" } else { "does not reach" };
        lines.push(format!("seam: the log {does} back to the oldest whole snapshot, {}", oldest.end));
    }
    if let Some(replay) = &found.replay {
        let from = replay.began_with.map_or("an empty tree".to_owned(), |end| format!("the snapshot {end}"));
        let same = replay.compared.iter().filter(|(_, same)| *same).count();
        let on_the_way = match replay.compared.len() as u64 {
            0 => String::new(),
            count => format!("; {same} of {} on the way made the same tree", counted(count, "snapshot")),
        };
        lines.push(format!(
            "replay: {} from {from} to {}, digest {:#x}{on_the_way}",
            counted(replay.txns, "txn"),
            replay.last_zxid,
            replay.digest
        ));
    }
    lines
}

pub(crate) fn finding_object(finding: &Finding) -> Value {
    json!({
        "severity": if finding.severity == Severity::Note { "note" } else { "damage" },
        "code": finding.code,
        "file": finding.file,
        "offset": finding.offset.map(integer),
        "end_offset": finding.end_offset.map(integer),
        "first_zxid": maybe_zxid(finding.first_zxid),
        "last_zxid": maybe_zxid(finding.last_zxid),
        "message": finding.message,
    })
}

fn object(found: &EngineExamination) -> Value {
    let findings = |severity| -> Vec<Value> {
        found.findings.iter().filter(|f| f.severity == severity).map(finding_object).collect()
    };
    let snapshots: Vec<Value> = found
        .snapshots
        .iter()
        .map(|s| json!({ "file": s.file, "end_zxid": zxid(s.end), "whole": s.is_whole(), "damages": s.damages.len() }))
        .collect();
    let replay = found.replay.as_ref().map(|replay| {
        let compared = replay.compared.iter().map(|(end, same)| json!({ "zxid": zxid(*end), "same": same }));
        json!({
            "began_with": maybe_zxid(replay.began_with),
            "txns": integer(replay.txns),
            "failures": integer(replay.failures),
            "last_zxid": zxid(replay.last_zxid),
            "digest": format!("{:#x}", replay.digest),
            "compared": compared.collect::<Vec<_>>(),
        })
    });
    json!({
        "type": "engine_verification",
        "sound": found.is_sound(),
        "generation": found.generation.map(integer),
        "log_floor_zxid": maybe_zxid(found.log_range.map(|(floor, _)| floor)),
        "log_last_zxid": maybe_zxid(found.log_range.map(|(_, last)| last)),
        "records": integer(found.log.iter().flat_map(Examination::log).map(|s| s.records).sum::<u64>()),
        "snapshots": snapshots,
        "damages": findings(Severity::Damage),
        "notes": findings(Severity::Note),
        "replay": replay,
    })
}
