use super::directory::{Files, Outcome, check};
use super::golden;
use super::layout::{PAGE, Sign, groups, put, sign_manifest, sign_segment, u64_at};
use super::source::Source;

/// More damage than this at once shows nothing new.
const CHANGES_MAX: usize = 12;
/// The fields of a group's header.
const GROUP_FIELDS: [usize; 11] = [8, 12, 16, 24, 32, 40, 48, 56, 64, 72, 80];
/// The fields of a segment's header.
const PAGE_FIELDS: [usize; 8] = [12, 16, 20, 24, 32, 48, 56, 64];

/// The golden directory with damage: bytes, lengths, names, and fields whose checksums are then right again.
///
/// # Panics
/// If something is wrong; see `directory::check`.
pub fn recovery(input: &[u8]) -> Outcome {
    let mut files = golden::directory();
    let mut source = Source::new(input);
    for _ in 0..CHANGES_MAX {
        if source.is_empty() || files.is_empty() {
            break;
        }
        change(&mut files, &mut source);
    }
    check(&files)
}

fn change(files: &mut Files, source: &mut Source<'_>) {
    let kind = source.byte();
    let name = files.keys().nth(source.byte() as usize % files.len()).expect("in range").clone();
    let file = files.get_mut(&name).expect("just named");
    let at = source.place(file.len());
    match kind % 10 {
        0 => file.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= source.byte().max(1)),
        1 => {
            let bytes = source.bytes(16);
            file.iter_mut().skip(at).zip(bytes).for_each(|(byte, new)| *byte = *new);
        }
        2 => file.truncate(at),
        3 => {
            let len = source.place(4096);
            file.iter_mut().skip(at).take(len).for_each(|byte| *byte = 0);
        }
        4 => drop(files.remove(&name)),
        5 => {
            let bytes = files.remove(&name).expect("just named");
            files.insert(new_name(source), bytes);
        }
        6 => {
            let bytes = file.clone();
            files.insert(new_name(source), bytes);
        }
        7 => change_manifest(files, source),
        8 => change_group(file, source),
        _ => change_page(file, source),
    }
}

fn new_name(source: &mut Source<'_>) -> String {
    let seq = source.byte();
    match seq {
        0 => "log.manifest".to_owned(),
        1..=16 => format!("{seq:016x}.seg"),
        17..=24 => format!("{:016x}.seg.tmp", seq - 8),
        25..=32 => format!("{:016x}.seg.cut-{seq}", seq - 24),
        33 => format!("{:016x}.seg", u64::MAX),
        34 => format!("{:016x}.seg.tmp", u64::MAX),
        35 => "log.manifest.tmp".to_owned(),
        36 => "log.reserve".to_owned(),
        37 => "LOCK".to_owned(),
        _ => format!("foreign-{seq}"),
    }
}

/// Puts a number in place of the value of a line.
fn change_manifest(files: &mut Files, source: &mut Source<'_>) {
    let Some(manifest) = files.get_mut("log.manifest") else { return };
    let Ok(text) = std::str::from_utf8(manifest) else { return };
    let (line, number) = (source.place(text.lines().count()), source.number());
    let mut changed = String::new();
    for (index, old) in text.lines().enumerate() {
        let (key, value) = old.split_once(' ').unwrap_or((old, ""));
        let new = match value {
            _ if index != line => value.to_owned(),
            "yes" => "no".to_owned(),
            "no" => "yes".to_owned(),
            value if value.starts_with("0x") => format!("0x{number:x}"),
            _ if key == "cut" => format!("{} 0x{number:x} {}", source.byte(), source.byte()),
            _ => number.to_string(),
        };
        changed.extend([key, " ", &new, "\n"]);
    }
    *manifest = sign_manifest(changed.as_bytes());
}

/// Moves a field of a group a little or puts another number there, and signs the segment again.
fn change_group(file: &mut [u8], source: &mut Source<'_>) {
    let starts = groups(file);
    let Some(start) = starts.get(source.place(starts.len())) else { return };
    let field = start + GROUP_FIELDS[source.place(GROUP_FIELDS.len())];
    change_field(file, field, source);
    sign_segment(file, Sign { page: false, groups: true, records: true, places: false });
}

fn change_page(file: &mut [u8], source: &mut Source<'_>) {
    if file.len() < PAGE {
        return;
    }
    change_field(file, PAGE_FIELDS[source.place(PAGE_FIELDS.len())], source);
    let again = source.byte().is_multiple_of(2);
    sign_segment(file, Sign { page: true, groups: again, records: again, places: again });
}

fn change_field(file: &mut [u8], field: usize, source: &mut Source<'_>) {
    let old = u64_at(file, field);
    let new = match source.byte() {
        0 => source.number(),
        step @ 1..=127 => old.wrapping_add(step.into()),
        step => old.wrapping_sub(u64::from(step) - 127),
    };
    put(file, field, &new.to_le_bytes());
}
