use arborlog::zookeeper::{ExportOptions, Finding, ImportOptions, ImportReport, export, import, read_state};
use arborlog::{EngineOptions, RestoreTarget};
use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, integer, tell, zxid};
use crate::progress::SharedBar;
use crate::restore::make_dir;
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
        let read = read_state(source, &what);
        bar.end();
        let (_, report) = read?;
        return print_import(arguments, &report, output);
    }
    let mut options = EngineOptions::new();
    if let Some(dir) = &arguments.log_dir {
        options = options.log_dir(dir);
    }
    let is_made = make_dir(dest)?;
    let imported = import(source, dest, &options, &what);
    bar.end();
    let report = imported.inspect_err(|_| {
        // What was refused has left nothing in it; else it stays as it is, and the next attempt goes on.
        if is_made && std::fs::remove_dir(dest).is_err() {
            tell(&format!("{} is no engine yet; the next attempt begins anew in it", dest.display()));
        }
    })?;
    output.settle(Outcome::Clean, "the engine was made");
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
        return output.object(&object);
    }
    print_findings(&report.findings, output)?;
    let word = if arguments.dry_run { "would be imported" } else { "imported" };
    output.line(&format!("{word}: {}", report_text(report)))?;
    if arguments.without_sessions && !arguments.dry_run {
        output.line(&format!("sessions closed: {}", report.closed_sessions))?;
    }
    output.line(&format!("last zxid {}, digest {:#x}", report.last_zxid, report.digest))?;
    if arguments.dry_run {
        return output.line("nothing was written; leave out --dry-run to do it");
    }
    Ok(())
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
        .compression(arguments.compression.compression());
    if let Some(zxid) = arguments.to_zxid {
        what = what.target(RestoreTarget::Zxid(zxid));
    }
    if let Some(dir) = &arguments.source_log_dir {
        what = what.source_log_dir(dir);
    }
    let is_made = make_dir(dest)?;
    let bar = SharedBar::new();
    let exported = export(source, dest, &what.on_progress(bar.shows()));
    bar.end();
    let report = exported.inspect_err(|_| {
        if is_made && std::fs::remove_dir(dest).is_err() {
            tell(&format!("{} has no version-2 yet; the next attempt begins anew in it", dest.display()));
        }
    })?;
    output.settle(Outcome::Clean, "the state was written");
    if output.json {
        return output.object(&json!({
            "type": "export",
            "snapshot": report.snapshot,
            "nodes": integer(report.nodes),
            "sessions": integer(report.sessions),
            "logs": report.logs,
            "txns": integer(report.txns),
            "last_zxid": zxid(report.last_zxid),
            "digest": format!("{:#x}", report.digest),
        }));
    }
    output.line(&format!(
        "written: {} with {} and {}, and {} behind it",
        report.snapshot,
        counted(report.nodes, "node"),
        counted(report.sessions, "session"),
        counted(report.txns, "txn"),
    ))?;
    output.line(&format!("last zxid {}, digest {:#x}", report.last_zxid, report.digest))
}
