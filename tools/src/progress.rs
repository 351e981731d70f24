use std::io::{IsTerminal, stderr};
use std::sync::{Arc, Mutex, PoisonError};

use arborlog::Activity;
use arborlog::inspect::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// Below this much to read there is nothing to wait for.
const LONG_BYTES: u64 = 256 * 1024 * 1024;

/// A bar on standard error, if that is a terminal and the work is long.
#[derive(Debug)]
pub(crate) struct Bar {
    bytes: Option<ProgressBar>,
    words: Option<ProgressBar>,
    is_terminal: bool,
}

impl Bar {
    pub(crate) fn new() -> Bar {
        Bar { bytes: None, words: None, is_terminal: stderr().is_terminal() }
    }

    pub(crate) fn show(&mut self, progress: Progress) {
        self.show_bytes(progress.done_bytes, progress.total_bytes);
    }

    pub(crate) fn show_bytes(&mut self, done_bytes: u64, total_bytes: u64) {
        if !self.is_terminal || total_bytes < LONG_BYTES {
            return;
        }
        let bar = self.bytes.get_or_insert_with(|| {
            let style =
                ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
            let bar = ProgressBar::new(total_bytes);
            match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        bar.set_length(total_bytes);
        bar.set_position(done_bytes);
    }

    /// What is under way and has no length that is known before.
    pub(crate) fn say(&mut self, text: &str) {
        if !self.is_terminal {
            return;
        }
        let bar = self.words.get_or_insert_with(ProgressBar::new_spinner);
        bar.set_message(text.to_owned());
        bar.tick();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        for bar in self.bytes.iter().chain(&self.words) {
            bar.finish_and_clear();
        }
    }
}

/// A bar that shows what the library tells of an engine's long work.
#[derive(Debug)]
pub(crate) struct SharedBar(Arc<Mutex<Bar>>);

impl SharedBar {
    pub(crate) fn new() -> SharedBar {
        SharedBar(Arc::new(Mutex::new(Bar::new())))
    }

    /// For a callback of the library.
    pub(crate) fn shows(&self) -> impl Fn(&arborlog::Progress) + Send + Sync + 'static {
        let bar = self.0.clone();
        move |progress| show(&mut bar.lock().unwrap_or_else(PoisonError::into_inner), progress)
    }

    /// The bar goes before anything is printed.
    pub(crate) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Bar::new();
    }
}

fn show(bar: &mut Bar, progress: &arborlog::Progress) {
    match (progress.activity, progress.total_bytes) {
        (_, Some(total_bytes)) => bar.show_bytes(progress.done_bytes, total_bytes),
        (Activity::ReplayLog, None) => bar.say(&format!("replayed {} txns", progress.done)),
        (Activity::WriteSnapshot, None) => bar.say(&format!("writing {} nodes", progress.total.unwrap_or(0))),
        _ => {}
    }
}
