//! Handles a lack of memory.
#![allow(unsafe_code, reason = "an allocator is unsafe to write")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The system's allocator. If there is no memory, it ends the process with a sentence, provided that
/// [`end_without_memory`] was called. Otherwise Rust does its default, which is to abort.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

static ENDS: AtomicBool = AtomicBool::new(false);
static SAYS: AtomicBool = AtomicBool::new(true);
static ENDING: AtomicBool = AtomicBool::new(false);
static SHORT: AtomicBool = AtomicBool::new(false);
thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}
const PAUSE: Duration = Duration::from_secs(3600);
const SENTENCE: &str = "topolane: not enough memory for this input\n";
/// The exit code for bad input, as for Python's `MemoryError`.
const EXIT_CODE: c_int = 2;

unsafe extern "C" {
    fn write(descriptor: c_int, from: *const c_void, bytes: usize) -> isize;
    fn _exit(code: c_int) -> !;
}

/// From now on, the process ends with exit code 2 if the engine gets no memory; with `says`, it also prints one
/// sentence. Only a command and its workers may ask for it, because it would end any other program that uses the
/// engine.
#[pyo3::pyfunction]
#[pyo3(signature = (*, says=true))]
pub fn end_without_memory(says: bool) {
    SAYS.store(says, Ordering::Relaxed);
    ENDS.store(true, Ordering::Relaxed);
}

/// Declares that another thread checks [`is_short`] while this one works. If this thread gets no memory, it then waits,
/// so that the other can end the command properly and remove half-written files.
pub fn is_watched() {
    IS_WATCHED.set(true);
}

/// Whether a watched thread is waiting because it got no memory.
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

// SAFETY: everything is passed to the system's allocator.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        given(unsafe { System.realloc(old, layout, size) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(old, layout) }
    }
}

fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() && ENDS.load(Ordering::Relaxed) {
        end();
    }
    memory
}

/// Ends the process. It must not allocate, and no panic may leave an allocator.
#[cold]
fn end() -> ! {
    while IS_WATCHED.get() {
        SHORT.store(true, Ordering::Relaxed);
        std::thread::sleep(PAUSE);
    }
    // Another thread that gets no memory waits for the process to end.
    while ENDING.swap(true, Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    // SAFETY: the text is as long as it says.
    unsafe {
        if SAYS.load(Ordering::Relaxed) {
            write(2, SENTENCE.as_ptr().cast(), SENTENCE.len());
        }
        _exit(EXIT_CODE)
    }
}
