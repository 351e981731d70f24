use arborlog::SegmentFill;
use arborlog::inspect::{Examination, ManifestState, SegmentInfo, Verdict};
use serde_json::{Value, json};

use crate::args::Target;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, damage_object, error_object, integer, maybe_zxid, zxid};
use crate::place::log_at;
use crate::progress::Bar;
use crate::time::format_time;

/// One line a file.
pub(crate) fn run(target: &Target, output: &mut Output) -> Result<(), Failure> {
    let examination = examine(target)?;
    output.found(Outcome::of_examination(&examination));
    if output.json { print_json(&examination, output) } else { print_text(&examination, output) }
}

pub(crate) fn examine(target: &Target) -> Result<Examination, Failure> {
    let mut bar = Bar::new();
    Ok(log_at(&target.dir)?.examine(&mut |progress| bar.show(progress))?)
}

fn print_text(examination: &Examination, output: &mut Output) -> Result<(), Failure> {
    match &examination.manifest {
        ManifestState::Present(manifest) => output.line(&format!(
            "log.manifest  version {}, epoch {}, durable {}, database {}",
            manifest.version, manifest.epoch, manifest.durable_zxid, manifest.database_id
        ))?,
        ManifestState::Unreadable(error) => output.line(&format!("log.manifest  damaged: {error}"))?,
        _ => {}
    }
    for segment in &examination.segments {
        output.line(&segment_line(segment))?;
    }
    for (name, bytes) in &examination.other_files {
        output.line(&format!("{name}  {}", counted(*bytes, "byte")))?;
    }
    for name in &examination.foreign {
        output.line(&format!("{name}  foreign: not the log's, left alone"))?;
    }
    output.line(&closing(&examination.verdict))
}

/// How the log was closed, or why it does not open: the one wording of all commands.
pub(crate) fn closing(verdict: &Verdict) -> String {
    match verdict {
        Verdict::NoLog => "there is no log here".to_owned(),
        Verdict::Clean => "the log was closed cleanly".to_owned(),
        Verdict::Torn { file, offset, bytes } => format!(
            "the newest group in {file} was torn at byte {offset} ({} behind it). It was never acknowledged as far \
             as the log proves; the next open cuts it and keeps the bytes",
            counted(*bytes, "byte")
        ),
        Verdict::Refused(error) => format!("opening refuses this log: {error}"),
        _ => "the log is open, or was not closed cleanly; nothing is lost by it".to_owned(),
    }
}

fn segment_line(segment: &SegmentInfo) -> String {
    let zxids = match (segment.first_zxid, segment.last_zxid) {
        (Some(first), Some(last)) => format!(" zxid {first} to {last},"),
        _ => String::new(),
    };
    let times = segment.time_ms.map_or(String::new(), |(earliest, latest)| {
        format!(", {} to {}", format_time(earliest), format_time(latest))
    });
    let damages = match segment.damages_count {
        0 => String::new(),
        count => format!(", damaged in {}", counted(count, "place")),
    };
    format!(
        "{}  {:<7}{zxids} {}, {} of {}{times}{damages}",
        segment.file,
        segment.state.as_str(),
        counted(segment.records, "record"),
        segment.end_offset,
        counted(segment.file_bytes, "byte")
    )
}

fn print_json(examination: &Examination, output: &mut Output) -> Result<(), Failure> {
    output.object(&manifest_object(&examination.manifest))?;
    for segment in &examination.segments {
        output.object(&segment_object(segment))?;
    }
    for (file, bytes) in &examination.other_files {
        output.object(&json!({ "type": "other", "file": file, "file_bytes": integer(*bytes) }))?;
    }
    for file in &examination.foreign {
        output.object(&json!({ "type": "foreign", "file": file }))?;
    }
    output.object(&verdict_object(&examination.verdict))
}

pub(crate) fn manifest_object(state: &ManifestState) -> Value {
    let manifest = match state {
        ManifestState::Present(manifest) => manifest,
        ManifestState::Unreadable(error) => {
            return json!({ "type": "manifest", "state": "damaged", "error": error_object(error) });
        }
        _ => return json!({ "type": "manifest", "state": "missing" }),
    };
    let cut = |c: &arborlog::inspect::CutInfo| json!({ "seq": integer(c.seq), "last_zxid": zxid(c.last_zxid), "next_seq": integer(c.next_seq) });
    json!({
        "type": "manifest",
        "state": "present",
        "database_id": manifest.database_id.to_string(),
        "version": integer(manifest.version),
        "numbering": format!("{:?}", manifest.numbering).to_lowercase(),
        "epoch": integer(manifest.epoch.get()),
        "durable_zxid": zxid(manifest.durable_zxid),
        "clean": manifest.clean,
        "first_seq": integer(manifest.first_seq),
        "floor_zxid": zxid(manifest.floor_zxid),
        "cuts": manifest.cuts.iter().map(cut).collect::<Vec<_>>(),
    })
}

fn segment_object(segment: &SegmentInfo) -> Value {
    let fill = segment.fill.map(|fill| match fill {
        SegmentFill::Zeroed => "zeroed",
        SegmentFill::Allocated => "allocated",
        SegmentFill::Growing => "growing",
    });
    json!({
        "type": "segment",
        "file": segment.file,
        "seq": integer(segment.seq),
        "state": segment.state.as_str(),
        "first_zxid": maybe_zxid(segment.first_zxid),
        "last_zxid": maybe_zxid(segment.last_zxid),
        "records": integer(segment.records),
        "groups": integer(segment.groups),
        "payload_bytes": integer(segment.payload_bytes),
        "group_bytes": integer(segment.group_bytes),
        "padding_bytes": integer(segment.padding_bytes),
        "end_offset": integer(segment.end_offset),
        "file_bytes": integer(segment.file_bytes),
        "block_bytes": segment.block_bytes.map(integer),
        "fill": fill,
        "created_ms": segment.created_ms.map(integer),
        "time_first_ms": segment.time_ms.map(|(first, _)| integer(first)),
        "time_last_ms": segment.time_ms.map(|(_, last)| integer(last)),
        "damages_count": integer(segment.damages_count),
        "damages": segment.damages.iter().map(damage_object).collect::<Vec<_>>(),
    })
}

pub(crate) fn verdict_object(verdict: &Verdict) -> Value {
    let mut object = json!({ "type": "verdict", "verdict": verdict.as_str(), "opens": verdict.opens() });
    match verdict {
        Verdict::Torn { file, offset, bytes } => {
            object["torn"] = json!({ "file": file, "offset": integer(*offset), "bytes": integer(*bytes) });
        }
        Verdict::Refused(error) => object["error"] = error_object(error),
        _ => {}
    }
    object
}
