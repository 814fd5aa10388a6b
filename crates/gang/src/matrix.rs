//! Ousterhout's matrix: rows are time slices, columns are cores.

use std::collections::BTreeMap;

use crate::job::JobId;

/// The cores of each job and its row. Every job is in exactly one row.
///
/// Source: J. K. Ousterhout, Scheduling techniques for concurrent systems, ICDCS 1982, section 3; packing and
/// unification as in D. G. Feitelson, Packing schemes for gang scheduling, JSSPP 1996, section 2.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matrix {
    cores: usize,
    rows: Vec<BTreeMap<JobId, Vec<usize>>>,
}

impl Matrix {
    /// Returns an empty matrix with `cores` columns.
    pub fn new(cores: usize) -> Self {
        Matrix { cores, rows: Vec::new() }
    }

    /// The number of columns.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// The jobs of every row, with their columns in ascending order.
    pub fn rows(&self) -> &[BTreeMap<JobId, Vec<usize>>] {
        &self.rows
    }

    /// Whether a job is in the matrix.
    pub fn contains(&self, job: JobId) -> bool {
        self.rows.iter().any(|row| row.contains_key(&job))
    }

    /// The columns of every job.
    pub fn columns(&self) -> BTreeMap<JobId, Vec<usize>> {
        self.rows.iter().flatten().map(|(job, columns)| (*job, columns.clone())).collect()
    }

    /// The columns of a row that no job uses.
    pub fn free(&self, row: usize) -> Vec<usize> {
        let row = &self.rows[row];
        let taken = |core: &usize| row.values().any(|columns| columns.contains(core));
        (0..self.cores).filter(|core| !taken(core)).collect()
    }

    /// Puts a job into the fullest row with enough free columns, otherwise into a new row. It must not have more
    /// threads than there are cores.
    pub fn place(&mut self, job: JobId, threads: usize) {
        debug_assert!(threads <= self.cores);
        let room = |row: &usize| self.free(*row).len();
        let fits = (0..self.rows.len()).filter(|row| room(row) >= threads);
        let row = fits.min_by_key(room).unwrap_or_else(|| {
            self.rows.push(BTreeMap::new());
            self.rows.len() - 1
        });
        let mut columns = self.free(row);
        columns.truncate(threads);
        self.rows[row].insert(job, columns);
    }

    /// Removes all jobs for which `keep` is false, and unifies the remaining ones.
    pub fn retain(&mut self, keep: impl Fn(JobId) -> bool) {
        let before = self.columns().len();
        for row in &mut self.rows {
            row.retain(|job, _| keep(*job));
        }
        if self.columns().len() < before {
            self.unify();
        }
    }

    /// Reduces the number of rows by moving the jobs of a row into gaps of others, starting with the emptiest row. A
    /// job keeps its columns if they are free in another row.
    fn unify(&mut self) {
        self.rows.retain(|row| !row.is_empty());
        let mut sources: Vec<usize> = (0..self.rows.len()).collect();
        sources.sort_by_key(|&row| (self.cores - self.free(row).len(), row));
        for source in sources {
            let mut without = self.clone();
            let jobs = std::mem::take(&mut without.rows[source]);
            if jobs
                .into_iter()
                .rev()
                .all(|(job, columns)| without.move_into_gap(source, job, &columns))
            {
                *self = without;
            }
        }
        self.rows.retain(|row| !row.is_empty());
    }

    /// Moves a job into a gap of a row other than `except` that is not empty. Returns whether there was one.
    fn move_into_gap(&mut self, except: usize, job: JobId, columns: &[usize]) -> bool {
        let others =
            (0..self.rows.len()).filter(|&row| row != except && !self.rows[row].is_empty());
        let gaps: Vec<(usize, Vec<usize>)> = others.map(|row| (row, self.free(row))).collect();
        let stays = gaps.iter().find(|(_, free)| columns.iter().all(|core| free.contains(core)));
        if let Some(&(row, _)) = stays {
            self.rows[row].insert(job, columns.to_vec());
            return true;
        }
        let fits = gaps.into_iter().filter(|(_, free)| free.len() >= columns.len());
        let Some((row, mut free)) = fits.min_by_key(|(_, free)| free.len()) else { return false };
        free.truncate(columns.len());
        self.rows[row].insert(job, free);
        true
    }
}
