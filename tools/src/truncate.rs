use arborlog::{Execution, TruncateReport, truncate_dir};
use serde_json::json;

use crate::args::TruncateArguments;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, zxid};
use crate::place::log_at;

/// Cuts the end off a log, or says what would be cut.
pub(crate) fn run(arguments: &TruncateArguments, output: &mut Output) -> Result<(), Failure> {
    log_at(&arguments.target.dir)?;
    let execution = if arguments.yes { Execution::Real } else { Execution::DryRun };
    let report = truncate_dir(&arguments.target.dir, arguments.to, execution)?;
    if arguments.yes {
        output.settle(Outcome::Clean, "the log was truncated");
    }
    if output.json {
        output.object(&json!({
            "type": "truncation",
            "done": arguments.yes,
            "last_zxid": zxid(report.last_zxid),
            "was_zxid": zxid(report.was_zxid),
            "exact": report.exact,
            "shortened": report.shortened,
            "moved_aside": report.moved_aside,
        }))
    } else {
        print_text(arguments, &report, output)
    }
}

fn print_text(
    arguments: &TruncateArguments,
    report: &TruncateReport,
    output: &mut Output,
) -> Result<(), Failure> {
    let (ends, ended) = if arguments.yes { ("ends", "ended") } else { ("would end", "ends") };
    output.line(&format!(
        "the log {ends} with zxid {}; it {ended} with {}",
        report.last_zxid, report.was_zxid
    ))?;
    if !report.exact {
        let line = format!("{} is no record of the log: the last one before it is the end", arguments.to);
        output.line(&line)?;
    }
    if let Some(file) = &report.shortened {
        output.line(&format!("last file: {file}; the bytes behind the end stay in it"))?;
    }
    for name in &report.moved_aside {
        let word = if arguments.yes { "moved aside" } else { "to be moved aside" };
        output.line(&format!("{word}: {name}"))?;
    }
    if arguments.yes { Ok(()) } else { output.line("nothing was changed; give --yes to do it") }
}
