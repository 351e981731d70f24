use arborlog::{Execution, Loss, ManifestRepair, Numbering, SalvageOptions, SalvageReport};
use serde_json::{Value, json};

use crate::args::{NumberingArgument, SalvageArguments};
use crate::outcome::Outcome;
use crate::output::{Failure, Output, error_object, integer, maybe_zxid, zxid};
use crate::place::log_at;

/// Ends a damaged log before its damage, or says what would be lost.
pub(crate) fn run(arguments: &SalvageArguments, output: &mut Output) -> Result<(), Failure> {
    log_at(&arguments.target.dir)?;
    let execution = if arguments.yes { Execution::Real } else { Execution::DryRun };
    let mut options = SalvageOptions::new().execution(execution);
    if let Some(numbering) = arguments.numbering {
        options = options.numbering(match numbering {
            NumberingArgument::Zxid => Numbering::Zxid,
            NumberingArgument::Index => Numbering::Index,
        });
    }
    if let Some(epoch) = arguments.epoch {
        options = options.epoch_min(epoch);
    }
    let report = arborlog::salvage(&arguments.target.dir, &options).inspect_err(|error| {
        if error.code() == "salvage_numbering" {
            output.add_hint("say it with --numbering zxid, or --numbering index".to_owned());
        }
    })?;
    match (report.is_needed(), arguments.yes) {
        (true, true) => output.settle(Outcome::Clean, "the log was salvaged"),
        // What is left damaged is damaged still.
        (true, false) => output.found(Outcome::Damaged),
        (false, _) => output.settle(Outcome::Clean, "there was nothing to salvage"),
    }
    if output.json {
        output.object(&report_object(&report, arguments.yes))?;
    } else {
        let only_looking = report.is_needed() && !arguments.yes;
        if only_looking {
            output.line("a salvage would do this:")?;
        }
        report.to_string().lines().try_for_each(|line| output.line(line))?;
        if only_looking {
            output.line("nothing was changed; give --yes to do it")?;
        }
    }
    Ok(())
}

fn report_object(report: &SalvageReport, done: bool) -> Value {
    let (manifest, kept_as) = match &report.manifest {
        ManifestRepair::WasMissing => ("was_missing", None),
        ManifestRepair::WasDamaged { kept_as } => ("was_damaged", Some(kept_as)),
        _ => ("intact", None),
    };
    let loss = |loss: &Loss| {
        json!({
            "file": loss.file,
            "first_zxid": maybe_zxid(loss.first_zxid),
            "last_zxid": maybe_zxid(loss.last_zxid),
            "readable_records": integer(loss.readable_records),
            "offset": integer(loss.offset),
            "bytes": integer(loss.bytes),
        })
    };
    json!({
        "type": "salvage",
        "needed": report.is_needed(),
        "done": done && report.is_needed(),
        "damage": report.damage.as_ref().map(error_object),
        "manifest": manifest,
        "manifest_kept_as": kept_as,
        "last_zxid": zxid(report.last_zxid),
        "was_zxid": zxid(report.was_zxid),
        "lost": report.lost.iter().map(loss).collect::<Vec<_>>(),
        "shortened": report.shortened.as_ref().map(|(file, offset)| json!({ "file": file, "offset": integer(*offset) })),
        "moved_aside": report.moved_aside,
        "superseded": report.superseded,
        "notes": report.notes,
    })
}
