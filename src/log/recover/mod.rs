//! Opening: survey the directory, judge what was found by a table, and only then change anything.

mod apply;
mod judge;
mod report;
mod scan_all;
mod settle;
mod survey;
mod table;

pub(crate) use apply::{Leftover, Opened, check_owner, create, open_recovered, start_report};
pub(crate) use judge::{Ending, Judgement, Refusal, judge, judge_or_keep};
pub use report::{CutReport, RecoveryReport, TailState};
pub(crate) use scan_all::scan_one;
pub(crate) use settle::settle;
pub(crate) use survey::{Survey, catch_up, sort_names, survey, survey_replaying};
