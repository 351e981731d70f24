use arborlog::inspect::{FoundRecord, Item, Selection};
use serde_json::json;

use crate::args::{DumpArguments, PayloadFormat};
use crate::outcome::Outcome;
use crate::output::{Failure, Output, counted, damage_object, integer, tell, zxid};
use crate::payload::show;
use crate::place::log_at;
use crate::progress::Bar;
use crate::time::format_time;

/// How many records pass between two looks at the progress.
const PROGRESS_EVERY: u64 = 4096;

/// One line a record.
pub(crate) fn run(arguments: &DumpArguments, output: &mut Output) -> Result<(), Failure> {
    let mut selection = Selection::all();
    selection = arguments.from.map_or(selection.clone(), |zxid| selection.from(zxid));
    selection = arguments.to.map_or(selection.clone(), |zxid| selection.to(zxid));
    selection = arguments.since.map_or(selection.clone(), |time| selection.since_ms(time));
    selection = arguments.until.map_or(selection.clone(), |time| selection.until_ms(time));
    selection = arguments.file.as_deref().map_or(selection.clone(), |name| selection.file(name));
    let mut stream = log_at(&arguments.target.dir)?.records(&selection)?;
    let (mut count, mut bar) = (0, Bar::new());
    while arguments.limit.is_none_or(|limit| count < limit) {
        match stream.next_item()? {
            None => break,
            Some(Item::Record(record)) => {
                print(&record, arguments.payload, output)?;
                count += 1;
            }
            Some(Item::Damage(damage)) => {
                output.found(Outcome::of_damage(damage.code));
                if output.json {
                    output.object(&json!({ "type": "damage", "damage": damage_object(&damage) }))?;
                } else {
                    output.flush()?;
                    tell(&damage.to_string());
                }
            }
        }
        if count % PROGRESS_EVERY == 0 {
            bar.show(stream.progress());
        }
    }
    Ok(())
}

fn print(record: &FoundRecord<'_>, format: PayloadFormat, output: &mut Output) -> Result<(), Failure> {
    let payload = show(record.payload, format);
    if output.json {
        let mut object = json!({
            "type": "record",
            "zxid": zxid(record.zxid),
            "epoch": integer(record.epoch.get()),
            "time_ms": integer(record.time_ms),
            "payload_bytes": integer(record.payload.len() as u64),
            "file": record.file,
            "offset": integer(record.offset),
        });
        if let Some(payload) = payload {
            object["payload"] = json!(payload);
        }
        return output.object(&object);
    }
    let mut line = format!(
        "{} epoch {} {} {} {}:{}",
        record.zxid,
        record.epoch,
        format_time(record.time_ms),
        counted(record.payload.len() as u64, "byte"),
        record.file,
        record.offset
    );
    if let Some(payload) = payload {
        line.push(' ');
        line += &payload;
    }
    output.line(&line)
}
