//! Keywords of an earlier release, accepted for one release.

use pyo3::prelude::*;

use crate::error::bad_input;

/// The minimum bandwidth share that a caller gives, as `min_bandwidth` or by its former name `phi`.
pub fn min_bandwidth(present: Option<f64>, former: Option<f64>) -> PyResult<Option<f64>> {
    let share = present.or(former);
    if share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
        return Err(bad_input("the minimum bandwidth share must be above 0 and at most 1"));
    }
    Ok(share)
}
