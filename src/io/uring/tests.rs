//! The queue on a ring that misbehaves as a kernel may: late, short, out of order, cancelled, failing.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::ring::{Action, Request, Ring};
use super::{Completion, UringQueue, UserData};
use crate::base::Random;
use crate::io::{Buffer, Durability, File, WriteOp};

const FILE_BYTES: usize = 256;

/// One file of the mock: what reads would see, and what a power cut would leave.
#[derive(Clone, Debug)]
struct Medium {
    cache: Vec<u8>,
    dirty: Vec<bool>,
    durable: Vec<u8>,
}

impl Medium {
    fn new() -> Medium {
        Medium { cache: vec![0; FILE_BYTES], dirty: vec![false; FILE_BYTES], durable: vec![0; FILE_BYTES] }
    }

    /// A sync that fails forgets what it should have kept, as Linux does.
    fn sync(&mut self, fails: bool) {
        for i in 0..FILE_BYTES {
            if std::mem::take(&mut self.dirty[i]) && !fails {
                self.durable[i] = self.cache[i];
            }
        }
    }
}

/// What carried-out requests are told to return; when it is empty, they succeed.
#[derive(Debug)]
enum Outcomes {
    Scripted(VecDeque<i32>),
    Random,
}

#[derive(Debug)]
struct MockRing {
    files: Vec<Medium>,
    pushed: VecDeque<Request>,
    /// Chains that were consumed; the front of each may run, in any order.
    chains: Vec<VecDeque<Request>>,
    completions: VecDeque<(u64, i32)>,
    outcomes: Outcomes,
    /// Answers of the next calls of `enter`: an error, or how many requests it consumes.
    enters: VecDeque<Result<usize, Errno>>,
    /// All that was carried out, in order.
    trace: Vec<(Request, i32)>,
    random: Random,
}

/// What the mock does for requests without a script.
const OK: i32 = i32::MAX;
const CANCELED: i32 = -125;
const IO: i32 = -5;

impl MockRing {
    fn new(outcomes: Outcomes, seed: u64) -> MockRing {
        MockRing {
            files: vec![Medium::new(); 3],
            pushed: VecDeque::new(),
            chains: Vec::new(),
            completions: VecDeque::new(),
            outcomes,
            enters: VecDeque::new(),
            trace: Vec::new(),
            random: Random::from_seed(seed),
        }
    }

    fn is_random(&self) -> bool {
        matches!(self.outcomes, Outcomes::Random)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).unwrap()
    }

    /// Moves requests from the submission queue to chains, which end with the submission.
    fn consume(&mut self, count: usize) {
        let mut linked = false;
        for request in self.pushed.drain(..count) {
            if !linked {
                self.chains.push(VecDeque::new());
            }
            linked = matches!(request.action, Action::Write { linked: true, .. });
            self.chains.last_mut().unwrap().push_back(request);
        }
    }

    fn outcome(&mut self, request: &Request) -> i32 {
        match &mut self.outcomes {
            Outcomes::Scripted(script) => script.pop_front().unwrap_or(OK),
            Outcomes::Random => match (self.random.below(24), request.action) {
                (0, _) => -Errno::INTR.raw_os_error(),
                (1, _) => -Errno::AGAIN.raw_os_error(),
                (2, _) => CANCELED,
                (3, _) => IO,
                (4..8, Action::Write { .. }) => i32::try_from(self.random.below(16)).unwrap(),
                _ => OK,
            },
        }
    }

    /// Carries out the front of a chain.
    fn run(&mut self, chain: usize) {
        let request = self.chains[chain].pop_front().unwrap();
        let wanted = self.outcome(&request);
        let file = &mut self.files[usize::try_from(request.fd).unwrap()];
        let (result, ends_chain) = match request.action {
            Action::Sync => {
                if wanted == OK || wanted == IO {
                    file.sync(wanted == IO);
                }
                (if wanted == OK { 0 } else { wanted }, wanted != OK)
            }
            Action::Write { bytes, offset, dsync, .. } => {
                // SAFETY: the queue keeps the bytes good until it took this request's completion, which
                // is not there yet. Under Miri this is the test that it does.
                let bytes = unsafe { std::slice::from_raw_parts(bytes.start, bytes.len as usize) };
                let count = usize::try_from(wanted).unwrap_or(0).min(bytes.len());
                let range = usize::try_from(offset).unwrap()..usize::try_from(offset).unwrap() + count;
                file.cache[range.clone()].copy_from_slice(&bytes[..count]);
                file.dirty[range.clone()].fill(!dsync);
                if dsync {
                    file.durable[range].copy_from_slice(&bytes[..count]);
                }
                (if wanted < 0 { wanted } else { i32::try_from(count).unwrap() }, count < bytes.len())
            }
        };
        self.complete(&request, result);
        if ends_chain {
            while let Some(rest) = self.chains[chain].pop_front() {
                self.complete(&rest, CANCELED);
            }
        }
        self.chains.retain(|chain| !chain.is_empty());
    }

    fn complete(&mut self, request: &Request, result: i32) {
        self.trace.push((*request, result));
        // In order, or where the dice say.
        let back = if self.is_random() { self.below(self.completions.len() + 1) } else { 0 };
        self.completions.insert(self.completions.len() - back, (request.user_data, result));
    }
}

