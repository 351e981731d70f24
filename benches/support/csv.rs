//! Results as data: one line per figure, the same five columns for every bench.

use std::fmt::Write as _;
use std::path::Path;

/// Rows of `bench,case,metric,value,unit`, written to a file in one go.
#[derive(Debug)]
pub(crate) struct Csv {
    text: String,
}

impl Csv {
    /// A table with its heading and no rows.
    pub(crate) fn new() -> Csv {
        Csv { text: String::from("bench,case,metric,value,unit\n") }
    }

    /// Adds one figure. Names are the benches' own words: they hold no comma, quote or line end.
    pub(crate) fn row(&mut self, bench: &str, case: &str, metric: &str, value: f64, unit: &str) {
        for name in [bench, case, metric, unit] {
            assert!(!name.contains([',', '"', '\n']), "a name must not need quoting: {name}");
        }
        writeln!(self.text, "{bench},{case},{metric},{value},{unit}").expect("a string takes every write");
    }

    /// Writes the rows to `path`, replacing what was there.
    pub(crate) fn write_to(&self, path: &Path) -> std::io::Result<()> {
        std::fs::write(path, &self.text)
    }
}
