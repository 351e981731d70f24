use std::env;
use std::io::{IsTerminal, stderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arborlog::Activity;
use arborlog::inspect::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What ends before this needs no bar.
const SILENT_FOR: Duration = Duration::from_millis(500);

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Bytes,
    /// Nodes or txns.
    Things,
}

/// A bar on standard error, if that is a terminal and the work takes its time.
#[derive(Debug)]
pub(crate) struct Bar {
    /// One at a time, and what it is of.
    shown: Option<(&'static str, ProgressBar)>,
    is_terminal: bool,
    began: Instant,
}

impl Bar {
    #[expect(
        clippy::disallowed_methods,
        reason = "a bar is for the time that passes before whoever looks at it"
    )]
    pub(crate) fn new() -> Bar {
        // A dumb one cannot go back in its line.
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        Bar { shown: None, is_terminal: stderr().is_terminal() && !is_dumb, began: Instant::now() }
    }

    pub(crate) fn show(&mut self, progress: Progress) {
        self.show_bytes(progress.done_bytes, progress.total_bytes);
    }

    /// The same of a file.
    pub(crate) fn show_bytes(&mut self, done_bytes: u64, total_bytes: u64) {
        self.show_part("reading", Unit::Bytes, done_bytes, Some(total_bytes));
    }

    fn show_part(&mut self, what: &'static str, unit: Unit, done: u64, total: Option<u64>) {
        if !self.is_terminal {
            return;
        }
        if self.shown.as_ref().is_some_and(|(shown, _)| *shown != what) {
            self.clear();
        }
        let (_, bar) = self.shown.get_or_insert_with(|| (what, new_bar(what, unit, total)));
        // Before it is shown it goes along, so that its speed is right when it is.
        if bar.is_hidden() && self.began.elapsed() >= SILENT_FOR {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            if total.is_none() {
                bar.enable_steady_tick(TICK);
            }
        }
        if let Some(total) = total {
            bar.set_length(total);
        }
        bar.set_position(done);
    }

    fn clear(&mut self) {
        if let Some((_, bar)) = self.shown.take() {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(what: &str, unit: Unit, total: Option<u64>) -> ProgressBar {
    let (bar, template) = match (total, unit) {
        (Some(total), Unit::Bytes) => {
            (ProgressBar::new(total), "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        }
        (Some(total), Unit::Things) => {
            (ProgressBar::new(total), "{msg} {wide_bar} {human_pos}/{human_len} {eta}")
        }
        (None, _) => (ProgressBar::new_spinner(), "{spinner} {msg} {human_pos}"),
    };
    let bar = match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        // The plain one tells as much.
        Err(_) => bar,
    };
    bar.set_draw_target(ProgressDrawTarget::hidden());
    bar.with_message(what.to_owned())
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
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
    if let (Activity::WriteSnapshot, 0, Some(total)) = (progress.activity, progress.done, progress.total) {
        // How far it has come is not told.
        return bar.show_part("writing a snapshot, nodes:", Unit::Things, total, None);
    }
    let what = match progress.activity {
        Activity::LoadSnapshot => "loading the snapshot",
        Activity::ReplayLog => "replaying the log",
        Activity::WriteSnapshot => "writing the snapshot",
        _ => "at work",
    };
    match progress.total_bytes {
        Some(total) => bar.show_part(what, Unit::Bytes, progress.done_bytes, Some(total)),
        None => bar.show_part(what, Unit::Things, progress.done, progress.total),
    }
}
