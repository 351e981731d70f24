use std::io::{IsTerminal, stderr};

use arborlog::inspect::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// Below this much to read there is nothing to wait for.
const LONG_BYTES: u64 = 256 * 1024 * 1024;

/// A bar on standard error, if that is a terminal and the work is long.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: Option<ProgressBar>,
    is_terminal: bool,
}

impl Bar {
    pub(crate) fn new() -> Bar {
        Bar { bar: None, is_terminal: stderr().is_terminal() }
    }

    pub(crate) fn show(&mut self, progress: Progress) {
        if !self.is_terminal || progress.total_bytes < LONG_BYTES {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
            let bar = ProgressBar::new(progress.total_bytes);
            match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.done_bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
