//! Readers of traffic matrices, one file per format.

mod csv;
mod matrix_market;

pub use csv::csv;
pub use matrix_market::matrix_market;

use topolane_fabric::InputError;

use crate::matrix::Traffic;

/// Reads a traffic matrix in whichever format it is: Matrix Market if it says so, else CSV.
///
/// # Errors
/// What [`matrix_market`] and [`csv`] refuse.
pub fn traffic(text: &str) -> Result<Traffic, InputError> {
    if matrix_market::is_one(text) { matrix_market(text) } else { csv(text) }
}

fn refuse(what: impl Into<String>) -> InputError {
    InputError::whole(what)
}