impl Drop for MockRing {
    fn drop(&mut self) {
        let idle = self.chains.is_empty();
        assert!(idle || std::thread::panicking(), "the queue went away under the kernel: {:?}", self.chains);
    }
}

impl Ring for MockRing {
    unsafe fn push(&mut self, request: &Request) {
        assert!(self.pushed.len() < 8, "the ring is full");
        self.pushed.push_back(*request);
    }

    fn enter(&mut self, completions: usize) -> io::Result<usize> {
        if self.is_random() && self.random.below(8) == 0 {
            return Err(Errno::INTR.into());
        }
        let all = self.pushed.len();
        let consumed = match self.enters.pop_front() {
            Some(answer) => answer?,
            None if self.is_random() && all > 0 => 1 + self.below(all),
            None => all,
        };
        self.consume(consumed);
        if consumed < all {
            return Ok(consumed); // as the kernel: it does not wait then
        }
        while !self.chains.is_empty() && (self.completions.len() < completions || !self.is_random()) {
            let chain = if self.is_random() { self.below(self.chains.len()) } else { 0 };
            self.run(chain);
        }
        assert!(self.completions.len() >= completions, "this would wait for ever");
        Ok(consumed)
    }

    fn completion(&mut self) -> Option<(u64, i32)> {
        self.completions.pop_front()
    }
}

/// A file that has a descriptor and nothing else.
#[derive(Debug)]
struct Numbered {
    fd: RawFd,
    align: u64,
}

impl File for Numbered {
    fn name(&self) -> &'static str {
        "numbered"
    }
    fn align_bytes(&self) -> u64 {
        self.align
    }
    fn len(&self) -> io::Result<u64> {
        panic!("the queue has no business here")
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        panic!("the queue has no business here")
    }
    fn write_all_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        panic!("the queue has no business here")
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        panic!("the queue has no business here")
    }
    fn allocate(&self, _: u64) -> io::Result<()> {
        panic!("the queue has no business here")
    }
    fn sync(&self) -> io::Result<()> {
        panic!("the queue has no business here")
    }
    fn will_read(&self) {}
    fn raw_fd(&self) -> Option<RawFd> {
        Some(self.fd)
    }
}

fn op(tag: u64, fd: RawFd, align: u64, offset: u64, bytes: &[u8], durability: Durability) -> WriteOp {
    let mut buffer = Buffer::with_capacity(bytes.len());
    buffer.extend(bytes);
    WriteOp { tag, file: Arc::new(Numbered { fd, align }), offset, buffer, durability }
}

fn bytes(len: u8) -> Vec<u8> {
    (1..=len).collect()
}

fn scripted(script: &[i32]) -> UringQueue<MockRing> {
    UringQueue::on(MockRing::new(Outcomes::Scripted(script.iter().copied().collect()), 0))
}

