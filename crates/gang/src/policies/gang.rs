//! Runs all threads of a job in the same slice.

use crate::job::{JobId, ObservedJob};
use crate::limits::SliceLimits;
use crate::matrix::Matrix;
use crate::policy::GangPolicy;
use crate::round::{Round, Slice};
use crate::rows;

/// Runs the rows of the matrix one after another. In the empty columns of a row, it also runs jobs of other rows whose
/// columns are all free there ("alternates"). A job with more threads than cores has a row to itself, where its threads
/// take turns.
///
/// Source: J. K. Ousterhout, Scheduling techniques for concurrent systems, ICDCS 1982, section 3.
#[derive(Default)]
pub struct Gang {
    matrix: Matrix,
}

impl GangPolicy for Gang {
    fn name(&self) -> &'static str {
        "gang"
    }

    fn round(&mut self, jobs: &[ObservedJob], cores: usize, limits: &SliceLimits) -> Round {
        fill(&mut self.matrix, jobs.iter(), cores);
        let slices = slices(&self.matrix, jobs, limits);
        let whole = |job: &&ObservedJob| job.threads <= cores;
        Round {
            slices,
            cores: self.matrix.columns(),
            gangs: jobs.iter().filter(whole).map(|job| job.id).collect(),
        }
    }
}

/// Updates a matrix for the current jobs.
pub(super) fn fill<'a>(
    matrix: &mut Matrix,
    jobs: impl Iterator<Item = &'a ObservedJob> + Clone,
    cores: usize,
) {
    if matrix.cores() != cores {
        *matrix = Matrix::new(cores);
    }
    matrix.retain(|id| jobs.clone().any(|job| job.id == id));
    for job in jobs {
        if !matrix.contains(job.id) {
            matrix.place(job.id, job.threads.min(cores));
        }
    }
}

/// A slice for each row, including its alternates.
fn slices(matrix: &Matrix, jobs: &[ObservedJob], limits: &SliceLimits) -> Vec<Slice> {
    let weights: Vec<f64> = matrix.rows().iter().map(|row| heaviest(jobs, row.keys())).collect();
    let seconds = rows::seconds(&weights, longest_interval(jobs, limits), limits);
    let each = seconds.into_iter().enumerate();
    each.map(|(row, seconds)| Slice {
        seconds,
        first: with_alternates(matrix, row),
        fillers: Vec::new(),
    })
    .collect()
}

/// The largest weight among the given jobs.
pub(super) fn heaviest<'a>(
    jobs: &[ObservedJob],
    of: impl Iterator<Item = &'a JobId> + Clone,
) -> f64 {
    let theirs = jobs.iter().filter(|job| of.clone().any(|id| *id == job.id));
    theirs.map(|job| job.weight).fold(0.0, f64::max)
}

/// The longest barrier interval that is known and short enough for a slice to contain many. Longer slices do not help
/// other jobs: a job that blocks long between barriers would only block in its own slice instead of in those of others.
pub(super) fn longest_interval(jobs: &[ObservedJob], limits: &SliceLimits) -> f64 {
    let known = jobs.iter().filter_map(|job| job.seen.barriers);
    let close = known.map(|barriers| barriers.interval).filter(|&each| limits.holds(each));
    close.fold(0.0, f64::max)
}

/// The jobs of a row, and those of the rows after it whose columns are all free.
pub(super) fn with_alternates(matrix: &Matrix, row: usize) -> Vec<JobId> {
    let mut free = matrix.free(row);
    let mut first: Vec<JobId> = matrix.rows()[row].keys().copied().collect();
    let rows = matrix.rows().len();
    for (job, columns) in (1..rows).flat_map(|after| &matrix.rows()[(row + after) % rows]) {
        if columns.iter().all(|core| free.contains(core)) {
            free.retain(|core| !columns.contains(core));
            first.push(*job);
        }
    }
    first
}
