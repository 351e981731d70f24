//! Opening: survey the directory, judge what was found by a table, and only then change anything.

mod apply;
mod judge;
mod report;
mod scan_all;
mod survey;
mod table;

pub(crate) use apply::{Opened, create, open_recovered};
pub(crate) use judge::{Ending, Judgement, Refusal, judge, judge_or_keep};
pub use report::{CutReport, RecoveryReport, TailState};
pub(crate) use survey::{Survey, sort_names, survey};
