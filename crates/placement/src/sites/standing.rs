//! What programs and links between sites have to do with each other.

use super::Program;
use super::board::{Board, Seats};
use super::predict::{Cut, Path};
use super::wan::Wan;

/// What a program has to do with the WAN where it sits.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    cut: Cut,
    /// Seconds of the longest way between two of its sites.
    latency: f64,
    /// Bytes a second on the links it uses; none for a program on one site.
    flows: Vec<(usize, f64)>,
    /// Seconds that moving it there must bring.
    pub moving: f64,
}

impl Standing {
    /// The same, where moving there must bring so many seconds.
    pub fn moved(self, moving: f64) -> Standing {
        Standing { moving, ..self }
    }
}

/// How the guests of a program are divided over its sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// As they are.
    Now,
    /// As few bytes cross as can be.
    Best,
}

/// A program on those seats. Divided best it is taken for uniform: of n guests, a on one site and b on another
/// send each other 4 a b / n^2 of what crosses the middle. Of what crosses now the pairs have their parts.
pub fn standing(
    board: &Board<'_>,
    program: &Program,
    seats: &Seats,
    division: Division,
) -> Standing {
    let wan = board.wan();
    // Nodes are numbered site by site, and most programs are on one.
    match (seats.first(), seats.last()) {
        (Some(first), Some(last)) if board.site(first.0) != board.site(last.0) => {}
        _ => return Standing::default(),
    }
    let spread = board.spread(seats);
    let used: Vec<usize> = (0..spread.len()).filter(|&site| spread[site] > 0).collect();
    let each = used.iter().enumerate();
    let ways = each.flat_map(|(place, &a)| used[..place].iter().map(move |&b| (a, b)));
    let pairs = |(a, b): (usize, usize)| f64::from(spread[a]) * f64::from(spread[b]);
    let guests = f64::from(program.guests);
    let (cut, whole) = match (division, program.here) {
        (Division::Now, Some(here)) => (here, ways.clone().map(pairs).sum()),
        _ => (program.cut, guests * guests / 4.0),
    };
    let mut latency = 0.0f64;
    let mut bytes = vec![0.0; wan.bandwidth().len()];
    for (a, b) in ways {
        latency = latency.max(wan.latency(a, b));
        for &link in wan.links(a, b) {
            bytes[link] += cut.bytes * pairs((a, b)) / whole;
        }
    }
    let flows = bytes.into_iter().enumerate().filter(|&(_, bytes)| bytes > 0.0).collect();
    Standing { cut, latency, flows, moving: 0.0 }
}

pub fn add(load: &mut [f64], standing: &Standing, sign: f64) {
    for &(link, bytes) in &standing.flows {
        load[link] += sign * bytes;
    }
}

pub fn loss(standing: &Standing, load: &[f64], wan: &Wan) -> f64 {
    if standing.latency <= 0.0 && standing.flows.is_empty() {
        return 0.0;
    }
    if standing.latency.is_infinite() {
        return f64::INFINITY;
    }
    // What others leave, and no less than a share in proportion.
    let share = |link: usize, bytes: f64| {
        let bandwidth = wan.bandwidth()[link];
        (bandwidth - (load[link] - bytes)).max(bandwidth * bytes / load[link])
    };
    let each = standing.flows.iter().map(|&(link, bytes)| bytes / share(link, bytes));
    let alone = Cut { bytes: each.fold(0.0, f64::max), ..standing.cut };
    alone.loss(Path { latency: standing.latency, bandwidth: 1.0, window: wan.window() })
}

/// What every program loses where it runs now, all sharing the WAN.
pub fn losses_now(board: &Board<'_>) -> Vec<f64> {
    let each = board.programs().iter().enumerate();
    let now = |(index, program)| standing(board, program, board.now(index), Division::Now);
    Ledger::of(board, each.map(now).collect()).losses(board.wan())
}

/// The standings of all programs, and what they make of the WAN.
#[derive(Debug, Clone)]
pub struct Ledger {
    pub standings: Vec<Standing>,
    pub load: Vec<f64>,
}

impl Ledger {
    /// Of all programs of a board.
    pub fn of(board: &Board<'_>, standings: Vec<Standing>) -> Ledger {
        let mut load = vec![0.0; board.wan().bandwidth().len()];
        for standing in &standings {
            add(&mut load, standing, 1.0);
        }
        Ledger { standings, load }
    }

    /// What every program loses.
    pub fn losses(&self, wan: &Wan) -> Vec<f64> {
        self.standings.iter().map(|standing| loss(standing, &self.load, wan)).collect()
    }
}
