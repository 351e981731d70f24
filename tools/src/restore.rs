use std::io::ErrorKind as IoErrorKind;
use std::path::Path;

use arborlog::{EngineOptions, Execution, RestoreOptions, RestoreReport, RestoreTarget};
use serde_json::json;

use crate::engine_args::RestoreArguments;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, error_object, integer, tell, zxid};
use crate::place::no_engine;
use crate::progress::SharedBar;

/// Makes a new engine with a state of another one, or tells what it would be.
pub(crate) fn run(arguments: &RestoreArguments, output: &mut Output) -> Result<(), Failure> {
    let RestoreArguments { source, dest, .. } = arguments;
    let engine = arborlog::inspect::EngineDirectory::open(source, arguments.source_log_dir.as_deref())?;
    if !engine.holds_engine()? {
        return Err(no_engine(source));
    }
    let bar = SharedBar::new();
    let mut what = RestoreOptions::new().sessions(!arguments.without_sessions);
    if let Some(dir) = &arguments.source_log_dir {
        what = what.source_log_dir(dir);
    }
    what = match (arguments.to_zxid, arguments.to_time) {
        (Some(zxid), _) => what.target(RestoreTarget::Zxid(zxid)),
        (None, Some(time_ms)) => what.target(RestoreTarget::TimeMs(time_ms)),
        (None, None) => what,
    };
    let mut options = EngineOptions::new().on_progress(bar.shows());
    if let Some(dir) = &arguments.log_dir {
        options = options.log_dir(dir);
    }
    if arguments.dry_run {
        what = what.execution(Execution::DryRun);
    }
    let is_made = !arguments.dry_run && make_dir(dest)?;
    let restored = arborlog::restore(source, dest, &options, &what);
    bar.end();
    let report = restored.inspect_err(|_| {
        // What was refused has left nothing in it; else it stays as it is, to be looked at.
        if is_made && std::fs::remove_dir(dest).is_err() {
            tell(&format!("{} is no engine yet; remove it before another attempt", dest.display()));
        }
    })?;
    if !arguments.dry_run {
        output.settle(Outcome::Clean, "the state was restored");
    }
    print(arguments, &report, output)
}

/// Makes the destination, whose parent must exist; whether it was not there.
pub(crate) fn make_dir(dest: &Path) -> Result<bool, Failure> {
    match std::fs::create_dir(dest) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == IoErrorKind::AlreadyExists => Ok(false),
        Err(error) => {
            let message = format!("cannot make {}: {error} [io]", dest.display());
            Err(Failure::Refused { code: "io", message })
        }
    }
}

fn print(arguments: &RestoreArguments, report: &RestoreReport, output: &mut Output) -> Result<(), Failure> {
    for (_, error) in &report.skipped {
        // The state is whole; that a snapshot of the source is not, is damage there.
        output.found(Outcome::of_error(error));
    }
    let RestoreReport {
        snapshot, skipped, replayed, source_zxid, closed_sessions, last_zxid, digest, ..
    } = report;
    if report.log_begins_after.is_some() {
        // As with the snapshots.
        output.found(Outcome::Damaged);
    }
    if output.json {
        let skipped =
            skipped.iter().map(|(end, error)| json!({ "zxid": zxid(*end), "error": error_object(error) }));
        return output.object(&json!({
            "type": "restore",
            "done": !arguments.dry_run,
            "source_zxid": zxid(*source_zxid),
            "last_zxid": zxid(*last_zxid),
            "digest": format!("{digest:#x}"),
            "began_with": snapshot.as_ref().map(|info| zxid(info.end)),
            "replayed": integer(*replayed),
            "replay_failures": integer(report.replay_failures),
            "closed_sessions": integer(*closed_sessions),
            "skipped": skipped.collect::<Vec<_>>(),
            "log_begins_after": report.log_begins_after.map(zxid),
            "database_id": (!arguments.dry_run).then(|| report.database_id.to_string()),
        }));
    }
    for (end, error) in skipped {
        output.line(&format!("the snapshot {end} was passed over: {error}"))?;
    }
    if let Some(floor) = report.log_begins_after {
        output.line(&format!("the oldest segments of the log are missing: it begins after {floor}"))?;
    }
    let from =
        snapshot.as_ref().map_or("an empty tree".to_owned(), |info| format!("the snapshot {}", info.end));
    let word = if arguments.dry_run { "would be restored" } else { "restored" };
    output.line(&format!(
        "{word}: the state at {source_zxid}, of {from} and {} of the log",
        counted(*replayed, "txn")
    ))?;
    if report.replay_failures > 0 {
        let count = counted(report.replay_failures, "txn");
        output.line(&format!("{count} could not be done: tree and log of the source differ"))?;
    }
    if arguments.without_sessions {
        output.line(&format!("sessions closed: {closed_sessions}"))?;
    }
    output.line(&format!("last zxid {last_zxid}, digest {digest:#x}"))?;
    if arguments.dry_run {
        return output.line("nothing was written; leave out --dry-run to do it");
    }
    output.line(&format!("the new database is {}", report.database_id))
}
