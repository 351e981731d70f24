use arborlog::zookeeper::{
    ImportOptions, ImportReport, LENGTH_LIMIT_DEFAULT, LogEnd, LogFile, NamedFile, OnDisk, SnapshotFile,
    SnapshotNode, ZkDirectory, read_state,
};
use arborlog::{DataTree, Error, RestoreTarget, Zxid};
use serde_json::{Value, json};

use crate::engine::acl_array;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, error_object, integer, maybe_zxid, zxid};
use crate::payload::base64;
use crate::progress::{Bar, SharedBar};
use crate::snapshot::txn_object;
use crate::zookeeper::{found_damage, print_findings, report_object, report_text};
use crate::zookeeper_args::{DumpArguments, VerifyArguments};

/// Prints what files hold.
pub(crate) fn dump(arguments: &DumpArguments, output: &mut Output) -> Result<(), Failure> {
    for file in &arguments.files {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("log.") {
            dump_log(LogFile::open(file, LENGTH_LIMIT_DEFAULT)?, name, output)?;
        } else if name.starts_with("snapshot.") {
            dump_snapshot(SnapshotFile::open(file, LENGTH_LIMIT_DEFAULT)?, name, output)?;
        } else {
            return Err(Failure::Usage(format!("{name} is neither log.ZXID nor snapshot.ZXID")));
        }
    }
    Ok(())
}

fn dump_log(mut log: LogFile<OnDisk>, name: &str, output: &mut Output) -> Result<(), Failure> {
    while let Some(entry) = log.next_entry()? {
        let mut object = entry.txn.with(txn_object);
        object["offset"] = integer(entry.offset);
        object["digest"] = entry.txn.with(|txn| txn.digest.map(|digest| format!("{digest:#x}"))).into();
        output.object(&object)?;
    }
    let end = log.end().map(|end| end.to_string());
    output.object(&json!({ "type": "end", "file": name, "offset": integer(log.offset()), "end": end }))
}

fn dump_snapshot(mut snapshot: SnapshotFile<OnDisk>, name: &str, output: &mut Output) -> Result<(), Failure> {
    for (id, timeout_ms) in snapshot.sessions() {
        let session = format!("{id:#x}");
        output.object(&json!({ "type": "session", "session": session, "timeout_ms": timeout_ms }))?;
    }
    while let Some(node) = snapshot.next_node()? {
        output.object(&node_object(&node))?;
    }
    let trailer = snapshot.trailer().unwrap_or_default();
    output.object(&json!({
        "type": "end",
        "file": name,
        "digest": trailer.digest.map(|(_, digest)| format!("{digest:#x}")),
        "digest_zxid": maybe_zxid(trailer.digest.map(|(zxid, _)| zxid)),
        "last_zxid": maybe_zxid(trailer.last_zxid),
    }))
}

/// A node as it stands in the file.
fn node_object(node: &SnapshotNode<'_>) -> Value {
    let raw = |raw: i64| format!("{raw:#x}");
    json!({
        "type": "node",
        "path": node.path,
        "data": node.data.map(base64),
        "stat": {
            "czxid": raw(node.zxids[0]),
            "mzxid": raw(node.zxids[1]),
            "ctime": integer(node.times_ms[0]),
            "mtime": integer(node.times_ms[1]),
            "version": node.versions[0],
            "childrenCreated": node.versions[1],
            "aversion": node.versions[2],
            "ephemeralOwner": raw(node.ephemeral_owner),
            "dataLength": node.data.map_or(0, <[u8]>::len),
            "pzxid": raw(node.zxids[2]),
        },
        "acl_id": integer(node.acl_id),
        "acl": node.acl.map(acl_array),
    })
}

/// After so many entries or nodes the bar is told.
const SHOWN_EVERY: u64 = 1024;

/// What was found in a file that was read to its end.
struct Seen {
    count: u64,
    first: Option<Zxid>,
    last: Option<Zxid>,
    end: String,
    is_torn: bool,
}

/// Reads every file to its end, and says what an import would find.
pub(crate) fn verify(arguments: &VerifyArguments, output: &mut Output) -> Result<(), Failure> {
    let directory = ZkDirectory::survey(&arguments.target.dir, arguments.data_log_dir.as_deref())?;
    let snapshots =
        directory.snapshots().iter().map(|file| ("snapshot", file, read_snapshot(&directory, file)));
    let logs = directory.logs().iter().map(|file| ("log", file, read_log(&directory, file)));
    let files: Vec<_> = snapshots.chain(logs).collect();
    let target = match (arguments.to_zxid, arguments.to_time) {
        (Some(zxid), _) => RestoreTarget::Zxid(zxid),
        (None, Some(time_ms)) => RestoreTarget::TimeMs(time_ms),
        (None, None) => RestoreTarget::Newest,
    };
    let mut what = ImportOptions::new()
        .target(target)
        .salvage(arguments.salvage)
        .extended_types(!arguments.no_extended_types)
        .snapshot_alone(arguments.snapshot_alone);
    if let Some(dir) = &arguments.data_log_dir {
        what = what.data_log_dir(dir);
    }
    let bar = SharedBar::new();
    let read = read_state(&arguments.target.dir, &what.on_progress(bar.shows()));
    bar.end();
    judge(&files, &read, output);
    for (kind, file, seen) in &files {
        print_file(kind, file, seen, output)?;
    }
    for error in directory.irregular_epochs() {
        print_epoch(&error, output)?;
    }
    match read {
        Ok((_, report)) => {
            if output.json {
                let mut object = report_object(&report);
                object["type"] = json!("state");
                object["error"] = Value::Null;
                return output.object(&object);
            }
            print_findings(&report.findings, output)?;
            output.line(&report_text(&report))
        }
        Err(error) => {
            if output.json {
                return output.object(&json!({ "type": "state", "error": error_object(&error) }));
            }
            output.line(&format!("an import refuses it: {error}"))
        }
    }
}

