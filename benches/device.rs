//! The device's own limit by write size and writes in flight: the ceiling that every other figure is read
//! against. `cargo bench --bench device -- --dir DIR [--quick] [--csv FILE] [--svg FILE]`.

mod support;

use std::time::Duration;

use support::args::BenchArgs;
use support::csv::Csv;
use support::device::Device;
use support::plot::{Plot, Point, Series};

fn main() {
    let args = BenchArgs::from_env();
    let duration = if args.quick { Duration::from_millis(100) } else { Duration::from_secs(2) };
    let device = Device::prepare(&args.dir).expect("zero a file in the bench's directory");
    let (mut csv, mut all) = (Csv::new(), Vec::new());
    println!("| bytes | in flight | writes/s | p50 us | p99 us | p99.9 us |\n|---|---|---|---|---|---|");
    for kilobytes in [4, 16, 64, 256] {
        let mut points = Vec::new();
        for in_flight in [1, 2, 4, 8, 16] {
            let limit = device
                .measure(kilobytes * 1024, in_flight, duration)
                .expect("write to the bench's directory");
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|q| limit.latencies.quantile_micros(q));
            let rate = limit.writes_per_second;
            println!("| {kilobytes} K | {in_flight} | {rate:.0} | {p50:.0} | {p99:.0} | {p999:.0} |");
            let case = format!("{kilobytes}k-x{in_flight}");
            csv.row("device", &case, "writes_per_s", rate, "writes/s");
            for (metric, micros) in [("p50_us", p50), ("p99_us", p99), ("p999_us", p999)] {
                csv.row("device", &case, metric, micros, "us");
            }
            points.push(Point {
                label: in_flight.to_string(),
                per_second: rate,
                p50_micros: p50,
                p99_micros: p99,
            });
        }
        all.push(Series { name: format!("{kilobytes} KB"), points });
    }
    if let Some(path) = &args.csv {
        csv.write_to(path).expect("write the CSV file");
    }
    if let Some(path) = &args.svg {
        let plot = Plot {
            title: "The device's own limit".to_string(),
            subtitle: "direct dsync writes to a zeroed file, no engine, 1 to 16 in flight".to_string(),
            x_label: "durable writes per second".to_string(),
            label_meaning: "in flight".to_string(),
            series: all,
        };
        plot.write_to(path).expect("write the picture");
    }
}
