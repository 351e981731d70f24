//! All cells, in turn: for each repeat, for each number of writers, every log once.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::args::Args;
use crate::children::{Children, remove_dir};
use crate::logs::Kind;
use crate::machine;
use crate::sample::{Sample, median};

/// A row of the table: writers, and records in flight for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Writers.
    pub threads: usize,
    /// Records in flight per writer.
    pub depth: usize,
}

impl Load {
    /// Few threads with many tickets, as servers drive a log.
    pub const TICKETS: Load = Load { threads: 4, depth: 64 };

    /// Its name in the CSV.
    pub fn name(self) -> String {
        if self.depth == 1 {
            format!("{}-threads", self.threads)
        } else {
            format!("{}x{}-tickets", self.threads, self.depth)
        }
    }
}

/// The medians of one cell.
#[derive(Clone, Debug)]
pub struct CellResult {
    /// Which log.
    pub kind: Kind,
    /// Under which load.
    pub load: Load,
    /// Medians over the repeats: see `figures`.
    pub medians: Sample,
}

/// Measures every cell `repeats` times, interleaved, and returns the medians.
pub fn measure(args: &Args, children: &Children) -> Vec<CellResult> {
    let mut loads: Vec<Load> = args.threads.iter().map(|&threads| Load { threads, depth: 1 }).collect();
    loads.push(Load::TICKETS);
    let mut cells: Vec<(Kind, Load, Vec<Sample>)> = Vec::new();
    for load in loads {
        let runs = args.logs.iter().filter(|kind| load.depth == 1 || kind.has_tickets());
        cells.extend(runs.map(|&kind| (kind, load, Vec::new())));
    }
    for repeat in 1..=args.repeats {
        for (kind, load, samples) in &mut cells {
            let sample = run(args, children, *kind, *load);
            let rate = sample.figure("commits_per_s").unwrap_or(0.0);
            eprintln!(
                "{repeat}/{}  {:<15} {:<16} {rate:>9.0} commits/s",
                args.repeats,
                kind.name(),
                load.name()
            );
            samples.push(sample);
        }
    }
    cells
        .into_iter()
        .map(|(kind, load, samples)| CellResult { kind, load, medians: medians(&samples) })
        .collect()
}

fn run(args: &Args, children: &Children, kind: Kind, load: Load) -> Sample {
    let dir = children.fresh_dir("run");
    let options = [
        ("--threads", load.threads.to_string()),
        ("--depth", load.depth.to_string()),
        ("--bytes", args.bytes.to_string()),
        ("--seconds", args.seconds.to_string()),
        ("--rest", if kind.is_unrested() { 0.0 } else { args.rest }.to_string()),
        ("--warm-up", args.warm_up.to_string()),
    ];
    machine::settle();
    let raw = children.run(kind, "child-cell", &dir, &options);
    let kept = (!kind.recycles()).then(|| kept_bytes(&dir));
    remove_dir(&dir);
    figures(&raw, kept)
}

/// What the table shows, from what a child counted.
fn figures(raw: &Sample, kept_bytes: Option<u64>) -> Sample {
    let get = |name: &str| raw.figure(name).unwrap_or_else(|| panic!("a child did not print {name}"));
    let commits = get("commits").max(1.0);
    let mut figures = Sample::new();
    figures.set("commits_per_s", get("commits") / get("seconds"));
    for name in ["p50_us", "p99_us", "p999_us"] {
        figures.set(name, get(name));
    }
    figures.set("cpu_s_per_million", get("cpu_seconds") * 1e6 / commits);
    figures.set("device_bytes_per_record", get("device_bytes") / commits);
    figures.set("commits_per_flush", commits / get("flushes").max(1.0));
    if let Some(kept) = kept_bytes {
        figures.set("kept_bytes_per_record", kept as f64 / get("total").max(1.0));
    }
    figures
}

fn medians(samples: &[Sample]) -> Sample {
    let mut result = Sample::new();
    for name in samples[0].names() {
        let values: Vec<f64> = samples.iter().filter_map(|sample| sample.figure(name)).collect();
        result.set(name, median(&values));
    }
    let rates: Vec<f64> = samples.iter().filter_map(|sample| sample.figure("commits_per_s")).collect();
    let (low, high) =
        rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), &rate| (low.min(rate), high.max(rate)));
    result.set("spread_percent", 100.0 * (high - low) / median(&rates).max(1.0));
    result
}

/// The bytes that lie in the files of a directory up to the last one that is not zero, file by file:
/// space that was only prepared does not count, whatever the log.
fn kept_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).expect("list a log's directory");
    let mut bytes = 0;
    for entry in entries {
        let path = entry.expect("read a log's directory").path();
        bytes += if path.is_dir() { kept_bytes(&path) } else { kept_bytes_of_file(&path) };
    }
    bytes
}

fn kept_bytes_of_file(path: &Path) -> u64 {
    const CHUNK_BYTES: u64 = 1 << 20;
    let file = File::open(path).expect("open a log's file");
    let mut end = file.metadata().expect("stat a log's file").len();
    let mut chunk = vec![0; CHUNK_BYTES as usize];
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES);
        let part = &mut chunk[..(end - start) as usize];
        file.read_exact_at(part, start).expect("read a log's file");
        if let Some(last) = part.iter().rposition(|&byte| byte != 0) {
            return start + last as u64 + 1;
        }
        end = start;
    }
    0
}