/// Writes 16 bytes at offset 8 of file 1 under a script.
fn write_16(queue: &mut UringQueue<MockRing>, durability: Durability) -> Completion {
    queue.hand_in(op(7, 1, 1, 8, &bytes(16), durability));
    queue.take_one()
}

fn syncs(queue: &UringQueue<MockRing>) -> usize {
    queue
        .ring
        .trace
        .iter()
        .filter(|(r, result)| matches!(r.action, Action::Sync) && *result != CANCELED)
        .count()
}

fn errno(completion: &Completion) -> Option<i32> {
    completion.result.as_ref().err().map(|error| error.raw_os_error().unwrap_or(0))
}

fn is_durable(queue: &UringQueue<MockRing>) -> bool {
    queue.ring.files[1].durable[8..24] == bytes(16)
}

#[test]
fn a_write_and_its_sync_go_in_as_one_chain() {
    let mut queue = scripted(&[]);
    let completion = write_16(&mut queue, Durability::ThenSync);
    assert_eq!((completion.tag, errno(&completion), completion.buffer.as_slice()), (7, None, &bytes(16)[..]));
    assert!(is_durable(&queue));
    assert_eq!(queue.ring.trace.len(), 2);
    assert!(matches!(queue.ring.trace[0].0.action, Action::Write { linked: true, dsync: false, .. }));
    let completion = write_16(&mut queue, Durability::Dsync);
    assert_eq!((errno(&completion), queue.ring.trace.len()), (None, 3));
    assert!(matches!(queue.ring.trace[2].0.action, Action::Write { linked: false, dsync: true, .. }));
    let completion = write_16(&mut queue, Durability::None);
    assert_eq!((errno(&completion), queue.ring.trace.len()), (None, 4));
    assert!(matches!(queue.ring.trace[3].0.action, Action::Write { linked: false, dsync: false, .. }));
}

#[test]
fn iu_03_a_short_write_cancels_its_sync_and_the_rest_brings_a_fresh_one() {
    for short in [1, 8, 15] {
        let mut queue = scripted(&[short]);
        assert_eq!(errno(&write_16(&mut queue, Durability::ThenSync)), None);
        assert!(is_durable(&queue));
        let results: Vec<_> = queue.ring.trace.iter().map(|(_, result)| *result).collect();
        assert_eq!(results, [short, CANCELED, 16 - short, 0]);
    }
}

#[test]
fn iu_03_a_failed_write_is_not_acknowledged_by_a_cancelled_sync() {
    for failure in [Errno::IO, Errno::NOSPC, Errno::ROFS] {
        let mut queue = scripted(&[-failure.raw_os_error()]);
        assert_eq!(errno(&write_16(&mut queue, Durability::ThenSync)), Some(failure.raw_os_error()));
        assert_eq!(syncs(&queue), 0);
    }
}

#[test]
fn iu_03_a_chain_parted_by_the_submission_is_synced_again() {
    let mut queue = scripted(&[]);
    queue.ring.enters = [Ok(1), Ok(1)].into();
    assert_eq!(errno(&write_16(&mut queue, Durability::ThenSync)), None);
    assert!(is_durable(&queue));
    assert_eq!(syncs(&queue), 2, "the sync that was left behind may have run beside the write");
}

#[test]
fn iu_04_a_sync_that_overtook_its_write_does_not_count() {
    let mut queue = scripted(&[]);
    queue.ring.enters = [Ok(0)].into();
    queue.hand_in(op(7, 1, 1, 8, &bytes(16), Durability::ThenSync));
    // Against the rules of links, the ring carries the sync out first and says so.
    queue.ring.pushed.swap(0, 1);
    assert_eq!(errno(&queue.take_one()), None);
    assert!(is_durable(&queue));
    assert_eq!(syncs(&queue), 2);
}

