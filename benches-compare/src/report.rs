//! The results as Markdown and as CSV.

use std::fmt::Write as _;

use crate::args::Args;
use crate::csv::Csv;
use crate::logs::Kind;
use crate::recovery::RecoveryResult;
use crate::throughput::{CellResult, Load};

/// Everything that a run found.
#[derive(Debug)]
pub struct Report {
    args: Args,
    skipped: Vec<(Kind, &'static str)>,
    /// Medians per cell.
    pub cells: Vec<CellResult>,
    /// Best runs per log.
    pub recoveries: Vec<RecoveryResult>,
}

/// A cell that was not measured.
const NOTHING: &str = "n/a";

impl Report {
    /// An empty report.
    pub fn new(args: &Args, skipped: Vec<(Kind, &'static str)>) -> Report {
        Report { args: args.clone(), skipped, cells: Vec::new(), recoveries: Vec::new() }
    }

    /// All tables, ready to be pasted.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        if !self.cells.is_empty() {
            text += &self.commits_table();
            text += &self.cost_table();
            text += &self.ratio_table();
            text += &self.tickets_table();
        }
        if !self.recoveries.is_empty() {
            text += &self.recovery_table();
        }
        for (kind, reason) in &self.skipped {
            line(&mut text, &format!("Not measured: {}, {reason}.", kind.name()));
        }
        text
    }

    /// Every figure, one per line.
    pub fn to_csv(&self) -> Csv {
        let mut csv = Csv::new();
        let mut rows = |kind: Kind, case: &str, figures: &crate::sample::Sample| {
            for name in figures.names() {
                let value = figures.figure(name).expect("a name has its figure");
                csv.row(&format!("compare/{}", kind.name()), case, name, value, unit_of(name));
            }
        };
        for cell in &self.cells {
            rows(cell.kind, &cell.load.name(), &cell.medians);
        }
        for recovery in &self.recoveries {
            rows(recovery.kind, "recovery", &recovery.best);
        }
        csv
    }

    fn commits_table(&self) -> String {
        let Args { bytes, seconds, repeats, .. } = self.args;
        let mut text = format!(
            "### Durable commits\n\nN threads, each appends {bytes} bytes and waits until they are durable: thousands of \
             commits/s, then p50 / p99 / p99.9 in us. Medians of {repeats} runs of {seconds} s, logs in turn.\n\n"
        );
        self.heading(&mut text, "log", |threads| format!("{threads}"));
        for &kind in &self.args.logs {
            self.row(&mut text, kind.name(), |load| {
                let cell = self.cell(kind, load)?;
                let get = |name| cell.medians.figure(name);
                Some(format!(
                    "**{:.1}** {:.0} / {:.0} / {:.0}",
                    get("commits_per_s")? / 1000.0,
                    get("p50_us")?,
                    get("p99_us")?,
                    get("p999_us")?
                ))
            });
        }
        let worst =
            self.cells.iter().filter_map(|cell| cell.medians.figure("spread_percent")).fold(0.0, f64::max);
        line(
            &mut text,
            &format!("\nWorst spread between the runs of one cell: {worst:.0} % of its median.\n"),
        );
        text
    }

    fn cost_table(&self) -> String {
        let mut text = String::from(
            "### What a commit costs\n\nCPU seconds per million commits; then, per record, bytes written to the device / \
             bytes that lie in the log's files; then commits per device flush.\n\n",
        );
        self.heading(&mut text, "log", |threads| format!("{threads}"));
        for &kind in &self.args.logs {
            self.row(&mut text, kind.name(), |load| {
                let cell = self.cell(kind, load)?;
                let get = |name| cell.medians.figure(name);
                let kept =
                    get("kept_bytes_per_record").map_or(NOTHING.to_string(), |bytes| format!("{bytes:.0}"));
                Some(format!(
                    "{:.1} s, {:.0} / {kept} B, {:.1}",
                    get("cpu_s_per_million")?,
                    get("device_bytes_per_record")?,
                    get("commits_per_flush")?
                ))
            });
        }
        text.push('\n');
        text
    }

    fn ratio_table(&self) -> String {
        let mut text = String::from(
            "### Ratios of commits/s, within this run\n\nThreads beside threads, and tasks of a runtime beside goroutines.\n\n",
        );
        self.heading(&mut text, "", |threads| format!("{threads}"));
        self.row(&mut text, "best rival with threads", |load| {
            self.best_rival(load).map(|(kind, rate)| format!("{}: {:.1} k", kind.name(), rate / 1000.0))
        });
        let ratio = |mine: Option<f64>, theirs: Option<f64>| Some(format!("{:.2}", mine? / theirs?));
        let best = |load| self.best_rival(load).map(|(_, rate)| rate);
        let rate = |kind, load| self.rate(kind, load);
        self.row(&mut text, "arborlog / best rival with threads", |load| {
            ratio(rate(Kind::Arborlog, load), best(load))
        });
        for (name, mine, theirs) in [
            ("arborlog with tasks / etcd with goroutines", Kind::ArborlogTasks, Kind::Etcd),
            ("arborlog with threads / etcd with goroutines", Kind::Arborlog, Kind::Etcd),
            ("arborlog / plain-direct", Kind::Arborlog, Kind::PlainDirect),
            ("arborlog-unrested / plain-direct", Kind::ArborlogUnrested, Kind::PlainDirect),
        ] {
            self.row(&mut text, name, |load| ratio(rate(mine, load), rate(theirs, load)));
        }
        let p99 = |kind, load| self.figure(kind, load, "p99_us");
        for (name, mine) in [
            ("p99, arborlog / plain-direct", Kind::Arborlog),
            ("p99, arborlog-unrested / plain-direct", Kind::ArborlogUnrested),
        ] {
            self.row(&mut text, name, |load| ratio(p99(mine, load), p99(Kind::PlainDirect, load)));
        }
        self.row(&mut text, "plain-direct / best rival with threads", |load| {
            ratio(rate(Kind::PlainDirect, load), best(load))
        });
        text.push('\n');
        text
    }

