//! The decision table of recovery. DESIGN.md has a paragraph for each row.

/// The state of a segment's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileState {
    /// It is not there.
    Absent,
    /// Its header page is damaged, foreign or misnamed.
    BadHeader,
    /// Written through once, and shorter now.
    Short,
    Usable,
}

/// What stands behind the last valid group of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EndState {
    /// The segment's end: its seal, or where the manifest ends it.
    Ended,
    /// A valid group that does not continue the log.
    Misfit,
    /// Zeros, or nothing.
    Zeros,
    /// Anything else.
    Garbage,
}

/// What recovery knows about the place where the valid log ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub(crate) file: FileState,
    pub(crate) end: EndState,
    /// A valid group stands somewhere behind: in this file, or in a later one.
    pub(crate) later: bool,
    /// Something proves that more was durable than what is valid: a later group's claim, or the manifest's.
    pub(crate) proof: bool,
    /// The log was closed cleanly right here and not opened since.
    pub(crate) settled: bool,
}

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The segment is whole: go on to the next one.
    NextSegment,
    /// The log ends here, cleanly: go on writing in place.
    Continue,
    /// The log ends here. Nothing that was acknowledged is missing; what stands behind is kept aside, and
    /// the log goes on in a new segment.
    CutHere,
    /// Acknowledged bytes have changed or are gone. The word is the error's code.
    Refuse(&'static str),
    /// The facts contradict each other; no sequence of crashes leads here.
    Impossible,
}

/// One row: a name, when it applies, and what to do.
struct Row {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the anchor of its paragraph; the test names rows by it")
    )]
    name: &'static str,
    applies: fn(&Facts) -> bool,
    verdict: Verdict,
}

use EndState::{Ended, Garbage, Misfit, Zeros};
use FileState::{Absent, BadHeader, Short, Usable};

const ROWS: &[Row] = &[
    Row {
        name: "R1 whole segment",
        applies: |f| f.file == Usable && f.end == Ended,
        verdict: Verdict::NextSegment,
    },
    Row {
        name: "R2 whole segment, shortened behind its end",
        applies: |f| f.file == Short && f.end == Ended,
        verdict: Verdict::NextSegment,
    },
    Row {
        name: "R3 clean end",
        applies: |f| f.file == Usable && f.end == Zeros && f.settled && !f.later && !f.proof,
        verdict: Verdict::Continue,
    },
    Row {
        name: "R4 end without a clean close",
        applies: |f| f.file == Usable && f.end == Zeros && !f.settled && !f.later && !f.proof,
        verdict: Verdict::CutHere,
    },
    Row {
        name: "R5 torn group",
        applies: |f| f.file == Usable && f.end == Garbage && !f.settled && !f.proof,
        verdict: Verdict::CutHere,
    },
    Row {
        name: "R6 hole before groups that were in flight",
        applies: |f| f.file == Usable && f.end == Zeros && !f.settled && f.later && !f.proof,
        verdict: Verdict::CutHere,
    },
    Row {
        name: "R7 rot: valid bytes end before what was durable",
        applies: |f| f.file == Usable && matches!(f.end, Zeros | Garbage) && f.proof,
        verdict: Verdict::Refuse("log_damaged"),
    },
    Row {
        name: "R8 a group out of place",
        applies: |f| f.file == Usable && f.end == Misfit,
        verdict: Verdict::Refuse("group_misplaced"),
    },
    Row {
        name: "R9 bytes behind a clean close",
        applies: |f| f.file == Usable && f.end == Garbage && f.settled && !f.later && !f.proof,
        verdict: Verdict::CutHere,
    },
    Row {
        name: "R10 groups behind a clean close",
        applies: |f| f.file == Usable && matches!(f.end, Zeros | Garbage) && f.settled && f.later && !f.proof,
        verdict: Verdict::Refuse("log_damaged"),
    },
    Row {
        name: "R11 shortened",
        applies: |f| f.file == Short && f.end != Ended && !(f.settled && !f.later && !f.proof),
        verdict: Verdict::Refuse("segment_short"),
    },
    Row {
        name: "R12 shortened behind a clean close",
        applies: |f| f.file == Short && matches!(f.end, Zeros | Garbage) && f.settled && !f.later && !f.proof,
        verdict: Verdict::CutHere,
    },
    Row {
        name: "R13 shortened misfit",
        applies: |f| f.file == Short && f.end == Misfit && f.settled && !f.later && !f.proof,
        verdict: Verdict::Impossible, // a misfit is itself a later group
    },
    Row {
        name: "R14 missing or unreadable, nothing lost by it",
        applies: |f| {
            matches!(f.file, Absent | BadHeader) && f.end == Zeros && f.settled && !f.later && !f.proof
        },
        verdict: Verdict::CutHere,
    },
    Row {
        name: "R15 missing",
        applies: |f| f.file == Absent && f.end == Zeros && !(f.settled && !f.later && !f.proof),
        verdict: Verdict::Refuse("segment_missing"),
    },
    Row {
        name: "R16 unreadable header",
        applies: |f| f.file == BadHeader && f.end == Zeros && !(f.settled && !f.later && !f.proof),
        verdict: Verdict::Refuse("segment_header"),
    },
    Row {
        name: "R17 no file, yet something in it",
        applies: |f| matches!(f.file, Absent | BadHeader) && f.end != Zeros,
        verdict: Verdict::Impossible, // nothing is read behind a header that does not hold
    },
];

/// Looks the facts up.
pub(crate) fn decide(facts: Facts) -> Verdict {
    let row = ROWS.iter().find(|row| (row.applies)(&facts));
    row.expect("the table covers every combination; its test enumerates them").verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Facts> {
        let bits = 0..8u8;
        [Absent, BadHeader, Short, Usable].into_iter().flat_map(move |file| {
            let bits = bits.clone();
            [Ended, Misfit, Zeros, Garbage].into_iter().flat_map(move |end| {
                bits.clone().map(move |b| Facts {
                    file,
                    end,
                    later: b & 1 != 0,
                    proof: b & 2 != 0,
                    settled: b & 4 != 0,
                })
            })
        })
    }

    #[test]
    fn every_combination_has_exactly_one_row() {
        assert_eq!(all().count(), 4 * 4 * 8);
        for facts in all() {
            let rows: Vec<_> = ROWS.iter().filter(|r| (r.applies)(&facts)).map(|r| r.name).collect();
            assert_eq!(rows.len(), 1, "{facts:?}: {rows:?}");
        }
    }

    #[test]
    fn every_row_is_used() {
        for row in ROWS {
            assert!(all().any(|f| (row.applies)(&f)), "{}", row.name);
        }
    }

    #[test]
    fn nothing_that_was_durable_is_ever_cut() {
        for facts in all().filter(|f| f.proof && f.end != Ended) {
            let verdict = decide(facts);
            assert!(matches!(verdict, Verdict::Refuse(_) | Verdict::Impossible), "{facts:?}: {verdict:?}");
        }
    }

    #[test]
    fn only_a_settled_end_is_continued_in_place() {
        for facts in all().filter(|f| decide(*f) == Verdict::Continue) {
            assert!(facts.settled && facts.end == Zeros && facts.file == Usable && !facts.later, "{facts:?}");
        }
    }
}
