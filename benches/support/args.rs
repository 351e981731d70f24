//! The command line of a bench: `cargo bench --bench NAME -- --quick --csv FILE --svg FILE --dir DIR`.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options that benches understand.
#[derive(Clone, Debug)]
pub(crate) struct BenchArgs {
    /// Short runs: to see that it works, not to quote. Also without `cargo bench`, so that a test run over
    /// all targets stays short.
    pub(crate) quick: bool,
    /// Where figures go as data.
    pub(crate) csv: Option<PathBuf>,
    /// Where the picture goes.
    pub(crate) svg: Option<PathBuf>,
    /// The directory on the disk to be measured; one in the build's directory if not given, since the
    /// system's directory for temporary files may be in memory.
    pub(crate) dir: PathBuf,
    /// Only this policy.
    pub(crate) policy: Option<String>,
    /// These numbers of writers.
    pub(crate) writers: Option<Vec<usize>>,
    /// Trees of these sizes.
    pub(crate) nodes: Option<Vec<usize>>,
    /// How long each case is measured.
    pub(crate) seconds: Option<Duration>,
}

const KNOWN: &str =
    "--quick --csv FILE --svg FILE --dir DIR --policy NAME --writers N,M --nodes N,M --seconds S";

impl BenchArgs {
    /// Reads this process's command line; exits with a message where it is not understood.
    pub(crate) fn from_env() -> BenchArgs {
        BenchArgs::parse(std::env::args().skip(1)).unwrap_or_else(|message| {
            eprintln!("{message}");
            std::process::exit(2)
        })
    }

    /// Reads words. `cargo bench` adds `--bench`.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<BenchArgs, String> {
        let mut args = BenchArgs {
            quick: true,
            csv: None,
            svg: None,
            dir: PathBuf::from(env!("CARGO_TARGET_TMPDIR")),
            policy: None,
            writers: None,
            nodes: None,
            seconds: None,
        };
        let mut asked_quick = false;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--bench" => args.quick = false,
                "--quick" => asked_quick = true,
                "--csv" => args.csv = Some(value()?.into()),
                "--svg" => args.svg = Some(value()?.into()),
                "--dir" => args.dir = value()?.into(),
                "--policy" => args.policy = Some(value()?),
                "--writers" => args.writers = Some(numbers(&value()?, 4096)?),
                "--nodes" => args.nodes = Some(numbers(&value()?, 100_000_000)?),
                "--seconds" => args.seconds = Some(seconds(&value()?)?),
                _ => return Err(format!("unknown option {word}; known: {KNOWN}")),
            }
        }
        args.quick |= asked_quick;
        Ok(args)
    }

    /// The build's directory, for what is written where nothing else was asked for.
    pub(crate) fn target_dir() -> &'static Path {
        let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
        temporary.parent().unwrap_or(temporary)
    }
}

fn numbers(text: &str, most: usize) -> Result<Vec<usize>, String> {
    let number = |word: &str| word.parse().ok().filter(|n| (1..=most).contains(n));
    text.split(',').map(|word| number(word).ok_or(format!("{word} is no number from 1 to {most}"))).collect()
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text} is no number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{text}: {error}"))
}
