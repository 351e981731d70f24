use std::hint::black_box;

use arborlog::{Change, WatchKind, WatchTable, Zxid};

use super::report::Report;
use crate::support::now;

const WATCHERS: u64 = 100_000;
const TURNS: usize = 9;

/// What firing the one-shot watches of a crowd at one path takes: they have no other ones, or each has one more at
/// a path of its own.
pub(crate) fn measure(report: &mut Report) {
    let paths: Vec<String> = (0..WATCHERS).map(|watcher| format!("/own/{watcher}")).collect();
    for (metric, has_more) in [("delete", false), ("delete_with_more_watches", true)] {
        let mut times: Vec<f64> = (0..TURNS)
            .map(|_| {
                let mut table = WatchTable::new();
                for (watcher, path) in (0..).zip(&paths) {
                    table.add(watcher, "/crowd", WatchKind::Data).expect("no limits");
                    if has_more {
                        table.add(watcher, path, WatchKind::Data).expect("no limits");
                    }
                }
                let mut told = 0;
                let start = now();
                table.trigger(Zxid::new(1), Change::Deleted { path: "/crowd" }, &mut |event| {
                    told += black_box(event.watcher) & 1;
                });
                let time = start.elapsed().as_secs_f64() * 1e3;
                assert_eq!((told, table.is_empty()), (WATCHERS / 2, !has_more));
                time
            })
            .collect();
        times.sort_by(f64::total_cmp);
        report.row(&format!("{WATCHERS}-watchers"), metric, times[TURNS / 2], "ms", None);
    }
}