    fn tickets_table(&self) -> String {
        let Load { threads, depth } = Load::TICKETS;
        let mut text = format!(
            "### {threads} threads with {depth} tickets in flight each\n\nFor logs with an asynchronous handle; the \
             others wait in {} threads for the same number in flight.\n\n\
             | log | commits/s | p50 / p99 / p99.9 us | CPU s per million |\n|---|---|---|---|\n",
            threads * depth
        );
        let blocking = Load { threads: threads * depth, depth: 1 };
        let mut rows = vec![("arborlog, tickets", Kind::Arborlog, Load::TICKETS)];
        let mut rivals: Vec<Kind> = self.best_rival(blocking).into_iter().map(|(kind, _)| kind).collect();
        rivals.extend(self.args.logs.iter().filter(|kind| kind.is_rival() && kind.has_tasks()));
        rows.extend(rivals.iter().map(|&kind| (kind.name(), kind, blocking)));
        for (name, kind, load) in rows {
            let cell = self.cell(kind, load);
            let get = |figure| cell.and_then(|cell| cell.medians.figure(figure));
            let show = |figure| get(figure).map_or(NOTHING.to_string(), |value| format!("{value:.0}"));
            let latencies = ["p50_us", "p99_us", "p999_us"].map(show).join(" / ");
            let cpu = get("cpu_s_per_million").map_or(NOTHING.to_string(), |value| format!("{value:.1}"));
            line(
                &mut text,
                &format!("| {name} ({}) | {} | {latencies} | {cpu} |", load.name(), show("commits_per_s")),
            );
        }
        for kind in rivals {
            let rates = (self.rate(Kind::Arborlog, Load::TICKETS), self.rate(kind, blocking));
            if let (Some(mine), Some(theirs)) = rates {
                line(&mut text, &format!("\narborlog / {}: {:.2}", kind.name(), mine / theirs));
            }
        }
        text.push('\n');
        text
    }

    fn recovery_table(&self) -> String {
        let mut text = format!(
            "### Recovery\n\nReopen a log of {} records of {} bytes and read all of it, page cache warm, best of 3.\n\n\
             | log | records/s | MB/s | peak memory |\n|---|---|---|---|\n",
            self.args.records, self.args.bytes
        );
        for RecoveryResult { kind, best } in &self.recoveries {
            let get = |name| best.figure(name).unwrap_or(0.0);
            let (rate, bytes, memory) = (get("records_per_s"), get("mb_per_s"), get("peak_memory_mb"));
            line(&mut text, &format!("| {} | {rate:.0} | {bytes:.0} | {memory:.0} MB |", kind.name()));
        }
        let rate = |result: &RecoveryResult| result.best.figure("records_per_s").unwrap_or(0.0);
        let rivals = self.recoveries.iter().filter(|result| result.kind.is_rival());
        let best_rival = rivals.max_by(|a, b| rate(a).total_cmp(&rate(b)));
        let of = |kind| self.recoveries.iter().find(|result| result.kind == kind);
        let ratios = [("best rival", best_rival), ("plain-direct", of(Kind::PlainDirect))];
        for (name, other) in ratios {
            if let (Some(mine), Some(other)) = (of(Kind::Arborlog), other) {
                let ratio = rate(mine) / rate(other);
                line(&mut text, &format!("\narborlog / {name} ({}): {ratio:.2}", other.kind.name()));
            }
        }
        text.push('\n');
        text
    }

    fn heading(&self, text: &mut String, first: &str, name: impl Fn(usize) -> String) {
        let columns: Vec<String> = self.args.threads.iter().map(|&threads| name(threads)).collect();
        line(text, &format!("| {first} | {} |", columns.join(" | ")));
        line(text, &format!("|---|{}", "---|".repeat(columns.len())));
    }

    fn row(&self, text: &mut String, name: &str, show: impl Fn(Load) -> Option<String>) {
        let cells = self.args.threads.iter().map(|&threads| Load { threads, depth: 1 });
        let cells: Vec<String> = cells.map(|load| show(load).unwrap_or(NOTHING.to_string())).collect();
        line(text, &format!("| {name} | {} |", cells.join(" | ")));
    }

    fn cell(&self, kind: Kind, load: Load) -> Option<&CellResult> {
        self.cells.iter().find(|cell| cell.kind == kind && cell.load == load)
    }

    fn rate(&self, kind: Kind, load: Load) -> Option<f64> {
        self.figure(kind, load, "commits_per_s")
    }

    fn figure(&self, kind: Kind, load: Load, name: &str) -> Option<f64> {
        self.cell(kind, load)?.medians.figure(name)
    }

    /// Of those whose writers are threads, as arborlog's are.
    fn best_rival(&self, load: Load) -> Option<(Kind, f64)> {
        let rivals = self.args.logs.iter().filter(|kind| kind.is_rival() && !kind.has_tasks());
        let rates = rivals.filter_map(|&kind| Some((kind, self.rate(kind, load)?)));
        rates.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

fn line(text: &mut String, content: &str) {
    writeln!(text, "{content}").expect("a string takes every write");
}

fn unit_of(figure: &str) -> &'static str {
    match figure {
        "commits_per_s" => "commits/s",
        "records_per_s" => "records/s",
        "mb_per_s" => "MB/s",
        "peak_memory_mb" => "MB",
        "cpu_s_per_million" => "s",
        "spread_percent" => "percent",
        "commits_per_flush" => "commits",
        name if name.ends_with("_us") => "us",
        _ => "bytes",
    }
}
