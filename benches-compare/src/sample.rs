//! One measured cell as a line of JSON: what a child process prints and the parent reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Named figures of one run. Flat and numeric, so that both drivers (Rust and Go) print the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    figures: BTreeMap<String, f64>,
}

impl Sample {
    /// No figures.
    pub fn new() -> Sample {
        Sample::default()
    }

    /// Adds or replaces a figure.
    pub fn set(&mut self, name: &str, value: f64) {
        self.figures.insert(name.to_string(), value);
    }

    /// A figure, if it was measured.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.get(name).copied()
    }

    /// The figures' names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.figures.keys().map(String::as_str)
    }

    /// One line of JSON.
    pub fn to_line(&self) -> String {
        let mut line = String::from("{");
        for (index, (name, value)) in self.figures.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(line, "{comma}\"{name}\":{value}").expect("a string takes every write");
        }
        line.push('}');
        line
    }

    /// Reads the last line of a child's output that is a flat JSON object of numbers.
    pub fn from_output(output: &str) -> Option<Sample> {
        output.lines().rev().find_map(Sample::from_line)
    }

    fn from_line(line: &str) -> Option<Sample> {
        let body = line.trim().strip_prefix('{')?.strip_suffix('}')?;
        let mut sample = Sample::new();
        for pair in body.split(',') {
            let (name, value) = pair.split_once(':')?;
            sample.set(name.trim().trim_matches('"'), value.trim().parse().ok()?);
        }
        Some(sample)
    }
}

/// The median of some values; the mean of the middle two when their number is even.
pub fn median(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "a median needs values");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[upper] } else { f64::midpoint(sorted[upper - 1], sorted[upper]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one process prints another reads, past any noise around it.
    #[test]
    fn a_line_survives_the_way_through_a_pipe() {
        let mut sample = Sample::new();
        sample.set("commits", 12.0);
        sample.set("p50_us", 140.5);
        let output = format!("noise\n{}\nmore: noise\n", sample.to_line());
        assert_eq!(Sample::from_output(&output), Some(sample));
        assert_eq!(Sample::from_output("nothing"), None);
    }

    /// Odd and even counts.
    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
