//! How much memory a piece of work takes: an allocator that counts for each thread. A test binary names it as its
//! global allocator and asks for the peak of what it runs.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted.
#[derive(Debug)]
pub struct Counting;

/// What a piece of work took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Most bytes held at once, above what was held when it began.
    pub peak: usize,
    /// Bytes that are still held.
    pub kept: isize,
    /// Calls of the allocator.
    pub calls: u64,
}

fn note(change: isize) {
    // A thread that is going down has no counters any more.
    let _ = HELD.try_with(|held| {
        let now = held.get() + change;
        held.set(now);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
    });
}

fn size(layout: &Layout) -> isize {
    isize::try_from(layout.size()).expect("a layout is at most isize::MAX")
}

// SAFETY: every call goes to the system's allocator as it came, and its answer is given back as it came; the counters
// are plain cells of the thread, which allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(size(&layout));
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(-size(&layout));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(size(&layout));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new: usize) -> *mut u8 {
        note(isize::try_from(new).unwrap_or(isize::MAX) - size(&layout));
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, new) }
    }
}

/// Runs `work` and says what this thread took for it. Zeros where [`Counting`] is not the allocator.
pub fn taken<T>(work: impl FnOnce() -> T) -> (T, Taken) {
    let before = HELD.get();
    let calls = COUNT.get();
    let outer = PEAK.replace(before);
    let done = work();
    let peak = PEAK.get();
    PEAK.set(outer.max(peak));
    let peak = usize::try_from(peak - before).unwrap_or(0);
    (done, Taken { peak, kept: HELD.get() - before, calls: COUNT.get() - calls })
}
