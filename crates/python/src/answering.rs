//! Calls of the engine that may take long: Python's other threads go on meanwhile, and signals are answered.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::error::bad_input;
use crate::memory;

/// How often Python is asked whether a signal came.
pub const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Bytes of stack of a call: what the first thread of a process has on most systems.
const STACK: usize = 8 << 20;

/// Does `work` on a thread of its own, while this one answers to signals. Python is free for other threads meanwhile.
///
/// What a signal raises ends the call at once. The work then goes on until its end or that of the process, so it must own what
/// it uses and must not need Python.
pub fn answering<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    // Dropping the sender at its end wakes this thread.
    reporting(py, move |_: Sender<()>| work(), |_, ()| Ok(()))
}

/// The same for work that reports how far it is: `hear` gets the newest report now and then, and may end the call by an error.
/// Sending then fails, so that the work can stop.
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
            // The work may have gone on while `hear` took its time.
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