#[test]
fn iu_06_what_asks_to_come_again_is_given_the_same_bytes_a_hundred_times() {
    for again in [Errno::INTR, Errno::AGAIN, Errno::CANCELED].map(|e| -e.raw_os_error()) {
        for durability in [Durability::Dsync, Durability::ThenSync, Durability::None] {
            let mut queue = scripted(&[again; 100]);
            assert_eq!(errno(&write_16(&mut queue, durability)), None);
            assert_eq!(queue.ring.files[1].cache[8..24], bytes(16));
            assert!(durability == Durability::None || is_durable(&queue));
            let mut queue = scripted(&[again; 101]);
            assert_eq!(errno(&write_16(&mut queue, durability)), Some(-again));
        }
    }
}

#[test]
fn iu_06_a_sync_that_did_not_run_is_asked_for_again_within_bounds() {
    for again in [Errno::INTR, Errno::AGAIN, Errno::CANCELED].map(|e| -e.raw_os_error()) {
        let mut script = [again; 101];
        script[0] = OK;
        let mut queue = scripted(&script);
        assert_eq!(errno(&write_16(&mut queue, Durability::ThenSync)), None);
        assert!(is_durable(&queue));
        let mut script = [again; 103];
        script[0] = OK;
        assert_eq!(errno(&write_16(&mut scripted(&script), Durability::ThenSync)), Some(-again));
    }
}

#[test]
fn fs_02_a_failed_sync_is_reported_once_and_never_retried() {
    for failure in [Errno::IO, Errno::NOSPC, Errno::DQUOT] {
        let mut queue = scripted(&[OK, -failure.raw_os_error()]);
        assert_eq!(errno(&write_16(&mut queue, Durability::ThenSync)), Some(failure.raw_os_error()));
        assert_eq!(queue.ring.trace.len(), 2);
        // The same for one that ran after a cancelled one.
        let mut queue = scripted(&[OK, CANCELED, -failure.raw_os_error()]);
        assert_eq!(errno(&write_16(&mut queue, Durability::ThenSync)), Some(failure.raw_os_error()));
        assert_eq!(queue.ring.trace.len(), 3);
    }
}

/// Two writes of one file: the sync of the second fails and drops the pages of both, then the sync of the
/// first finds nothing to write and succeeds.
#[test]
fn fs_02_a_failed_sync_fails_the_writes_of_the_same_file_beside_it() {
    for (fd, expected) in [(1, Some(5)), (2, None)] {
        let mut queue = scripted(&[]);
        queue.ring.enters = [Ok(0), Ok(0)].into();
        queue.hand_in(op(1, 1, 1, 0, &bytes(16), Durability::ThenSync));
        queue.hand_in(op(2, fd, 1, 16, &bytes(16), Durability::ThenSync));
        queue.ring.consume(4);
        queue.ring.outcomes = Outcomes::Scripted([OK, OK, IO, OK].into());
        for chain in [0, 1, 1, 0] {
            queue.ring.run(chain);
        }
        // The kernel tells of the success first.
        queue.ring.completions.swap(2, 3);
        queue.pushed.clear();
        let (first, second) = (queue.take_one(), queue.take_one());
        let first_of = |tag| if first.tag == tag { &first } else { &second };
        assert_eq!((errno(first_of(1)), errno(first_of(2))), (expected, Some(5)));
        assert_eq!(queue.ring.files[1].durable[..16] == bytes(16), expected.is_none());
    }
}

#[test]
fn iu_13_completions_of_nothing_under_way_are_ignored_and_counted() {
    let mut queue = scripted(&[]);
    assert_eq!(errno(&write_16(&mut queue, Durability::ThenSync)), None);
    let late: Vec<u64> = queue.ring.trace.iter().map(|(request, _)| request.user_data).collect();
    queue.ring.enters = [Ok(0)].into();
    queue.hand_in(op(8, 1, 1, 8, &bytes(16), Durability::ThenSync));
    // The slot is in use again, and its predecessor's completions come a second time, as failures.
    queue.ring.completions.extend(late.iter().map(|user_data| (*user_data, IO)));
    queue.ring.completions.push_back((u64::MAX, 0));
    let completion = queue.take_one();
    assert_eq!((completion.tag, errno(&completion), queue.strays), (8, None, 3));
}

