//! Code shared by the two drivers of gangs, for Python.

use pyo3::prelude::*;
use topolane_gang::{GANG_POLICIES, GangPolicy, SliceLimits, gang_policy};

use crate::error::bad_input;

/// Limits on the length of slices. Times are in seconds. Immutable.
#[pyclass(frozen, from_py_object, get_all, module = "topolane._engine")]
#[derive(Clone)]
pub struct GangLimits {
    slice: Option<f64>,
    shortest: f64,
    longest: f64,
    delay: f64,
    switch: f64,
    overhead: f64,
}

#[pymethods]
impl GangLimits {
    #[new]
    #[pyo3(signature = (*, slice=None, shortest=None, longest=None, delay=None, switch=None, overhead=None))]
    fn new(
        slice: Option<f64>,
        shortest: Option<f64>,
        longest: Option<f64>,
        delay: Option<f64>,
        switch: Option<f64>,
        overhead: Option<f64>,
    ) -> PyResult<Self> {
        let usual = SliceLimits::default();
        let limits = GangLimits {
            slice,
            shortest: shortest.unwrap_or(usual.shortest),
            longest: longest.unwrap_or(usual.longest),
            delay: delay.unwrap_or(usual.delay),
            switch: switch.unwrap_or(usual.switch),
            overhead: overhead.unwrap_or(usual.overhead),
        };
        for (what, value) in [
            ("slice", limits.slice.unwrap_or(limits.shortest)),
            ("shortest", limits.shortest),
            ("longest", limits.longest),
            ("delay", limits.delay),
            ("switch", limits.switch),
            ("overhead", limits.overhead),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(bad_input(format!("{what} must be a number above 0, not {value}")));
            }
        }
        Ok(limits)
    }
}

impl From<&GangLimits> for SliceLimits {
    fn from(limits: &GangLimits) -> SliceLimits {
        let GangLimits { slice, shortest, longest, delay, switch, overhead } = *limits;
        SliceLimits { slice, shortest, longest, delay, switch, overhead }
    }
}

/// Returns the gang policy of this name.
pub fn policy_of(name: &str) -> PyResult<Box<dyn GangPolicy>> {
    gang_policy(name).ok_or_else(|| {
        let names: Vec<_> = GANG_POLICIES.iter().map(|info| info.name).collect();
        bad_input(format!("no gang policy is called {name:?}; there are {}", names.join(", ")))
    })
}
