use super::super::data_tree::DataTree;
use super::body::Body;
use super::context::RequestContext;
use super::options::ProposeOptions;
use super::outstanding::Outstanding;
use super::proposal::Proposal;
use super::request::Request;
use super::step::Step;
use crate::base::{Code, Zxid};
use crate::format::Stat;

/// Makes txns out of requests: what a leader does before it logs anything.
///
/// A request is checked against the tree as it will be, with all the changes that were proposed before and are not
/// yet applied. So requests that build on each other need not wait for each other: they may share one sync of the
/// log.
///
/// For each proposal there is one call of [`applied`](Proposer::applied), or of
/// [`roll_back`](Proposer::roll_back). Every other change of the tree has to come when nothing is outstanding.
///
/// ```
/// use arborlog::{
///     Acl, CreateMode, CreateRequest, DataTree, ProposeOptions, Proposer, Request, RequestContext, Zxid,
/// };
///
/// let mut tree = DataTree::new();
/// let mut proposer = Proposer::new(ProposeOptions::new());
/// let acl = [Acl::open()];
/// let context = |zxid| RequestContext {
///     zxid: Zxid::new(zxid),
///     time_ms: 1_700_000_000_000,
///     session_id: 0,
///     cxid: 0,
///     identities: &[],
/// };
///
/// // The second builds on the first, which nobody has applied yet.
/// let queue = Request::Create(CreateRequest::new("/queue", b"", &acl));
/// let first = proposer.propose(&tree, &queue, &context(1));
/// let item = Request::Create(CreateRequest {
///     mode: CreateMode::PersistentSequential,
///     ..CreateRequest::new("/queue/item-", b"work", &acl)
/// });
/// let second = proposer.propose(&tree, &item, &context(2));
/// assert_eq!(second.created_path(0), Some("/queue/item-0000000000"));
///
/// // Both are logged, and then applied in order.
/// for proposal in [first, second] {
///     proposal.with_txn(|txn| tree.apply(txn, &mut ()));
///     proposer.applied(proposal.zxid());
/// }
/// assert_eq!(tree.get("/queue/item-0000000000").unwrap().data(), Some(&b"work"[..]));
/// ```
#[derive(Debug)]
pub struct Proposer {
    options: ProposeOptions,
    outstanding: Outstanding,
    /// The last zxid that was proposed.
    last: Zxid,
}

impl Proposer {
    /// With nothing outstanding.
    pub fn new(options: ProposeOptions) -> Proposer {
        Proposer { options, outstanding: Outstanding::default(), last: Zxid::ZERO }
    }

    /// Makes the txn of a request. One that fails makes an error; a multi that fails keeps the operations before the
    /// failing one, for the log, and marks it and those after it.
    ///
    /// `tree` has been changed by nothing but the txns that were proposed here and told to be applied.
    ///
    /// # Panics
    /// If the zxid is not larger than those proposed before.
    pub fn propose<'r>(
        &mut self,
        tree: &DataTree,
        request: &Request<'r>,
        context: &RequestContext<'_>,
    ) -> Proposal<'r> {
        assert!(context.zxid > self.last, "{} is proposed after {}", context.zxid, self.last);
        self.last = context.zxid;
        let mark = self.outstanding.mark();
        let outstanding = &mut self.outstanding;
        let mut step = Step { tree, outstanding, context, options: &self.options, place: None };
        let mut is_unfinished = false;
        let proposed = match request {
            Request::Multi(requests) => Ok(step.multi(requests)),
            Request::CloseSession => step.close_session().map(|(body, is_end)| {
                is_unfinished = !is_end;
                (body, Vec::new())
            }),
            request => step.single(request).map(|(body, stat)| (body, stat.into_iter().map(Some).collect())),
        };
        let (mut body, mut existing) = proposed.unwrap_or_else(|code| (Body::Error { code }, Vec::new()));
        // Of what sets data, the only one that was changed.
        let place = step.place.filter(|_| matches!(body, Body::SetData { .. }));
        // The lists of paths have been bounded where they were made.
        let is_bounded = matches!(body, Body::CloseSession { .. } | Body::DeleteAll { .. });
        if !is_bounded && body.bytes_max() > self.options.txn_bytes_max {
            self.outstanding.roll_back_to(mark);
            body = Body::Error { code: Code::MARSHALLING_ERROR };
            existing.clear();
        }
        Proposal {
            zxid: context.zxid,
            time_ms: context.time_ms,
            session_id: context.session_id,
            cxid: context.cxid,
            body,
            existing,
            is_unfinished,
            place,
        }
    }

    /// Forgets what the tree has by now: all up to that zxid.
    pub fn applied(&mut self, zxid: Zxid) {
        self.outstanding.applied(zxid);
    }

    /// Forgets the proposals with that zxid and larger ones: they were not logged, and never will be. Their zxids may
    /// be proposed again.
    pub fn roll_back(&mut self, zxid: Zxid) {
        self.outstanding.roll_back_from(zxid);
        self.last = self.last.min(Zxid::new(zxid.get().saturating_sub(1)));
    }

    /// How many states of nodes, sessions and quotas are kept for proposals that are not yet applied.
    pub fn outstanding_len(&self) -> usize {
        self.outstanding.len()
    }

    /// How requests are checked.
    pub fn options(&self) -> &ProposeOptions {
        &self.options
    }
}

impl Step<'_> {
    fn single<'r>(&mut self, request: &Request<'r>) -> Result<(Body<'r>, Option<Stat>), Code> {
        let body = match *request {
            Request::CreateIfAbsent(ref create) => return self.create_if_absent(create),
            Request::Create(ref create) => self.create(create),
            Request::Upsert(ref create) => self.upsert(create),
            Request::Delete { path, version } => self.delete(path, version),
            Request::DeleteRecursive { path } => self.delete_recursive(path),
            Request::DeleteContainer { path } => self.delete_container(path),
            Request::SetData { path, data, version } => self.set_data(path, data, version),
            Request::SetAcl { path, acl, version } => self.set_acl(path, acl, version),
            Request::Check { path, version } => self.check(path, version),
            Request::CheckNotExists { path } => self.check_not_exists(path),
            Request::CheckStat { path, ref expected } => self.check_stat(path, expected),
            Request::CreateSession { timeout_ms } => self.create_session(timeout_ms),
            Request::Reconfig { data } => self.reconfig(data),
            // Neither inside a multi; outside they are dealt with elsewhere.
            Request::Multi(_) | Request::CloseSession => Err(Code::BAD_ARGUMENTS),
        };
        Ok((body?, None))
    }

    fn multi<'r>(&mut self, requests: &[Request<'r>]) -> (Body<'r>, Vec<Option<Stat>>) {
        let mark = self.outstanding.mark();
        let mut ops = Vec::with_capacity(requests.len());
        let mut existing = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            let in_multi = !matches!(request, Request::CreateSession { .. } | Request::Reconfig { .. });
            let result = if in_multi { self.single(request) } else { Err(Code::BAD_ARGUMENTS) };
            match result {
                Ok((op, stat)) => {
                    if stat.is_some() {
                        existing.resize(at, None);
                        existing.push(stat);
                    }
                    ops.push(op);
                }
                Err(code) => {
                    self.outstanding.roll_back_to(mark);
                    ops.push(Body::Error { code });
                    ops.resize(requests.len(), Body::Error { code: Code::RUNTIME_INCONSISTENCY });
                    existing.clear();
                    break;
                }
            }
        }
        (Body::Multi(ops), existing)
    }
}
