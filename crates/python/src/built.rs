//! What this engine was compiled from.

use pyo3::prelude::*;

/// The commit and the Cargo profile that whoever compiled the engine named in `TOPOLANE_COMMIT` and `TOPOLANE_PROFILE`.
#[pyfunction]
pub fn built() -> (Option<&'static str>, Option<&'static str>) {
    (option_env!("TOPOLANE_COMMIT"), option_env!("TOPOLANE_PROFILE"))
}
