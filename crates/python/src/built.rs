//! Reports the source from which this engine was compiled.

use pyo3::prelude::*;

/// The commit and the Cargo profile from the variables `TOPOLANE_COMMIT` and `TOPOLANE_PROFILE` at compile time.
#[pyfunction]
pub fn built() -> (Option<&'static str>, Option<&'static str>) {
    (option_env!("TOPOLANE_COMMIT"), option_env!("TOPOLANE_PROFILE"))
}
