//! Runs long calls of the engine so that other Python threads continue and signals are handled.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::error::bad_input;
use crate::memory;

/// How often Python checks for signals during a call.
pub const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// The stack size of a call in bytes: that of the first thread of a process on most systems.
const STACK: usize = 8 << 20;

/// Runs `work` on a thread of its own, while this thread handles signals. Other Python threads can run meanwhile.
///
/// An exception raised by a signal ends the call at once. The work continues until it or the process ends, so it must
/// own what it uses and must not need Python.
pub fn answering<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    // When the work ends, the sender is dropped, which wakes this thread.
    reporting(py, move |_: Sender<()>| work(), |_, ()| Ok(()))
}

/// Same as [`answering`], for work that reports its progress. `hear` regularly gets the latest report and may end the
/// call with an error. Then sending fails, so that the work can stop.
pub fn reporting<T: Send + 'static, Report: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(Sender<Report>) -> T + Send + 'static,
    hear: impl Fn(Python<'_>, Report) -> PyResult<()>,
) -> PyResult<T> {
    let (sender, mut reports) = mpsc::channel();
    let thread = thread::Builder::new()
        .name("topolane-call".into())
        .stack_size(STACK)
        .spawn(move || {
            memory::is_watched();
            work(sender)
        })
        .map_err(|error| {
            bad_input(format!(
                "not enough memory, or too many threads, for a call of the engine: {error}"
            ))
        })?;
    loop {
        let next = &mut reports;
        match py.detach(move || next.recv_timeout(BETWEEN_LOOKS)) {
            // The work may have sent more reports while `hear` was running.
            Ok(report) => hear(py, reports.try_iter().last().unwrap_or(report))?,
            Err(RecvTimeoutError::Timeout) if memory::is_short() => {
                return Err(PyMemoryError::new_err(()));
            }
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    py.detach(|| thread.join()).or_else(|panic| resume_unwind(panic))
}
