use std::io::ErrorKind as IoErrorKind;
use std::path::Path;

use arborlog::{EngineOptions, Error, Execution, RestoreOptions, RestoreReport, RestoreTarget, Zxid};
use serde_json::{Value, json};

use crate::engine_args::RestoreArguments;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, error_object, integer, maybe_zxid, zxid};
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
    let report = restored.inspect_err(|error| {
        unmake_dir(dest, is_made, "engine", output);
        hint_of_source(error, arguments.source_log_dir.as_deref(), output);
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

/// After a failure: what was refused has left nothing in the directory; else it stays as it is, and the next attempt begins
/// anew.
pub(crate) fn unmake_dir(dest: &Path, is_made: bool, what: &str, output: &mut Output) {
    let holds_something = dest.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if is_made && std::fs::remove_dir(dest).is_err() && holds_something {
        output.add_hint(format!("{} has no {what} yet; the next attempt begins anew in it", dest.display()));
    }
}

/// After a failure: where the log of the engine that was read may be, if it is not there.
pub(crate) fn hint_of_source(error: &Error, source_log_dir: Option<&Path>, output: &mut Output) {
    if error.code() == "generation_missing" {
        output.add_hint(match source_log_dir {
            None => "if the log of SRC is in another directory, name it: --source-log-dir DIR".to_owned(),
            Some(dir) => {
                format!("--source-log-dir names {}: is it the log_dir of SRC's server?", dir.display())
            }
        });
    }
}

/// What is odd about the engine that a state was taken from: the state is whole without it.
pub(crate) struct SourceFindings<'a> {
    pub(crate) skipped: &'a [(Zxid, Error)],
    pub(crate) log_begins_after: Option<Zxid>,
    pub(crate) replay_failures: u64,
}

impl SourceFindings<'_> {
    /// Damage there sets the exit code.
    pub(crate) fn settle(&self, output: &mut Output) {
        for (_, error) in self.skipped {
            output.found(Outcome::of_error(error));
        }
        if self.log_begins_after.is_some() {
            output.found(Outcome::Damaged);
        }
    }

    pub(crate) fn add_to(&self, object: &mut Value) {
        let skipped = self
            .skipped
            .iter()
            .map(|(end, error)| json!({ "zxid": zxid(*end), "error": error_object(error) }));
        object["skipped"] = skipped.collect::<Vec<_>>().into();
        object["log_begins_after"] = self.log_begins_after.map(zxid).into();
        object["replay_failures"] = integer(self.replay_failures);
    }

    pub(crate) fn print(&self, output: &mut Output) -> Result<(), Failure> {
        for (end, error) in self.skipped {
            output.line(&format!("the snapshot {end} was passed over: {error}"))?;
        }
        if let Some(floor) = self.log_begins_after {
            output.line(&format!("the oldest segments of the log are missing: it begins after {floor}"))?;
        }
        if self.replay_failures > 0 {
            let count = counted(self.replay_failures, "txn");
            output.line(&format!("{count} could not be done: tree and log of the source differ"))?;
        }
        Ok(())
    }
}

fn print(arguments: &RestoreArguments, report: &RestoreReport, output: &mut Output) -> Result<(), Failure> {
    let findings = SourceFindings {
        skipped: &report.skipped,
        log_begins_after: report.log_begins_after,
        replay_failures: report.replay_failures,
    };
    findings.settle(output);
    let RestoreReport { snapshot, replayed, source_zxid, closed_sessions, last_zxid, digest, .. } = report;
    if output.json {
        let mut object = json!({
            "type": "restore",
            "done": !arguments.dry_run,
            "began_with": maybe_zxid(snapshot.as_ref().map(|info| info.end)),
            "replayed": integer(*replayed),
            "source_zxid": zxid(*source_zxid),
            "nodes": integer(report.nodes),
            "sessions": integer(report.sessions),
            "closed_sessions": integer(*closed_sessions),
            "last_zxid": zxid(*last_zxid),
            "digest": format!("{digest:#x}"),
            "database_id": (!arguments.dry_run).then(|| report.database_id.to_string()),
        });
        findings.add_to(&mut object);
        return output.object(&object);
    }
    findings.print(output)?;
    let from =
        snapshot.as_ref().map_or("an empty tree".to_owned(), |info| format!("the snapshot {}", info.end));
    let word = if arguments.dry_run { "would be restored" } else { "restored" };
    output.line(&format!(
        "{word}: the state at {source_zxid}, of {from} and {} of the log: {}, {}",
        counted(*replayed, "txn"),
        counted(report.nodes, "node"),
        counted(report.sessions, "session"),
    ))?;
    if arguments.without_sessions {
        output.line(&format!("sessions closed: {closed_sessions}"))?;
    }
    output.line(&format!("last zxid {last_zxid}, digest {digest:#x}"))?;
    if arguments.dry_run {
        return output.line("nothing was written; leave out --dry-run to do it");
    }
    output.line(&format!("the new database is {}", report.database_id))
}
