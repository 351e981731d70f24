//! One page for a bad day.

use arborlog::inspect::{
    EngineExamination, EngineManifestState, EngineName, ManifestState, SegmentInfo, SegmentState, Severity,
};
use arborlog::{EngineOptions, EngineView, Error};
use serde_json::{Value, json};

use crate::args::EngineTarget;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, error_object, integer, maybe_zxid, zxid};
use crate::place::engine_at;
use crate::progress::Bar;
use crate::recovery_text::paragraph;
use crate::verify_engine::finding_object;

/// So many whole segments in a row are told as one.
const RUN_MIN: usize = 6;

/// What a file is.
struct Row {
    name: String,
    what: String,
}

/// Tells what each file is, what an open would do, and what to do about each finding.
pub(crate) fn run(target: &EngineTarget, output: &mut Output) -> Result<(), Failure> {
    let mut bar = Bar::new();
    let found =
        engine_at(target)?.examine(arborlog::inspect::Depth::Bytes, &mut |progress| bar.show(progress))?;
    drop(bar);
    let mut options = EngineOptions::new();
    if let Some(dir) = &target.log_dir {
        options = options.log_dir(dir);
    }
    let would = options.open_read_only(&target.target.dir);
    let outcome = match &would {
        Err(error) if found.is_sound() && !is_new(&found) => Outcome::of_error(error),
        _ => Outcome::of_findings(&found),
    };
    output.settle(outcome, "the directory was inspected");
    let rows = rows(&found);
    if output.json {
        return output.object(&object(&found, &would, &rows));
    }
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for Row { name, what } in &rows {
        output.line(&format!("{name:<width$}  {what}"))?;
    }
    output.line("")?;
    for line in forecast(&found, &would) {
        output.line(&line)?;
    }
    output.line("")?;
    print_findings(&found, output)
}

/// Whether the engine was never opened to its end.
fn is_new(found: &EngineExamination) -> bool {
    matches!(&found.manifest, EngineManifestState::Present(manifest) if !manifest.established)
}

/// Whether it is half of an engine that was being made: nothing of it is worth a copy.
pub(crate) fn is_unfinished(found: &EngineExamination) -> bool {
    found.damages().any(|finding| finding.code == Some("founding_unfinished"))
}

fn rows(found: &EngineExamination) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: &str, what: String| rows.push(Row { name: name.to_owned(), what });
    let used = found.generation;
    let role = |number: u64| if Some(number) == used { "in use" } else { "not in use" };
    for (name, what) in &found.names {
        match what {
            EngineName::Manifest => add(name, manifest_text(&found.manifest)),
            EngineName::ManifestTemp => add(name, "a manifest that was never finished".into()),
            EngineName::Founding => {
                add(name, "the mark of an import or a restore while it is at work".into())
            }
            EngineName::Lock => add(name, "the lock of whoever has the engine open, or had it last".into()),
            EngineName::Log(_) | EngineName::Snapshots(_) if is_unfinished(found) => {
                add(name, "of the engine that was being made".into());
            }
            EngineName::Log(number) => add(name, format!("the log, {}", role(*number))),
            EngineName::Snapshots(number) => add(name, format!("the snapshots, {}", role(*number))),
            _ => add(name, "not arborlog's".into()),
        }
    }
    let number = used.unwrap_or(0);
    if let Some(log) = &found.log {
        let folder = format!("log-{number}");
        if let ManifestState::Present(manifest) = &log.manifest {
            let what =
                format!("the log's manifest: epoch {}, begins after {}", manifest.epoch, manifest.floor_zxid);
            add(&format!("{folder}/log.manifest"), what);
        }
        for (first, last, what) in segment_rows(&log.segments, RUN_MIN) {
            let names = if first == last { first } else { format!("{first} to {last}") };
            add(&format!("{folder}/{names}"), what);
        }
        for (name, bytes) in &log.other_files {
            add(&format!("{folder}/{name}"), format!("of the log, {}", counted(*bytes, "byte")));
        }
        for name in &log.foreign {
            add(&format!("{folder}/{name}"), "not arborlog's".into());
        }
    }
    for snapshot in &found.snapshots {
        let what = match (&snapshot.info, &snapshot.error) {
            (_, Some(error)) => format!("snapshot, not whole: {}", error.code()),
            (Some(info), None) => format!(
                "snapshot, whole, zxid {} to {}, {}",
                info.start,
                info.end,
                counted(info.nodes, "node")
            ),
            (None, None) => "snapshot".to_owned(),
        };
        add(&format!("snapshots-{number}/{}", snapshot.file), what);
    }
    for name in &found.temporary {
        add(&format!("snapshots-{number}/{name}"), "a snapshot that was never finished".into());
    }
    rows
}