#[test]
fn iu_13_user_data_survives_the_ring() {
    for generation in [0, 1, 77, (1 << 61) - 1] {
        for slot in 0..super::QUEUE_DEPTH {
            for part in [super::Part::Write, super::Part::Sync] {
                let user_data = UserData { generation, slot, part };
                assert_eq!(UserData::unpack(user_data.pack()), user_data);
            }
        }
    }
}

#[test]
fn iu_14_every_request_names_its_offset_and_its_file() {
    let mut queue = scripted(&[5, CANCELED, 3]);
    queue.ring.enters = [Ok(0)].into();
    queue.hand_in(op(1, 1, 1, 100, &bytes(16), Durability::Dsync));
    queue.hand_in(op(2, 2, 1, 100, &bytes(16), Durability::ThenSync));
    assert_eq!([errno(&queue.take_one()), errno(&queue.take_one())], [None, None]);
    for (request, _) in &queue.ring.trace {
        let of = UserData::unpack(request.user_data);
        assert_eq!(request.fd, if of.slot == 0 { 1 } else { 2 });
        if let Action::Write { bytes, offset, .. } = request.action {
            assert_eq!(offset + u64::from(bytes.len), 116);
        }
    }
    assert_eq!(queue.ring.files[0].cache, vec![0; FILE_BYTES]);
    assert!(queue.ring.files[1..].iter().all(|file| file.durable[100..116] == bytes(16)));
}

#[test]
fn iu_14_a_short_direct_write_goes_on_from_an_aligned_offset() {
    let mut queue = scripted(&[0, 7, 8, 9, 31]);
    queue.hand_in(op(1, 1, 8, 16, &bytes(64), Durability::Dsync));
    assert_eq!(errno(&queue.take_one()), None);
    let offsets = queue.ring.trace.iter().map(|(request, _)| match request.action {
        Action::Write { offset, .. } => offset,
        Action::Sync => panic!("no sync was asked for"),
    });
    let offsets: Vec<_> = offsets.collect();
    assert_eq!(offsets, [16, 16, 16, 24, 32, 56]);
    assert_eq!(queue.ring.files[1].durable[16..80], bytes(64));
}

#[test]
#[should_panic(expected = "overlap")]
fn iu_14_two_writes_under_way_may_not_overlap() {
    let mut queue = scripted(&[]);
    queue.hand_in(op(1, 1, 1, 0, &bytes(16), Durability::None));
    queue.hand_in(op(2, 1, 1, 15, &bytes(16), Durability::None));
}

#[test]
#[should_panic(expected = "a write to offset")]
fn iu_14_the_current_position_is_no_offset() {
    scripted(&[]).hand_in(op(1, 1, 1, u64::MAX - 16, &bytes(16), Durability::None));
}

#[test]
fn iu_15_an_error_is_the_negated_result() {
    for number in [1, 5, 9, 28, 30, 122] {
        for durability in [Durability::Dsync, Durability::ThenSync, Durability::None] {
            let completion = write_16(&mut scripted(&[-number]), durability);
            assert_eq!(errno(&completion), Some(number));
            assert_eq!(completion.buffer.as_slice(), bytes(16), "the buffer comes back");
        }
    }
    // More than was asked for is no success either.
    let mut queue = scripted(&[]);
    queue.ring.enters = [Ok(0)].into();
    queue.hand_in(op(7, 1, 1, 8, &bytes(16), Durability::None));
    let request = queue.ring.pushed[0];
    queue.ring.completions.push_back((request.user_data, 17));
    assert!(queue.take_one().result.is_err());
}

#[test]
fn a_write_that_gets_nowhere_ends() {
    let completion = write_16(&mut scripted(&[0; 101]), Durability::Dsync);
    assert_eq!(completion.result.unwrap_err().kind(), io::ErrorKind::WriteZero);
}

