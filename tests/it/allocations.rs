//! The allocator of the test binary: the system's, with a count of what each thread holds, so that a test can
//! say how much memory a call took at most, or that it took none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn note(change: isize) {
    // A thread that is ending has no counters any more; nothing is measured there.
    let _ = HELD.try_with(|held| {
        held.set(held.get().wrapping_add(change));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
        let _ = COUNT.try_with(|count| count.set(count.get() + u64::from(change > 0)));
    });
}

fn size(layout: Layout) -> isize {
    isize::try_from(layout.size()).unwrap_or(isize::MAX)
}

// SAFETY: every call goes to the system's allocator as it came; counting touches no memory of the caller's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(size(layout));
        // SAFETY: the caller keeps the contract of `alloc`, which is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(size(layout));
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(-size(layout));
        // SAFETY: the caller keeps the contract of `dealloc`, which is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs `call` and tells how many bytes more than before this thread held at the worst moment.
pub(crate) fn peak_bytes<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD.get();
    PEAK.set(before);
    let result = call();
    (result, u64::try_from(PEAK.get() - before).unwrap_or(0))
}

/// What this thread holds now, less what it has freed of others'.
pub(crate) fn held_bytes() -> i64 {
    HELD.get() as i64
}

/// Runs `call` and tells how many allocations this thread made in it.
pub(crate) fn allocations<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let before = COUNT.get();
    let result = call();
    (result, COUNT.get() - before)
}

#[test]
fn the_peak_is_seen_although_it_is_gone() {
    let ((), peak) = peak_bytes(|| {
        drop(std::hint::black_box(vec![1u8; 1 << 20]));
        drop(std::hint::black_box(vec![0u8; 3 << 20]));
    });
    assert!((3 << 20..4 << 20).contains(&peak), "{peak}");
    let ((), peak) = peak_bytes(|| {});
    assert!(peak < 1 << 10, "{peak}");
}

#[test]
fn allocations_are_counted_one_by_one() {
    let ((), count) = allocations(|| (0..7).for_each(|n| drop(std::hint::black_box(Box::new(n)))));
    assert_eq!(count, 7);
    assert_eq!(allocations(|| {}).1, 0);
}
