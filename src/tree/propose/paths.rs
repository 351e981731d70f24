/// Paths of changes, one behind the other in one allocation: they are forgotten in the order in which they came, or the
/// newest are taken back.
#[derive(Debug, Default)]
pub(super) struct Paths {
    text: String,
    /// Where the text begins, counted from the first path ever.
    first: u64,
    /// So many bytes at its beginning are forgotten.
    gone: usize,
}

/// Where a path stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathAt {
    start: u64,
    len: usize,
}

/// So much room is kept.
const KEPT: usize = 64 * 1024;

impl Paths {
    pub(super) fn add(&mut self, path: &str) -> PathAt {
        let start = self.first + self.text.len() as u64;
        self.text.push_str(path);
        PathAt { start, len: path.len() }
    }

    pub(super) fn get(&self, at: PathAt) -> &str {
        let start = self.place(at.start);
        &self.text[start..start + at.len]
    }

    /// Forgets a path and all before it.
    pub(super) fn forget(&mut self, at: PathAt) {
        self.gone = self.place(at.start) + at.len;
        self.close_up();
    }

    /// Takes back a path and all behind it.
    pub(super) fn take_back(&mut self, at: PathAt) {
        self.text.truncate(self.place(at.start));
        self.close_up();
    }

    /// Moves what is there to the beginning, once as much is gone: a byte for each that goes, at most.
    fn close_up(&mut self) {
        if self.gone * 2 >= self.text.len() {
            self.first += self.gone as u64;
            self.text.drain(..self.gone);
            self.gone = 0;
            self.text.shrink_to(KEPT);
        }
    }

    fn place(&self, start: u64) -> usize {
        usize::try_from(start - self.first).expect("a path in memory")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::base::Random;

    #[test]
    fn paths_stay_while_others_come_and_go_at_both_ends() {
        let mut random = Random::from_seed(3);
        let (mut paths, mut kept) = (Paths::default(), VecDeque::new());
        let mut most = 0;
        for turn in 0..5000 {
            match random.below(4) {
                0 | 1 => {
                    let path = format!("/ä{}", "x".repeat(usize::try_from(random.below(40)).unwrap()));
                    kept.push_back((paths.add(&path), path));
                }
                2 => kept.pop_back().into_iter().for_each(|(at, _)| paths.take_back(at)),
                _ => kept.pop_front().into_iter().for_each(|(at, _)| paths.forget(at)),
            }
            for (at, path) in &kept {
                assert_eq!(paths.get(*at), path, "turn {turn}");
            }
            most = most.max(kept.len());
            let bytes: usize = kept.iter().map(|(_, path)| path.len()).sum();
            assert!(paths.text.len() <= bytes * 2, "what is gone takes no more room than what is there");
        }
        assert!(most > 10, "{most}");
    }

    #[test]
    fn the_room_of_a_crowd_is_given_back() {
        let mut paths = Paths::default();
        let all: Vec<_> = (0..1000).map(|_| paths.add(&"/a".repeat(1000))).collect();
        assert!(paths.text.capacity() >= 2_000_000);
        all.into_iter().for_each(|at| paths.forget(at));
        assert!(paths.text.is_empty() && paths.text.capacity() <= KEPT);
        let at = paths.add("/b");
        assert_eq!(paths.get(at), "/b");
    }
}