/// What was found holds whether it can be printed or not. Damage goes before what could not be read.
fn judge(
    files: &[(&str, &NamedFile, Result<Seen, Error>)],
    read: &Result<(DataTree, ImportReport), Error>,
    output: &mut Output,
) {
    if let Ok((_, report)) = read {
        found_damage(report, output);
    }
    let errors = files.iter().filter_map(|(_, _, seen)| seen.as_ref().err()).chain(read.as_ref().err());
    let mut found: Vec<_> = errors.map(Outcome::of_error).collect();
    found.sort_by_key(|outcome| *outcome != Outcome::Damaged);
    for outcome in found {
        output.found(outcome);
    }
    let outcome = output.outcome();
    let word = match outcome {
        Outcome::Clean => "nothing is damaged",
        Outcome::Damaged => "the data are damaged",
        _ => "an import refuses the data",
    };
    output.settle(outcome, word);
}

fn print_file(
    kind: &str,
    file: &NamedFile,
    seen: &Result<Seen, Error>,
    output: &mut Output,
) -> Result<(), Failure> {
    if output.json {
        let mut object = json!({ "type": kind, "file": file.name, "zxid": zxid(file.zxid) });
        match seen {
            Ok(seen) => {
                object["count"] = integer(seen.count);
                object["first_zxid"] = maybe_zxid(seen.first);
                object["last_zxid"] = maybe_zxid(seen.last);
                object["end"] = json!(seen.end);
                object["torn"] = json!(seen.is_torn);
                object["error"] = Value::Null;
            }
            Err(error) => object["error"] = error_object(error),
        }
        return output.object(&object);
    }
    let what = match seen {
        Ok(seen) => {
            let (one, range) = match (seen.first, seen.last) {
                (Some(first), Some(last)) => ("txn", format!(", {first} to {last}")),
                _ => (if kind == "log" { "txn" } else { "node" }, String::new()),
            };
            format!("{}{range}; {}", counted(seen.count, one), seen.end)
        }
        Err(error) if Outcome::of_error(error) == Outcome::Damaged => format!("damaged: {error}"),
        Err(error) => format!("not read: {error}"),
    };
    output.line(&format!("{:24} {what}", file.name))
}

/// An epoch's file that was not read, and so is refused.
fn print_epoch(error: &Error, output: &mut Output) -> Result<(), Failure> {
    let name = error.at().file.as_deref().unwrap_or("an epoch");
    if output.json {
        return output.object(&json!({ "type": "epoch", "file": name, "error": error_object(error) }));
    }
    output.line(&format!("{name:24} not read: {error}"))
}

fn read_log(directory: &ZkDirectory, file: &NamedFile) -> Result<Seen, Error> {
    let (mut log, mut bar) = (directory.open_log(&file.name, LENGTH_LIMIT_DEFAULT)?, Bar::new());
    let mut seen = Seen { count: 0, first: None, last: None, end: String::new(), is_torn: false };
    while let Some(entry) = log.next_entry()? {
        seen.count += 1;
        if seen.count.is_multiple_of(SHOWN_EVERY) {
            bar.show_bytes(entry.offset, file.len_bytes);
        }
        seen.first.get_or_insert(entry.txn.zxid());
        seen.last = Some(entry.txn.zxid());
    }
    seen.end = match log.end() {
        Some(LogEnd::Torn(why)) => {
            seen.is_torn = true;
            format!("torn at byte {}: {why}", log.offset())
        }
        end => {
            format!("ends at byte {} with {}", log.offset(), end.map_or(String::new(), |end| end.to_string()))
        }
    };
    Ok(seen)
}

fn read_snapshot(directory: &ZkDirectory, file: &NamedFile) -> Result<Seen, Error> {
    let (mut snapshot, mut bar) = (directory.open_snapshot(&file.name, LENGTH_LIMIT_DEFAULT)?, Bar::new());
    let mut count = 0;
    while snapshot.next_node()?.is_some() {
        count += 1;
        if count % SHOWN_EVERY == 0 {
            bar.show_bytes(snapshot.read_bytes(), file.len_bytes);
        }
    }
    let digest = snapshot.trailer().and_then(|trailer| trailer.digest);
    let end = format!(
        "{}, {}, {}",
        counted(snapshot.sessions().len() as u64, "session"),
        counted(snapshot.acl_count() as u64, "ACL list"),
        digest.map_or("no digest".to_owned(), |(zxid, digest)| format!("digest {digest:#x} at {zxid}")),
    );
    Ok(Seen { count, first: None, last: None, end, is_torn: false })
}
