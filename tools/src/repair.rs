use std::path::Path;

use arborlog::inspect::{Item, Selection};
use arborlog::{DamagedRecords, Execution, RepairReport, Zxid, repair_record};
use serde_json::{Value, json};

use crate::args::RepairArguments;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, integer, zxid};
use crate::place::log_at;

/// Puts one damaged record back from another copy of the log, or says what would be written.
pub(crate) fn run(arguments: &RepairArguments, output: &mut Output) -> Result<(), Failure> {
    log_at(&arguments.target.dir)?;
    let (time_ms, payload) = take(&arguments.from, arguments.zxid)?;
    let execution = if arguments.yes { Execution::Real } else { Execution::DryRun };
    let report = repair_record(&arguments.target.dir, arguments.zxid, time_ms, &payload, execution)?;
    let is_needed = report.written_bytes > 0;
    if is_needed && arguments.yes {
        output.settle(Outcome::Clean, "the record was repaired");
    } else if is_needed || !report.left.is_empty() {
        // What is left damaged is damaged still.
        output.found(Outcome::Damaged);
    }
    if output.json {
        output.object(&report_object(arguments, &report))
    } else {
        print_text(arguments, &report, output)
    }
}

/// The record of the other copy.
fn take(from: &Path, wanted: Zxid) -> Result<(i64, Vec<u8>), Failure> {
    let mut stream = log_at(from)?.records(&Selection::all().from(wanted).to(wanted))?;
    let mut why = "it is not in that log".to_owned();
    while let Some(item) = stream.next_item()? {
        match item {
            Item::Record(record) => return Ok((record.time_ms, record.payload.to_vec())),
            Item::Damage(damage) => why = format!("that copy is damaged too: {damage}"),
        }
    }
    let message = format!("cannot take {wanted} from {}: {why} [not_in_log]", from.display());
    Err(Failure::Refused { code: "not_in_log", message })
}

fn print_text(
    arguments: &RepairArguments,
    report: &RepairReport,
    output: &mut Output,
) -> Result<(), Failure> {
    let RepairReport { file, offset, written_bytes, .. } = report;
    let bytes = counted(*written_bytes, "byte");
    output.line(&match (*written_bytes, arguments.yes) {
        (0, _) => format!("{} is whole: {file} at byte {offset}; nothing to repair", arguments.zxid),
        (_, true) => format!("{} was repaired: {bytes} written to {file} at byte {offset}", arguments.zxid),
        (_, false) => {
            format!("{} fits: {bytes} would be written to {file} at byte {offset}", arguments.zxid)
        }
    })?;
    for left in &report.left {
        let DamagedRecords { file, offset, first, last, code, .. } = left;
        output.line(&format!("damaged besides: {file} at byte {offset}, zxid {first} to {last} [{code}]"))?;
    }
    if *written_bytes > 0 && !arguments.yes {
        return output.line("nothing was changed; give --yes to do it");
    }
    Ok(())
}

fn report_object(arguments: &RepairArguments, report: &RepairReport) -> Value {
    let left = |damage: &DamagedRecords| {
        json!({
            "file": damage.file,
            "code": damage.code,
            "offset": integer(damage.offset),
            "first_zxid": zxid(damage.first),
            "last_zxid": zxid(damage.last),
        })
    };
    json!({
        "type": "repair",
        "needed": report.written_bytes > 0,
        "done": arguments.yes && report.written_bytes > 0,
        "zxid": zxid(arguments.zxid),
        "file": report.file,
        "offset": integer(report.offset),
        "bytes": integer(report.written_bytes),
        "left": report.left.iter().map(left).collect::<Vec<_>>(),
    })
}