#[test]
fn an_empty_write_is_answered() {
    for durability in [Durability::Dsync, Durability::ThenSync, Durability::None] {
        let mut queue = scripted(&[]);
        queue.hand_in(op(7, 1, 1, 8, &[], durability));
        assert_eq!((errno(&queue.take_one()), queue.count()), (None, 0));
    }
}

#[test]
fn a_busy_ring_is_asked_again_and_a_dead_one_fails_what_it_never_took() {
    let mut queue = scripted(&[]);
    queue.ring.enters = [Err(Errno::BUSY), Err(Errno::INTR), Err(Errno::AGAIN)].into();
    assert_eq!(errno(&write_16(&mut queue, Durability::ThenSync)), None);
    for durability in [Durability::Dsync, Durability::ThenSync] {
        let mut queue = scripted(&[]);
        queue.ring.enters = [Err(Errno::PERM)].into();
        for _ in 0..2 {
            assert_eq!(errno(&write_16(&mut queue, durability)), Some(Errno::PERM.raw_os_error()));
        }
        assert_eq!(queue.ring.trace.len(), 0);
    }
}

#[test]
fn what_a_dead_ring_took_is_waited_for() {
    let mut queue = scripted(&[]);
    queue.ring.enters = [Ok(1), Err(Errno::PERM)].into();
    queue.hand_in(op(7, 1, 1, 8, &bytes(16), Durability::ThenSync));
    queue.enter(0);
    queue.enter(1);
    assert_eq!(queue.broken, Some(Errno::PERM.raw_os_error()));
    assert!(queue.slots[0].as_ref().unwrap().outcome.is_none(), "the kernel still has the buffer");
    queue.ring.run(0);
    assert_eq!(errno(&queue.take_one()), Some(Errno::PERM.raw_os_error()), "written, and never synced");
}

#[test]
fn iu_01_dropping_a_queue_waits_for_all_that_is_under_way() {
    for seed in 0..2000 {
        let mut queue = UringQueue::on(MockRing::new(Outcomes::Random, seed));
        for tag in 0..4 {
            queue.hand_in(op(tag, 1, 1, tag * 32, &bytes(16), Durability::ThenSync));
        }
        // The mock reads through the pointers until the last completion: Miri sees a buffer freed too early.
        drop(queue);
    }
}

/// Every write that is answered with `Ok` is durable, in any order of events: links that hold or part,
/// completions in any order, short writes, transient and real failures, syncs that drop what they failed on.
#[test]
fn iu_04_no_schedule_acknowledges_what_is_not_durable() {
    let (mut acknowledged, mut failed) = (0, 0);
    let seeds = if cfg!(miri) { 50 } else { 30_000 };
    for seed in 0..seeds {
        let mut random = Random::from_seed(seed ^ 0x5eed);
        let mut queue = UringQueue::on(MockRing::new(Outcomes::Random, seed));
        let mut expected = Vec::new();
        for tag in 0..8u64 {
            let fd = RawFd::try_from(random.below(3)).unwrap();
            let content: Vec<u8> = (0..16).map(|_| random.next_u64().to_le_bytes()[0]).collect();
            let durability = if random.below(3) == 0 { Durability::Dsync } else { Durability::ThenSync };
            queue.hand_in(op(tag, fd, 4, tag * 16, &content, durability));
            expected.push((usize::try_from(fd).unwrap(), content));
            while queue.count() == 4
                || (tag == 7 && queue.count() > 0)
                || (queue.count() > 0 && random.below(2) == 0)
            {
                let completion = queue.take_one();
                let at = usize::try_from(completion.tag).unwrap();
                let (file, content) = &expected[at];
                assert_eq!(completion.buffer.as_slice(), content);
                if completion.result.is_ok() {
                    acknowledged += 1;
                    assert_eq!(queue.ring.files[*file].durable[at * 16..][..16], content[..], "seed {seed}");
                } else {
                    failed += 1;
                }
            }
        }
        assert_eq!(queue.strays, 0, "seed {seed}");
    }
    assert!(
        acknowledged > seeds * 4 && failed > seeds / 4,
        "{acknowledged} and {failed} of {seeds} schedules"
    );
}
