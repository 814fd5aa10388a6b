//! The methods of the portfolio, and the threads that run them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::MappingSettings;
use super::arrangement::RankArrangement;
use super::descent::Descent;
use super::effort::Budget;
use super::groups::swap_groups;
use super::perturbation::{anneal, iterate, mean_loss};
use super::problem::MappingProblem;
use super::slots::PlacedSlots;
use super::starts::{DivisionMethod, RankDivision};

/// The first and last temperature of annealing, relative to the mean loss of a random exchange. Found by trial: higher
/// temperatures undo the partition, lower ones do not leave it.
const HOTTEST: f64 = 0.03;
const COLDEST: f64 = 0.003;

/// A mapping that one method found.
#[derive(Debug, Clone)]
pub(super) struct FoundMapping {
    /// The name of the method.
    pub(super) name: String,
    /// The seat of every rank.
    pub(super) seats: Vec<u32>,
    /// The sum of weight times distance.
    pub(super) value: f64,
}

/// Runs all methods. Results are in the same order for any number of threads.
pub(super) fn run(
    problem: &MappingProblem<'_>,
    slots: &PlacedSlots<'_>,
    search: MappingSettings,
) -> Vec<FoundMapping> {
    let budget = search.effort.budget();
    let mut starts: Vec<Option<(DivisionMethod, u64)>> = vec![None];
    for seed in 0..budget.seeds {
        starts.extend(
            [DivisionMethod::Bipartition, DivisionMethod::Multisection]
                .map(|cut| Some((cut, seed))),
        );
    }
    let mut found = in_parallel(search.threads, &starts, |&start| {
        let (name, mut seats) = match start {
            None => ("rank order".to_owned(), slots.rank_order()),
            Some((cut, draw)) => {
                let seed = search.seed.wrapping_add(draw);
                let graph = &problem.graph;
                let name = format!("{} {draw}", cut.name());
                (name, RankDivision { graph, slots, cut, care: budget.care, seed }.seats())
            }
        };
        swap_groups(problem, slots, &mut seats);
        swapped(problem, name, seats)
    });
    // Improve the best ones further. The sort is stable, so among equals the first stays first.
    let mut best: Vec<(u64, FoundMapping)> = (0..).zip(found.iter().cloned()).collect();
    best.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    best.truncate(budget.kept);
    let mut further = in_parallel(search.threads, &best, |(index, start)| {
        let mut draw = ChaCha8Rng::seed_from_u64(search.seed);
        draw.set_stream(index + 1);
        further(problem, slots, start, budget, &mut draw)
    });
    found.append(&mut further);
    found
}

/// Improves a start by pair swaps until none gains.
fn swapped(problem: &MappingProblem<'_>, name: String, seats: Vec<u32>) -> FoundMapping {
    let value = problem.value(&seats);
    let mut arrangement = RankArrangement::new(problem, seats);
    Descent::new(&arrangement, value).all(&mut arrangement);
    let seats = arrangement.into_seats();
    FoundMapping { name, value: problem.value(&seats), seats }
}

/// Improves a mapping by annealing, then by iterated local search.
fn further(
    problem: &MappingProblem<'_>,
    slots: &PlacedSlots<'_>,
    start: &FoundMapping,
    budget: Budget,
    draw: &mut ChaCha8Rng,
) -> FoundMapping {
    let mut seats = improved(problem, start, budget, draw);
    swap_groups(problem, slots, &mut seats);
    let name = format!("{}, annealed", start.name);
    FoundMapping { name, value: problem.value(&seats), seats }
}

/// Runs annealing and iterated local search from a start.
pub(super) fn improved(
    problem: &MappingProblem<'_>,
    start: &FoundMapping,
    budget: Budget,
    draw: &mut ChaCha8Rng,
) -> Vec<u32> {
    let ranks = problem.ranks() as u64;
    let mut arrangement = RankArrangement::new(problem, start.seats.clone());
    let unit = mean_loss(&arrangement, draw);
    let temperatures = (HOTTEST * unit, COLDEST * unit);
    anneal(&mut arrangement, temperatures, budget.trials * ranks, draw);
    Descent::new(&arrangement, start.value).all(&mut arrangement);
    iterate(&mut arrangement, start.value, budget.rounds * ranks, draw);
    arrangement.into_seats()
}

/// The results of `work` for all items, in their order.
pub(super) fn in_parallel<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { cores() } else { threads }.min(items.len());
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let worker = || {
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(index)
        {
            let result = work(item);
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // If the system starts no more threads, the existing ones do the work.
            if std::thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|&(index, _)| index);
    done.into_iter().map(|(_, result)| result).collect()
}
