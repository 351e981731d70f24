/// The limits and totals of parts of the tree.
#[derive(Debug, Default)]
pub(crate) struct Quotas {}
