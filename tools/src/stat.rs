use arborlog::Zxid;
use arborlog::inspect::Examination;
use serde_json::json;

use crate::args::Target;
use crate::ls::examine;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, integer, maybe_zxid};
use crate::time::format_time;

/// Sums over the segments of the log.
#[derive(Debug, Default)]
struct Totals {
    segments: u64,
    records: u64,
    groups: u64,
    payload_bytes: u64,
    group_bytes: u64,
    padding_bytes: u64,
    file_bytes: u64,
    zxids: Option<(Zxid, Zxid)>,
    time_ms: Option<(i64, i64)>,
    epochs: Option<(u64, u64)>,
}

impl Totals {
    fn of(examination: &Examination) -> Totals {
        let mut totals = Totals::default();
        for segment in examination.log() {
            totals.segments += 1;
            totals.records += segment.records;
            totals.groups += segment.groups;
            totals.payload_bytes += segment.payload_bytes;
            totals.group_bytes += segment.group_bytes;
            totals.padding_bytes += segment.padding_bytes;
            totals.file_bytes += segment.file_bytes;
            totals.zxids = widen(totals.zxids, segment.first_zxid.zip(segment.last_zxid));
            totals.time_ms = widen(totals.time_ms, segment.time_ms);
            totals.epochs = widen(totals.epochs, segment.epochs.map(|(a, b)| (a.get(), b.get())));
        }
        totals
    }

    fn records_per_group(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let ratio = self.records as f64 / self.groups.max(1) as f64;
        ratio
    }
}

fn widen<T: Ord>(range: Option<(T, T)>, with: Option<(T, T)>) -> Option<(T, T)> {
    match (range, with) {
        (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
        (range, None) => range,
        (None, with) => with,
    }
}

/// Prints the totals of a log.
pub(crate) fn run(target: &Target, output: &mut Output) -> Result<(), Failure> {
    let examination = examine(target)?;
    output.found(Outcome::of_examination(&examination));
    let totals = Totals::of(&examination);
    if output.json {
        print_json(&examination, &totals, output)
    } else {
        print_text(&examination, &totals, output)
    }
}

fn print_text(examination: &Examination, totals: &Totals, output: &mut Output) -> Result<(), Failure> {
    output.line(&format!("state              {}", examination.verdict.as_str()))?;
    output.line(&format!("segments           {}", totals.segments))?;
    output.line(&format!("records            {}", totals.records))?;
    output.line(&format!("groups             {}", totals.groups))?;
    output.line(&format!("records per group  {:.2}", totals.records_per_group()))?;
    output.line(&format!("payload bytes      {}", totals.payload_bytes))?;
    output.line(&format!("group bytes        {}", totals.group_bytes))?;
    output.line(&format!("padding bytes      {}", totals.padding_bytes))?;
    output.line(&format!("file bytes         {}", totals.file_bytes))?;
    if let Some((first, last)) = totals.zxids {
        output.line(&format!("zxids              {first} to {last}"))?;
    }
    if let Some((first, last)) = totals.epochs {
        output.line(&format!("epochs             {first} to {last}"))?;
    }
    if let Some((first, last)) = totals.time_ms {
        output.line(&format!("times              {} to {}", format_time(first), format_time(last)))?;
    }
    Ok(())
}

fn print_json(examination: &Examination, totals: &Totals, output: &mut Output) -> Result<(), Failure> {
    output.object(&json!({
        "type": "stat",
        "verdict": examination.verdict.as_str(),
        "sound": examination.is_sound(),
        "segments": integer(totals.segments),
        "records": integer(totals.records),
        "groups": integer(totals.groups),
        "records_per_group": totals.records_per_group(),
        "payload_bytes": integer(totals.payload_bytes),
        "group_bytes": integer(totals.group_bytes),
        "padding_bytes": integer(totals.padding_bytes),
        "file_bytes": integer(totals.file_bytes),
        "first_zxid": maybe_zxid(totals.zxids.map(|(first, _)| first)),
        "last_zxid": maybe_zxid(totals.zxids.map(|(_, last)| last)),
        "epoch_first": totals.epochs.map(|(first, _)| integer(first)),
        "epoch_last": totals.epochs.map(|(_, last)| integer(last)),
        "time_first_ms": totals.time_ms.map(|(first, _)| integer(first)),
        "time_last_ms": totals.time_ms.map(|(_, last)| integer(last)),
    }))
}
