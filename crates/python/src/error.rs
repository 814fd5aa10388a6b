//! Converts errors for bad input to Python exceptions.

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

pyo3::create_exception!(
    topolane,
    InputError,
    PyValueError,
    "Input that cannot be used: one sentence that names the file, the line and the value."
);

/// Converts a [`topolane_fabric::InputError`] to an exception.
pub fn input_error(error: topolane_fabric::InputError) -> PyErr {
    InputError::new_err(error.to_string())
}

/// Returns an exception for an error of the whole input.
pub fn bad_input(message: impl Into<String>) -> PyErr {
    InputError::new_err(message.into())
}

/// An error of a run: bad input, or an exception raised in Python.
pub enum RunError {
    /// Bad input.
    Input(topolane_fabric::InputError),
    /// An exception raised by a Python policy or by the progress function.
    Raised(PyErr),
}

impl From<topolane_fabric::InputError> for RunError {
    fn from(error: topolane_fabric::InputError) -> Self {
        RunError::Input(error)
    }
}

impl From<RunError> for PyErr {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Input(error) => input_error(error),
            RunError::Raised(error) => error,
        }
    }
}
