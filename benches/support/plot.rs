//! Latency against throughput as a standalone SVG: one coloured series per policy, p50 solid, p99 dashed,
//! both axes logarithmic, each point labelled with its number of writers.

use std::fmt::Write as _;
use std::path::Path;

use super::labels::Labels;
use super::scale::LogScale;

/// Told apart by most colour-blind readers too (Okabe and Ito, the yellow left out).
const COLORS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#4d4d4d"];
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 560.0;
/// The frame: left, top, right, bottom.
const FRAME: [f64; 4] = [84.0, 78.0, 724.0, 492.0];
const STYLE: &str = "\
text{font-family:Inter,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;font-size:13px;fill:#3b4252}\
.title{font-size:19px;font-weight:600;fill:#1f2430}\
.subtitle{fill:#667085}\
.axis{font-size:13.5px;fill:#1f2430}\
.tick{font-size:12px;fill:#667085}\
.label{font-size:11px;font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}\
.grid{stroke:#e6e8ec;stroke-width:1}\
.frame{fill:none;stroke:#b8bec9;stroke-width:1}\
.p50{fill:none;stroke-width:2.4;stroke-linejoin:round;stroke-linecap:round}\
.p99{fill:none;stroke-width:1.8;stroke-dasharray:6 5;stroke-linejoin:round;opacity:.85}";

/// One measured load.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// Written beside the point, such as the number of writers.
    pub(crate) label: String,
    /// Operations per second.
    pub(crate) per_second: f64,
    /// The median latency in microseconds.
    pub(crate) p50_micros: f64,
    /// The 99th percentile in microseconds.
    pub(crate) p99_micros: f64,
}

/// The points of one policy, in the order of their load.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The policy's name in the legend.
    pub(crate) name: String,
    /// At least one.
    pub(crate) points: Vec<Point>,
}

/// A picture.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// The heading.
    pub(crate) title: String,
    /// What was measured, on what.
    pub(crate) subtitle: String,
    /// What is counted per second.
    pub(crate) x_label: String,
    /// What the points' labels count, such as `writers`.
    pub(crate) label_meaning: String,
    /// At most as many as there are colours.
    pub(crate) series: Vec<Series>,
}

impl Plot {
    /// Writes the picture to `path`.
    pub(crate) fn write_to(&self, path: &Path) -> std::io::Result<()> {
        std::fs::write(path, self.to_svg())
    }

    /// The picture.
    pub(crate) fn to_svg(&self) -> String {
        assert!(self.series.len() <= COLORS.len(), "more policies than colours");
        let points = || self.series.iter().flat_map(|series| &series.points);
        let [left, top, right, bottom] = FRAME;
        let x = LogScale::around(points().map(|point| point.per_second), left, right);
        let latencies = points().flat_map(|point| [point.p50_micros, point.p99_micros]);
        let y = LogScale::around(latencies, bottom, top);
        let mut canvas = Canvas::new();
        canvas.text(left, 34.0, "title", "", &self.title);
        canvas.text(left, 56.0, "subtitle", "", &self.subtitle);
        self.draw_axes(&mut canvas, &x, &y);
        for (series, color) in self.series.iter().zip(COLORS) {
            draw_series(&mut canvas, series, color, &x, &y);
        }
        self.draw_labels(&mut canvas, &x, &y);
        self.draw_legend(&mut canvas);
        canvas.finish()
    }

    fn draw_axes(&self, canvas: &mut Canvas, x: &LogScale, y: &LogScale) {
        let [left, top, right, bottom] = FRAME;
        for tick in x.ticks() {
            let at = x.pixel(tick);
            canvas.line((at, top), (at, bottom), "grid");
            canvas.text(at, bottom + 20.0, "tick", "text-anchor='middle'", &thousands(tick));
        }
        for tick in y.ticks() {
            let at = y.pixel(tick);
            canvas.line((left, at), (right, at), "grid");
            canvas.text(left - 10.0, at + 4.0, "tick", "text-anchor='end'", &duration(tick));
        }
        let (width, height) = (right - left, bottom - top);
        canvas.element(&format!(
            "<rect class='frame' x='{left}' y='{top}' width='{width}' height='{height}'/>"
        ));
        let (middle_x, middle_y) = (f64::midpoint(left, right), f64::midpoint(top, bottom));
        canvas.text(middle_x, bottom + 46.0, "axis", "text-anchor='middle'", &self.x_label);
        let turned = format!("text-anchor='middle' transform='rotate(-90 22 {middle_y})'");
        canvas.text(22.0, middle_y, "axis", &turned, "latency until durable");
    }

