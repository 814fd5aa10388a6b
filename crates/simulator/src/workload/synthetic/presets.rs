//! Built-in workloads, by name.

use topolane_fabric::InputError;

use super::exponential::{Exponential, exponential};
use super::gpu_month::gpu_month;
use super::month::generate;
use super::parameters::{Arrivals, HyperGamma, Month};
use crate::workload::job::Workload;

/// The names of the presets, each with a description.
pub const PRESETS: [(&str, &str); 5] = [
    ("cab-aug", "31 days on 1,296 nodes at load 0.86; cab-aug-2x doubles the nodes of every job"),
    ("cab-sep", "15 days at load 2.64"),
    ("cab-nov", "30 days at load 0.83, evenly submitted"),
    ("exp-16", "5,000 jobs at once, sizes exponential of mean 16 (or another), 20-3,000 s"),
    (
        "gpu-month",
        "30 days of a GPU centre: load 0.93 of nvl72-5000, 1 to 744 GPUs, fitted to Philly and Lingjun",
    ),
];

/// Returns the workload of a name such as `cab-aug`, `cab-nov-2x` or `exp-16`.
///
/// # Errors
/// An unknown name.
pub fn preset(name: &str, seed: u64) -> Result<Workload, InputError> {
    let unknown = || {
        let known: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        InputError::whole(format!(
            "no workload '{}': {}, months also with -2x, -3x",
            name.escape_debug(),
            known.join(", ")
        ))
    };
    if let Some(mean) = name.strip_prefix("exp-") {
        let mean_nodes: f64 = mean.parse().map_err(|_| unknown())?;
        let mut workload =
            exponential(&Exponential { mean_nodes, ..Exponential::default() }, seed)?;
        workload.name = name.to_string();
        return Ok(workload);
    }
    if name == "gpu-month" {
        return Ok(gpu_month(seed));
    }
    let (base, times) = match name.rsplit_once('-') {
        Some((base, suffix)) if suffix.ends_with('x') => {
            let times = suffix.trim_end_matches('x').parse::<u32>().ok();
            (base, times.filter(|times| (1..=1_000).contains(times)).ok_or_else(unknown)?)
        }
        _ => (name, 1),
    };
    let mut workload = generate(&month(base).ok_or_else(unknown)?, seed);
    for job in &mut workload.jobs {
        job.nodes *= times;
    }
    workload.name = name.to_string();
    Ok(workload)
}

/// The parameters of August, September or November 2014 on Cab; `docs/explanation/sc18-paper.md` derives every number.
pub fn month(name: &str) -> Option<Month> {
    // The epochs are midnight in California. 1 August was a Friday, 1 September a Monday, 1 November a Saturday.
    let (epoch, first_weekday, days, load, look) = match name {
        "cab-aug" => (1_406_876_400.0, 4, 31, 0.86, 0.785),
        "cab-sep" => (1_409_554_800.0, 0, 15, 2.64, f64::INFINITY),
        "cab-nov" => (1_414_825_200.0, 5, 30, 0.83, 0.69),
        _ => return None,
    };
    let jobs_of_august = 20_000.0;
    let jobs = jobs_of_august * (load * f64::from(days)) / (0.86 * 31.0);
    Some(Month {
        name: name.to_string(),
        epoch,
        utc_offset: -25_200.0,
        first_weekday,
        days,
        jobs: jobs as usize,
        load,
        machine_nodes: 1_296,
        serial_share: 0.083,
        narrow_share: 0.87,
        narrow_below: 18,
        widest: 256,
        power_of_two_share: 0.77,
        run: HyperGamma {
            short: (4.2, 0.94),
            long: (312.0, 0.03),
            short_share: 0.1,
            short_share_per_node: 0.0,
        },
        longest: 86_400.0,
        killed_share: 0.23,
        arrivals: Arrivals { daily: (8.1737, 3.9631), cycle: 0.2, weekend: 0.4, look },
    })
}
