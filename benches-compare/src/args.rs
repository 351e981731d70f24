//! The command line.

use std::path::PathBuf;

use crate::logs::Kind;

/// What every mode reads from the command line; each uses its part.
#[derive(Clone, Debug)]
pub struct Args {
    /// `table`, `throughput`, `recovery`, or one of the children's modes.
    pub mode: String,
    /// The contestants, in the table's order.
    pub logs: Vec<Kind>,
    /// Numbers of writers.
    pub threads: Vec<usize>,
    /// Records in flight per writer, for a child.
    pub depth: usize,
    /// Record length.
    pub bytes: usize,
    /// Measured seconds per cell.
    pub seconds: f64,
    /// Seconds between opening a log and its first record, in which it may make itself ready.
    pub rest: f64,
    /// Warm-up seconds per cell.
    pub warm_up: f64,
    /// Runs of each cell.
    pub repeats: usize,
    /// Records in the recovery test.
    pub records: u64,
    /// Where data goes.
    pub dir: PathBuf,
    /// Where figures go as data.
    pub csv: Option<PathBuf>,
}

impl Args {
    /// Reads the command line; the message says what is wrong with it.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
        let mut args = Args {
            mode: words.next().ok_or(USAGE)?,
            logs: Kind::ALL.to_vec(),
            threads: vec![1, 4, 16, 64, 256],
            depth: 1,
            bytes: 200,
            seconds: 2.0,
            rest: 1.0,
            warm_up: 0.2,
            repeats: 3,
            records: 1_000_000,
            dir: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data")),
            csv: None,
        };
        while let Some(option) = words.next() {
            if option == "--quick" {
                (args.seconds, args.warm_up, args.records) = (0.4, 0.1, 250_000);
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{option} needs a value\n{USAGE}"))?;
            args.set(&option, &value)?;
        }
        Ok(args)
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        match option {
            "--only" | "--log" => self.logs = list(value, |name| Kind::from_name(name).ok_or(()))?,
            "--threads" => self.threads = list(value, str::parse)?,
            "--depth" => self.depth = number(value)?,
            "--bytes" => self.bytes = number(value)?,
            "--seconds" => self.seconds = number(value)?,
            "--rest" => self.rest = number(value)?,
            "--warm-up" => self.warm_up = number(value)?,
            "--repeats" => self.repeats = number::<usize>(value)?.max(1),
            "--records" => self.records = number(value)?,
            "--dir" => self.dir = PathBuf::from(value),
            "--csv" => self.csv = Some(PathBuf::from(value)),
            _ => return Err(format!("unknown option {option}\n{USAGE}")),
        }
        Ok(())
    }
}

const USAGE: &str =
    "usage: benches-compare table|throughput|recovery [--quick] [--only LOG,LOG] [--csv FILE] \
[--dir DIR] [--seconds S] [--rest S] [--warm-up S] [--repeats R] [--threads N,N] [--bytes N] [--records N]
logs: arborlog, arborlog-unrested, arborlog-tasks, plain-direct, plain-buffered, raft-engine, okaywal, rocksdb, etcd-threads, etcd";

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("not a number: {value}\n{USAGE}"))
}

fn list<T, E>(value: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<Vec<T>, String> {
    value.split(',').map(|word| parse(word).map_err(|_| format!("not understood: {word}\n{USAGE}"))).collect()
}
