//! The workloads of simulated jobs. The real workloads of `topolane paper gang` take the same parameters and draw the
//! same random numbers.

/// What the threads of a job do repeatedly. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ThreadWorkload {
    /// Every thread computes on its own.
    Independent {
        /// Computing time per iteration.
        iteration: f64,
    },
    /// All threads compute, then meet at a barrier.
    Barrier {
        /// Computing time between two barriers.
        interval: f64,
        /// Whether a waiting thread keeps its core busy.
        spin: bool,
        /// The maximum deviation of a thread's computing time from `interval`, as a share, uniformly distributed.
        imbalance: f64,
    },
    /// Like `CoEVP`: a coarse step by one thread, then fine-scale tasks that all threads take from one queue, then
    /// communication.
    Coevp {
        /// Computing time of the coarse step.
        coarse: f64,
        /// The number of tasks per step.
        tasks: u32,
        /// The mean of the tasks' log-normal times.
        fine: f64,
        /// The sigma of these times.
        spread: f64,
        /// The time for which all threads are blocked after a step.
        wait: f64,
    },
}

/// When a job ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Length {
    /// After this number of iterations.
    Iterations(u64),
    /// At the end of the first iteration that ends at least this number of seconds after the job first ran.
    Seconds(f64),
}

/// A pseudo-random number by splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA
/// 2014.
pub fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A pseudo-random number from 0 to below 1. It depends only on seed, iteration and place.
pub fn drawn(seed: u64, iteration: u64, place: u64) -> f64 {
    (mixed(mixed(mixed(seed) ^ iteration) ^ place) >> 11) as f64 * 2.0_f64.powi(-53)
}

/// The time of a fine-scale task: log-normal, with the mean `fine` for any spread.
pub fn fine_seconds(seed: u64, iteration: u64, task: u32, fine: f64, spread: f64) -> f64 {
    let one = 1.0 - drawn(seed, iteration, 2 * u64::from(task));
    let other = drawn(seed, iteration, 2 * u64::from(task) + 1);
    let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
    fine * (spread * normal - spread * spread / 2.0).exp()
}
