use arborlog::{Engine, EngineOptions, LogOptions, TruncationPlan, Zxid, plan_truncation};
use serde_json::json;

use crate::engine_args::EngineTruncateArguments;
use crate::outcome::Outcome;
use crate::output::{Failure, Output, maybe_zxid, zxid};
use crate::place::engine_at;

/// The engine is open for a moment only: no large segment is prepared for it.
const SEGMENT_BYTES: u64 = 4 << 20;

/// Cuts the end off an engine, or says what would be cut.
pub(crate) fn run(arguments: &EngineTruncateArguments, output: &mut Output) -> Result<(), Failure> {
    engine_at(&arguments.engine)?;
    let dir = &arguments.engine.target.dir;
    let mut options = EngineOptions::new()
        .snap_count(0)
        .snap_log_bytes(0)
        .log(LogOptions::new().segment_bytes(SEGMENT_BYTES));
    if let Some(log_dir) = &arguments.engine.log_dir {
        options = options.log_dir(log_dir);
    }
    // All that can be refused is, before the engine is opened, which would change something.
    let plan = plan_truncation(dir, &options, arguments.to_zxid)?;
    if arguments.yes {
        let (engine, _) = options.open(dir)?;
        let leader = engine.accepted_epoch();
        let (engine, _, _) = engine.truncate(leader, arguments.to_zxid)?;
        output.settle(Outcome::Clean, "the engine was truncated");
        Engine::close(engine)?;
    }
    if output.json { output.object(&object(arguments, &plan)) } else { print_text(arguments, &plan, output) }
}

fn object(arguments: &EngineTruncateArguments, plan: &TruncationPlan) -> serde_json::Value {
    json!({
        "type": "engine_truncation",
        "done": arguments.yes,
        "last_zxid": zxid(plan.log.last_zxid),
        "was_zxid": zxid(plan.log.was_zxid),
        "exact": plan.log.exact,
        "snapshots_removed": plan.snapshots_removed.iter().map(|end| zxid(*end)).collect::<Vec<_>>(),
        "begins_with": maybe_zxid(plan.begins_with),
        "shortened": plan.log.shortened,
        "moved_aside": plan.log.moved_aside,
    })
}

fn print_text(
    arguments: &EngineTruncateArguments,
    plan: &TruncationPlan,
    output: &mut Output,
) -> Result<(), Failure> {
    let (ends, ended) = if arguments.yes { ("ends", "ended") } else { ("would end", "ends") };
    output
        .line(&format!("the engine {ends} at {}; it {ended} at {}", plan.log.last_zxid, plan.log.was_zxid))?;
    if !plan.log.exact {
        let line = format!("{} is no txn of the log: the last one before it is the end", arguments.to_zxid);
        output.line(&line)?;
    }
    let word = if arguments.yes { "removed" } else { "to be removed" };
    for end in &plan.snapshots_removed {
        output.line(&format!("{word}: the snapshot {end}, which holds what goes"))?;
    }
    let begin = plan.begins_with.filter(|end| *end > Zxid::ZERO);
    let begin = begin.map_or("an empty tree".to_owned(), |end| format!("the snapshot {end}"));
    output.line(&format!("the state is made of {begin} and the log behind it"))?;
    let word = if arguments.yes { "moved aside" } else { "to be moved aside" };
    for name in &plan.log.moved_aside {
        output.line(&format!("{word}: {name}"))?;
    }
    if arguments.yes { Ok(()) } else { output.line("nothing was changed; give --yes to do it") }
}
