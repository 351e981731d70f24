use arborlog::zookeeper::{
    ExportOptions, ExportReport, Finding, FindingKind, ImportOptions, ImportReport, export, import,
};
use arborlog::{EngineOptions, Execution, RestoreTarget, Zxid};
use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, integer, maybe_zxid, zxid};
use crate::place::no_engine;
use crate::progress::SharedBar;
use crate::restore::{SourceFindings, hint_of_source, make_dir, unmake_dir};
use crate::zookeeper_args::{ExportArguments, ImportArguments, ZookeeperCommand};
use crate::zookeeper_files::{dump, verify};

/// What is done with ZooKeeper's own directories.
pub(crate) fn run(command: &ZookeeperCommand, output: &mut Output) -> Result<(), Failure> {
    match command {
        ZookeeperCommand::Import(arguments) => run_import(arguments, output),
        ZookeeperCommand::Export(arguments) => run_export(arguments, output),
        ZookeeperCommand::Dump(arguments) => dump(arguments, output),
        ZookeeperCommand::Verify(arguments) => verify(arguments, output),
    }
}

fn run_import(arguments: &ImportArguments, output: &mut Output) -> Result<(), Failure> {
    let ImportArguments { source, dest, .. } = arguments;
    let mut what = ImportOptions::new()
        .sessions(!arguments.without_sessions)
        .salvage(arguments.salvage)
        .extended_types(!arguments.no_extended_types)
        .snapshot_alone(arguments.snapshot_alone);
    let bar = SharedBar::new();
    what = what.on_progress(bar.shows());
    if let Some(dir) = &arguments.data_log_dir {
        what = what.data_log_dir(dir);
    }
    what = match (arguments.to_zxid, arguments.to_time) {
        (Some(zxid), _) => what.target(RestoreTarget::Zxid(zxid)),
        (None, Some(time_ms)) => what.target(RestoreTarget::TimeMs(time_ms)),
        (None, None) => what,
    };
    if arguments.dry_run {
        what = what.execution(Execution::DryRun);
    }
    let mut options = EngineOptions::new();
    if let Some(dir) = &arguments.log_dir {
        options = options.log_dir(dir);
    }
    let is_made = !arguments.dry_run && make_dir(dest)?;
    let imported = import(source, dest, &options, &what);
    bar.end();
    let report = imported.inspect_err(|_| unmake_dir(dest, is_made, "engine", output))?;
    if !arguments.dry_run {
        output.settle(Outcome::Clean, "the engine was made");
    }
    // With salvage, what was asked for was done, once it is done.
    if !arguments.salvage || arguments.dry_run {
        found_damage(&report, output);
    }
    print_import(arguments, &report, output)
}

fn print_import(
    arguments: &ImportArguments,
    report: &ImportReport,
    output: &mut Output,
) -> Result<(), Failure> {
    if output.json {
        let mut object = report_object(report);
        object["type"] = json!("import");
        object["done"] = json!(!arguments.dry_run);
        object["database_id"] = json!(report.database_id.map(|id| id.to_string()));
        return output.object(&object);
    }
    print_findings(&report.findings, output)?;
    if arguments.to_time.is_some() && report.source_zxid == Zxid::ZERO {
        output.line("note: the time is before the first txn of all: this is the state of a new server (times are milliseconds)")?;
    }
    let word = if arguments.dry_run { "would be imported" } else { "imported" };
    output.line(&format!("{word}: {}", report_text(report)))?;
    if arguments.without_sessions {
        output.line(&format!("sessions closed: {}", report.closed_sessions))?;
    }
    output.line(&format!("last zxid {}, digest {:#x}", report.last_zxid, report.digest))?;
    match report.database_id {
        Some(id) => output.line(&format!("the new database is {id}")),
        None => output.line("nothing was written; leave out --dry-run to do it"),
    }
}

/// The state is whole; but that a newer snapshot is not, is damage of the source.
pub(crate) fn found_damage(report: &ImportReport, output: &mut Output) {
    let is_damage = |f: &Finding| f.kind.is_damage() || f.kind == FindingKind::SnapshotSkipped;
    if report.findings.iter().any(is_damage) {
        output.found(Outcome::Damaged);
    }
}

pub(crate) fn print_findings(findings: &[Finding], output: &mut Output) -> Result<(), Failure> {
    findings.iter().try_for_each(|finding| output.line(&finding.to_string()))
}

