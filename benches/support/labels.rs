//! Finds room for the labels of points: the first place around a point that covers nothing.

/// Offsets from a point, best first.
const PLACES: [(f64, f64); 8] = [
    (0.0, 13.0),
    (0.0, -13.0),
    (15.0, 8.0),
    (-15.0, -8.0),
    (15.0, -8.0),
    (-15.0, 8.0),
    (0.0, 25.0),
    (0.0, -25.0),
];
/// Half of a digit's width, half of a line's height, and half of a dot with a little air.
const HALF_DIGIT: f64 = 3.7;
const HALF_LINE: f64 = 6.0;
const HALF_DOT: f64 = 4.5;

/// What is already taken.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    taken: Vec<Area>,
}

/// A rectangle by its middle and its half sizes.
#[derive(Clone, Copy, Debug)]
struct Area {
    middle: (f64, f64),
    half: (f64, f64),
}

impl Labels {
    /// Keeps labels off a dot.
    pub(crate) fn keep_off(&mut self, dot: (f64, f64)) {
        self.taken.push(Area { middle: dot, half: (HALF_DOT, HALF_DOT) });
    }

    /// The middle of a label for a point; below it where no place is free.
    pub(crate) fn place(&mut self, point: (f64, f64), label: &str) -> (f64, f64) {
        let half = (HALF_DIGIT * label.chars().count() as f64, HALF_LINE);
        let area = |(x, y): (f64, f64)| Area { middle: (point.0 + x, point.1 + y), half };
        let free = |area: &Area| self.taken.iter().all(|taken| !taken.overlaps(area));
        let chosen = PLACES.into_iter().map(area).find(free).unwrap_or(area(PLACES[0]));
        self.taken.push(chosen);
        chosen.middle
    }
}

impl Area {
    fn overlaps(&self, other: &Area) -> bool {
        (self.middle.0 - other.middle.0).abs() < self.half.0 + other.half.0
            && (self.middle.1 - other.middle.1).abs() < self.half.1 + other.half.1
    }
}
