//! Draws the submission times of the jobs of a month.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::parameters::Month;

const SLOTS_OF_DAY: u32 = 48;
const SLOT: f64 = 1_800.0;
/// The half hour at which the gamma distribution of the daily cycle begins (Lublin and Feitelson 2003).
const FIRST_SLOT: u32 = 11;

/// Draws the submission time of each job, in the order of `jobs`: whole seconds from 0 to `span`, both of which occur.
pub(super) fn arrivals(
    month: &Month,
    jobs: &[(u32, f64)],
    span: f64,
    random: &mut ChaCha8Rng,
) -> Vec<f64> {
    let cycle = Cycle::new(month, month.arrivals.cycle);
    let is_wide = |job: &(u32, f64)| job.0 >= month.narrow_below;
    let mut times: Vec<f64> = jobs.iter().map(|_| cycle.time(random.random())).collect();
    let mut wide: Vec<usize> = (0..jobs.len()).filter(|&job| is_wide(&jobs[job])).collect();
    wide.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
    hold_back(&wide, jobs, month.arrivals.look * f64::from(month.machine_nodes), &mut times);
    let first = times.iter().copied().fold(f64::INFINITY, f64::min);
    let last = times.iter().copied().fold(0.0, f64::max);
    let stretch = if last > first { span / (last - first) } else { 0.0 };
    times.into_iter().map(|time| ((time - first) * stretch).round()).collect()
}

/// Delays submissions of wide jobs, given in order, until each fits with earlier ones under `limit` nodes, assuming
/// that each starts at once.
fn hold_back(wide: &[usize], jobs: &[(u32, f64)], limit: f64, times: &mut [f64]) {
    let mut running: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut held = 0;
    let mut now = 0.0_f64;
    for &job in wide {
        let (nodes, run) = jobs[job];
        now = now.max(times[job]);
        while let Some(&Reverse((end, ending))) = running.peek() {
            if end as f64 > now && f64::from(held + nodes) <= limit {
                break;
            }
            running.pop();
            held -= ending;
            now = now.max(end as f64);
        }
        times[job] = now;
        held += nodes;
        running.push(Reverse(((now + run).ceil() as u64, nodes)));
    }
}

/// For every half hour of the month, the share of all submissions until its end.
struct Cycle {
    until: Vec<f64>,
}

impl Cycle {
    fn new(month: &Month, depth: f64) -> Self {
        let (shape, scale) = month.arrivals.daily;
        let density = |slot: u32| {
            // The gamma distribution begins in the morning and continues into the next night.
            let x = f64::from((slot + SLOTS_OF_DAY - (FIRST_SLOT - 1)) % SLOTS_OF_DAY + FIRST_SLOT);
            ((shape - 1.0) * (x / (shape * scale)).ln() - x / scale + shape).exp()
        };
        let day: Vec<f64> = (0..SLOTS_OF_DAY).map(density).collect();
        let mean = day.iter().sum::<f64>() / f64::from(SLOTS_OF_DAY);
        let mut sum = 0.0;
        let mut until: Vec<f64> = (0..month.days.max(1) * SLOTS_OF_DAY)
            .map(|slot| {
                let weekday = (slot / SLOTS_OF_DAY + month.first_weekday) % 7;
                let week = if weekday >= 5 { month.arrivals.weekend } else { 1.0 };
                let cycle = week * day[(slot % SLOTS_OF_DAY) as usize] / mean;
                sum += 1.0 + depth * (cycle - 1.0);
                sum
            })
            .collect();
        for value in &mut until {
            *value /= sum;
        }
        Cycle { until }
    }

    /// The time by which the share `part` of all submissions has come.
    fn time(&self, part: f64) -> f64 {
        let slot = self.until.partition_point(|&until| until < part).min(self.until.len() - 1);
        let before = if slot == 0 { 0.0 } else { self.until[slot - 1] };
        let within = (part - before) / (self.until[slot] - before);
        (slot as f64 + within) * SLOT
    }
}
