//! The command line of a bench: `cargo bench --bench NAME -- --quick --csv FILE --svg FILE --dir DIR`.

use std::path::PathBuf;

/// The options that all benches understand.
#[derive(Clone, Debug)]
pub(crate) struct BenchArgs {
    /// Short runs: to see that it works, not to quote. Also without `cargo bench`, so that a test run over
    /// all targets stays short.
    pub(crate) quick: bool,
    /// Where figures go as data.
    pub(crate) csv: Option<PathBuf>,
    /// Where the picture goes.
    pub(crate) svg: Option<PathBuf>,
    /// The directory on the disk to be measured; the system's directory for temporary files if not given.
    pub(crate) dir: PathBuf,
}

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
        let mut args = BenchArgs { quick: true, csv: None, svg: None, dir: std::env::temp_dir() };
        let mut asked_quick = false;
        while let Some(word) = words.next() {
            let mut path = || words.next().map(PathBuf::from).ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--bench" => args.quick = false,
                "--quick" => asked_quick = true,
                "--csv" => args.csv = Some(path()?),
                "--svg" => args.svg = Some(path()?),
                "--dir" => args.dir = path()?,
                _ => {
                    return Err(format!(
                        "unknown option {word}; known: --quick --csv FILE --svg FILE --dir DIR"
                    ));
                }
            }
        }
        args.quick |= asked_quick;
        Ok(args)
    }
}
