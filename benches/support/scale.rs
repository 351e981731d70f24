//! A logarithmic axis: values to pixels, and the ticks 1, 2, 5 of each decade.

/// Steps of a decade that get a tick.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// Maps the values `low..=high` to the pixels `from..=to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// An axis that holds all the values, its ends on the next ticks outside of them.
    pub(crate) fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> LogScale {
        let (low, high) =
            values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        assert!(low > 0.0 && low <= high, "a logarithmic axis needs positive values");
        // A little room, so that no point sits on the frame.
        LogScale { low: tick_below(low * 0.95), high: tick_above(high * 1.05), from, to }
    }

    /// Where a value lies.
    pub(crate) fn pixel(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        self.from + share * (self.to - self.from)
    }

    /// The ticks, both ends included.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = (first..=last).map(|power| 10_f64.powi(power));
        let ticks = decades.flat_map(|decade| STEPS.map(|step| step * decade));
        ticks.filter(|&tick| tick >= self.low * 0.999 && tick <= self.high * 1.001).collect()
    }
}

fn tick_below(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let step = STEPS.into_iter().rev().find(|step| step * decade <= value).unwrap_or(STEPS[0]);
    step * decade
}

fn tick_above(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    STEPS.into_iter().map(|step| step * decade).find(|&tick| tick >= value).unwrap_or(10.0 * decade)
}
