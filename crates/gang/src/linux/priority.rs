//! Sets scheduling classes. No safe wrapper accepts the number of another thread.
#![allow(unsafe_code)]

use std::io;

/// The agent's priority: it wakes before everything except what the kernel itself needs at once.
const FIRST: i32 = 50;

fn set(thread: i32, class: i32, priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to a value that outlives the call, which only reads it.
    match unsafe { libc::sched_setscheduler(thread, class, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives the calling thread real-time priority, but not its children.
pub fn real_time() -> io::Result<()> {
    set(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, FIRST)
}

/// Lets a thread (0: the calling one) run only on cores that no other thread wants, or normally again.
pub fn rank(thread: i32, behind: bool) -> io::Result<()> {
    set(thread, if behind { libc::SCHED_IDLE } else { libc::SCHED_OTHER }, 0)
}
