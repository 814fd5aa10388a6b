//! Readers of traffic matrices, one file per format.

mod csv;
mod matrix_market;

pub use csv::csv;
pub use matrix_market::matrix_market;

use topolane_fabric::InputError;

use crate::matrix::Traffic;

/// Reads a traffic matrix: as Matrix Market if the text begins so, otherwise as CSV.
///
/// # Errors
/// Whatever [`matrix_market`] or [`csv`] refuses.
pub fn traffic(text: &str) -> Result<Traffic, InputError> {
    if matrix_market::is_one(text) { matrix_market(text) } else { csv(text) }
}

fn refuse(what: impl Into<String>) -> InputError {
    InputError::whole(what)
}