/// Segments, of which whole ones that follow each other share a row if they are many: a page is to stay one.
fn segment_rows(segments: &[SegmentInfo], run_min: usize) -> Vec<(String, String, String)> {
    let is_plain =
        |segment: &SegmentInfo| segment.state == SegmentState::Sealed && segment.damages_count == 0;
    let mut rows = Vec::new();
    for run in segments.chunk_by(|a, b| is_plain(a) && is_plain(b)) {
        let parts = if run.len() >= run_min { vec![run] } else { run.chunks(1).collect() };
        for part in parts {
            let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
            let zxids = first.first_zxid.zip(last.last_zxid);
            let zxids = zxids.map_or(String::new(), |(first, last)| format!(", zxid {first} to {last}"));
            let records = counted(part.iter().map(|segment| segment.records).sum(), "record");
            let damaged = match part.iter().map(|segment| segment.damages_count).sum() {
                0 => String::new(),
                places => format!(", damaged in {}", counted(places, "place")),
            };
            let many =
                if part.len() == 1 { "segment".to_owned() } else { format!("{} segments", part.len()) };
            let what = format!("{many}, {}{zxids}, {records}{damaged}", first.state.as_str());
            rows.push((first.file.clone(), last.file.clone(), what));
        }
    }
    rows
}

fn manifest_text(manifest: &EngineManifestState) -> String {
    match manifest {
        EngineManifestState::Present(manifest) => format!(
            "the engine's manifest: database {}, version {}, generation {}, accepted epoch {}",
            manifest.database_id, manifest.version, manifest.generation, manifest.accepted_epoch
        ),
        EngineManifestState::Unreadable(error) => {
            format!("the engine's manifest, unreadable: {}", error.code())
        }
        _ => "the engine's manifest".to_owned(),
    }
}

/// What opening would do.
fn forecast(found: &EngineExamination, would: &Result<EngineView, Error>) -> Vec<String> {
    let view = match would {
        Ok(view) => view,
        Err(_) if is_new(found) => {
            return vec![
                "an open would make what is missing: the engine was never opened to its end".to_owned(),
            ];
        }
        Err(error) => return vec![format!("an open would be refused, and change nothing: {error}")],
    };
    let mut lines = Vec::new();
    let began = view.began_with.map_or("an empty tree".to_owned(), |end| format!("the snapshot {end}"));
    lines.push(format!(
        "an open would begin with {began}, replay {} of the log, and end at zxid {} with digest {:#x}",
        counted(view.replayed, "txn"),
        view.tree.last_zxid(),
        view.tree.digest()
    ));
    let newer = view.snapshots.iter().filter(|(end, _)| view.began_with.is_none_or(|begin| *end > begin));
    for (end, info) in newer {
        if let Err(error) = info {
            lines.push(format!("  it would pass over the snapshot {end}: {error}"));
        }
    }
    if view.replay_failures > 0 {
        let count = counted(view.replay_failures, "txn");
        lines.push(format!("  {count} could not be done: the tree and the log differ"));
    }
    lines.push(format!(
        "  the log: {}, closed: {}, epoch {}",
        counted(view.log.records, "record"),
        view.log.tail.as_str(),
        view.log.epoch
    ));
    if let Some(cut) = &view.log.cut {
        let bytes = counted(cut.bytes, "byte");
        lines.push(format!(
            "  it would cut {} at byte {}; {bytes} behind it would stay in the file",
            cut.file, cut.offset
        ));
    }
    if let EngineManifestState::Present(manifest) = &found.manifest
        && let Some(spare) = manifest.spare
    {
        lines.push(format!("  it would remove generation {spare}, which is not in use"));
    }
    for name in &found.temporary {
        lines.push(format!("  it would remove {name}, a snapshot that was never finished"));
    }
    lines
}

fn print_findings(found: &EngineExamination, output: &mut Output) -> Result<(), Failure> {
    if found.findings.is_empty() {
        return output.line("nothing was found");
    }
    if !found.is_sound() && !is_unfinished(found) {
        output.line(
            "before anything else: stop the server that uses this directory, and copy the directory as it is",
        )?;
    }
    for (number, finding) in (1..).zip(&found.findings) {
        let word = if finding.severity == Severity::Note { "note: " } else { "" };
        output.line(&format!("{number}. {word}{finding}"))?;
        if let Some(text) = finding.code.and_then(paragraph) {
            for line in wrapped(&text, 110) {
                output.line(&format!("     {line}"))?;
            }
        }
    }
    Ok(())
}

/// A text in lines of at most so many characters, where its words allow it.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let is_full =
            lines.last().is_some_and(|line| !line.is_empty() && line.len() + 1 + word.len() > width);
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines
}

fn object(found: &EngineExamination, would: &Result<EngineView, Error>, rows: &[Row]) -> Value {
    let opening = match would {
        Ok(view) => json!({
            "opens": true,
            "began_with": maybe_zxid(view.began_with),
            "replayed": integer(view.replayed),
            "replay_failures": integer(view.replay_failures),
            "last_zxid": zxid(view.tree.last_zxid()),
            "digest": format!("{:#x}", view.tree.digest()),
            "log_tail": view.log.tail.as_str(),
            "cut": view.log.cut.as_ref().map(|cut| json!({ "file": cut.file, "offset": integer(cut.offset) })),
        }),
        Err(error) => json!({ "opens": is_new(found), "error": error_object(error) }),
    };
    let finding = |finding: &arborlog::inspect::Finding| {
        let mut object = finding_object(finding);
        object["next_step"] = finding.code.and_then(paragraph).map_or(Value::Null, Value::String);
        object
    };
    json!({
        "type": "inspection",
        "sound": found.is_sound(),
        "files": rows.iter().map(|row| json!({ "file": row.name, "what": row.what })).collect::<Vec<_>>(),
        "opening": opening,
        "findings": found.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