pub(crate) fn report_text(report: &ImportReport) -> String {
    let from = report.snapshot.as_deref().unwrap_or("an empty tree");
    format!(
        "the state at {}, of {from} and {} of the logs: {}, {}; {} told and right",
        report.source_zxid,
        counted(report.replayed, "txn"),
        counted(report.nodes, "node"),
        counted(report.sessions, "session"),
        counted(report.digests_held, "digest"),
    )
}

pub(crate) fn report_object(report: &ImportReport) -> Value {
    json!({
        "began_with": maybe_zxid(report.snapshot_zxid),
        "snapshot": report.snapshot,
        "replayed": integer(report.replayed),
        "source_zxid": zxid(report.source_zxid),
        "source_time_ms": report.source_time_ms.map(integer),
        "nodes": integer(report.nodes),
        "sessions": integer(report.sessions),
        "closed_sessions": integer(report.closed_sessions),
        "last_zxid": zxid(report.last_zxid),
        "digest": format!("{:#x}", report.digest),
        "digests_held": integer(report.digests_held),
        "accepted_epoch": integer(report.accepted.get()),
        "findings": report.findings.iter().map(finding_object).collect::<Vec<_>>(),
    })
}

fn finding_object(finding: &Finding) -> Value {
    json!({
        "kind": finding.kind.word(),
        "damage": finding.kind.is_damage(),
        "file": finding.at.file,
        "offset": finding.at.offset.map(integer),
        "what": finding.what,
    })
}

fn run_export(arguments: &ExportArguments, output: &mut Output) -> Result<(), Failure> {
    let ExportArguments { source, dest, .. } = arguments;
    let mut what = ExportOptions::new(arguments.format.format())
        .log_tail(arguments.log_tail)
        .sessions(!arguments.without_sessions)
        .compression(arguments.compression.compression());
    what = match (arguments.to_zxid, arguments.to_time) {
        (Some(zxid), _) => what.target(RestoreTarget::Zxid(zxid)),
        (None, Some(time_ms)) => what.target(RestoreTarget::TimeMs(time_ms)),
        (None, None) => what,
    };
    if arguments.dry_run {
        what = what.execution(Execution::DryRun);
    }
    if let Some(dir) = &arguments.source_log_dir {
        what = what.source_log_dir(dir);
    }
    let engine = arborlog::inspect::EngineDirectory::open(source, arguments.source_log_dir.as_deref())?;
    if !engine.holds_engine()? {
        return Err(no_engine(source));
    }
    let is_made = !arguments.dry_run && make_dir(dest)?;
    let bar = SharedBar::new();
    let exported = export(source, dest, &what.on_progress(bar.shows()));
    bar.end();
    let report = exported.inspect_err(|error| {
        unmake_dir(dest, is_made, "version-2", output);
        hint_of_source(error, arguments.source_log_dir.as_deref(), output);
    })?;
    if !arguments.dry_run {
        output.settle(Outcome::Clean, "the state was written");
    }
    print_export(arguments, &report, output)
}

fn print_export(
    arguments: &ExportArguments,
    report: &ExportReport,
    output: &mut Output,
) -> Result<(), Failure> {
    let findings = SourceFindings {
        skipped: &report.skipped,
        log_begins_after: report.log_begins_after,
        replay_failures: report.replay_failures,
    };
    findings.settle(output);
    if output.json {
        let mut object = json!({
            "type": "export",
            "done": !arguments.dry_run,
            "began_with": maybe_zxid(report.began_with),
            "replayed": integer(report.replayed),
            "source_zxid": zxid(report.source_zxid),
            "nodes": integer(report.nodes),
            "sessions": integer(report.sessions),
            "closed_sessions": integer(report.closed_sessions),
            "last_zxid": zxid(report.last_zxid),
            "digest": format!("{:#x}", report.digest),
            "snapshot": report.snapshot,
            "logs": report.logs,
            "txns": integer(report.txns),
        });
        findings.add_to(&mut object);
        return output.object(&object);
    }
    findings.print(output)?;
    let word = if arguments.dry_run { "would be written" } else { "written" };
    output.line(&format!(
        "{word}: {} with {} and {}, and {} behind it",
        report.snapshot,
        counted(report.nodes, "node"),
        counted(report.sessions, "session"),
        counted(report.txns, "txn"),
    ))?;
    if arguments.without_sessions {
        output.line(&format!("sessions closed: {}", report.closed_sessions))?;
    }
    output.line(&format!("last zxid {}, digest {:#x}", report.last_zxid, report.digest))?;
    if arguments.dry_run {
        return output.line("nothing was written; leave out --dry-run to do it");
    }
    Ok(())
}