    /// Labels come last, so that no line crosses them, and each finds a place that covers no other.
    fn draw_labels(&self, canvas: &mut Canvas, x: &LogScale, y: &LogScale) {
        let place_of = |point: &Point| (x.pixel(point.per_second), y.pixel(point.p50_micros));
        let mut labels = Labels::default();
        self.series
            .iter()
            .flat_map(|series| &series.points)
            .for_each(|point| labels.keep_off(place_of(point)));
        for (series, color) in self.series.iter().zip(COLORS) {
            for point in &series.points {
                let (at_x, at_y) = labels.place(place_of(point), &point.label);
                let attributes = format!("text-anchor='middle' style='fill:{color}'");
                canvas.text(at_x, at_y + 4.0, "label", &attributes, &point.label);
            }
        }
    }

    fn draw_legend(&self, canvas: &mut Canvas) {
        let (left, mut at) = (FRAME[2] + 26.0, FRAME[1] + 10.0);
        for (series, color) in self.series.iter().zip(COLORS) {
            canvas.stroke(&[(left, at), (left + 30.0, at)], "p50", color);
            canvas.dot(left + 15.0, at, color);
            canvas.text(left + 40.0, at + 4.5, "legend", "", &series.name);
            at += 25.0;
        }
        at += 12.0;
        for (class, meaning) in [("p50", "p50"), ("p99", "p99")] {
            canvas.stroke(&[(left, at), (left + 30.0, at)], class, "#667085");
            canvas.text(left + 40.0, at + 4.5, "subtitle", "", meaning);
            at += 23.0;
        }
        canvas.text(left, at + 6.0, "subtitle", "", &format!("numbers: {}", self.label_meaning));
    }
}

fn draw_series(canvas: &mut Canvas, series: &Series, color: &str, x: &LogScale, y: &LogScale) {
    let path = |latency: fn(&Point) -> f64| -> Vec<(f64, f64)> {
        series.points.iter().map(|point| (x.pixel(point.per_second), y.pixel(latency(point)))).collect()
    };
    let (p50, p99) = (path(|point| point.p50_micros), path(|point| point.p99_micros));
    canvas.stroke(&p99, "p99", color);
    canvas.stroke(&p50, "p50", color);
    for (at_x, at_y) in p99 {
        canvas.element(&format!(
            "<circle cx='{at_x:.1}' cy='{at_y:.1}' r='3' fill='#fff' stroke='{color}' stroke-width='1.6'/>"
        ));
    }
    for (at_x, at_y) in p50 {
        canvas.dot(at_x, at_y, color);
    }
}

/// `1500` as `1.5 k`.
fn thousands(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} M", value / 1e6),
        value if value >= 1e3 => format!("{} k", value / 1e3),
        value => format!("{value}"),
    }
}

/// Microseconds with the unit that keeps them short.
fn duration(micros: f64) -> String {
    match micros {
        micros if micros >= 1e6 => format!("{} s", micros / 1e6),
        micros if micros >= 1e3 => format!("{} ms", micros / 1e3),
        micros => format!("{micros} µs"),
    }
}

/// The SVG as it grows.
#[derive(Debug)]
struct Canvas {
    text: String,
}

impl Canvas {
    fn new() -> Canvas {
        let mut canvas = Canvas { text: String::new() };
        canvas.element(&format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{HEIGHT}' viewBox='0 0 {WIDTH} {HEIGHT}'>"
        ));
        canvas.element(&format!("<style>{STYLE}</style>"));
        canvas.element("<rect width='100%' height='100%' fill='#fff'/>");
        canvas
    }

    fn finish(mut self) -> String {
        self.element("</svg>");
        self.text
    }

    fn element(&mut self, element: &str) {
        writeln!(self.text, "{element}").expect("a string takes every write");
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.element(&format!("<line class='{class}' x1='{x1:.1}' y1='{y1:.1}' x2='{x2:.1}' y2='{y2:.1}'/>"));
    }

    fn stroke(&mut self, points: &[(f64, f64)], class: &str, color: &str) {
        let places: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.element(&format!("<polyline class='{class}' stroke='{color}' points='{}'/>", places.join(" ")));
    }

    fn dot(&mut self, x: f64, y: f64, color: &str) {
        self.element(&format!("<circle cx='{x:.1}' cy='{y:.1}' r='4' fill='{color}'/>"));
    }

    fn text(&mut self, x: f64, y: f64, class: &str, attributes: &str, content: &str) {
        let content = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.element(&format!("<text class='{class}' x='{x:.1}' y='{y:.1}' {attributes}>{content}</text>"));
    }
}
