use super::super::acl_check::Identity;
use crate::base::Zxid;

/// What comes with a request: who asks, and the place that its txn has in the order.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext<'a> {
    /// The txn's zxid: larger than any proposed before.
    pub zxid: Zxid,
    /// The leader's wall clock in milliseconds.
    pub time_ms: i64,
    /// The session that asks; 0 for the server itself.
    pub session_id: i64,
    /// The client's number of the request.
    pub cxid: i32,
    /// Who is behind the session.
    pub identities: &'a [Identity],
}
