//! What a choice of sites is worth: time lost to the WAN, and what moving costs.

use super::Program;
use super::board::{Board, Seats};
use super::predict::{Cut, Path};
use super::wan::Wan;

/// What a move must bring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// A move's gain must be so many times its cost.
    pub margin: f64,
    /// And at least this share of the program's remaining time,
    pub least: f64,
    /// and this share of what it loses now: how far measured rates are doubted.
    pub doubt: f64,
    /// Seconds that a program is left alone after one of its guests was moved.
    pub rest: f64,
    /// How much of its speed a program loses while a guest of it is copied.
    pub drag: f64,
}

impl Default for Terms {
    fn default() -> Self {
        Terms { margin: 1.5, least: 0.02, doubt: 0.2, rest: 300.0, drag: 0.3 }
    }
}

/// A choice, judged for one program.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Judgement {
    /// Seconds that a second of its run alone on one site takes longer, where it runs now.
    pub loss_now: f64,
    /// The same as chosen.
    pub loss_then: f64,
    /// Seconds of its remaining run that the choice saves; negative where it gives way to others.
    pub gain: f64,
    /// Seconds of its run that the moves cost.
    pub cost: f64,
    /// Guests that move.
    pub moves: u32,
}

/// What a program has to do with the WAN where it sits.
#[derive(Debug, Clone, Default)]
struct Standing {
    /// Seconds of the longest way between two of its sites.
    latency: f64,
    /// Bytes a second on the links it uses; none for a program on one site.
    flows: Vec<(usize, f64)>,
    /// Seconds that moving it there must bring.
    moving: f64,
}

/// Of uniform traffic: of n guests, a on one site and b on another send each other
/// 4 a b / n^2 of what crosses the middle.
fn standing(board: &Board<'_>, cut: &Cut, seats: &Seats) -> Standing {
    let wan = board.wan();
    // Nodes are numbered site by site, and most programs are on one.
    match (seats.first(), seats.last()) {
        (Some(first), Some(last)) if board.site(first.0) != board.site(last.0) => {}
        _ => return Standing::default(),
    }
    let spread = board.spread(seats);
    let guests = f64::from(spread.iter().sum::<u32>());
    let used: Vec<usize> = (0..spread.len()).filter(|&site| spread[site] > 0).collect();
    let mut standing = Standing::default();
    let mut bytes = vec![0.0; wan.bandwidth().len()];
    for (place, &a) in used.iter().enumerate() {
        for &b in &used[..place] {
            standing.latency = standing.latency.max(wan.latency(a, b));
            let pairs = f64::from(spread[a]) * f64::from(spread[b]);
            for &link in wan.links(a, b) {
                bytes[link] += cut.bytes * 4.0 * pairs / (guests * guests);
            }
        }
    }
    standing.flows = bytes.into_iter().enumerate().filter(|&(_, bytes)| bytes > 0.0).collect();
    standing
}

fn add(load: &mut [f64], standing: &Standing, sign: f64) {
    for &(link, bytes) in &standing.flows {
        load[link] += sign * bytes;
    }
}

fn loss(cut: &Cut, standing: &Standing, load: &[f64], wan: &Wan) -> f64 {
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
    let alone = Cut { bytes: each.fold(0.0, f64::max), ..*cut };
    alone.loss(Path { latency: standing.latency, bandwidth: 1.0, window: wan.window() })
}

/// What every program loses where it runs now, all sharing the WAN.
pub fn losses_now(board: &Board<'_>, cuts: &[Cut]) -> Vec<f64> {
    let each = cuts.iter().enumerate();
    Ledger::of(board, each.map(|(index, cut)| standing(board, cut, board.now(index))).collect())
        .losses(cuts, board.wan())
}

/// The standings of all programs, and what they make of the WAN.
#[derive(Debug, Clone)]
pub struct Ledger {
    standings: Vec<Standing>,
    load: Vec<f64>,
}

impl Ledger {
    fn of(board: &Board<'_>, standings: Vec<Standing>) -> Ledger {
        let mut load = vec![0.0; board.wan().bandwidth().len()];
        for standing in &standings {
            add(&mut load, standing, 1.0);
        }
        Ledger { standings, load }
    }

    fn losses(&self, cuts: &[Cut], wan: &Wan) -> Vec<f64> {
        let each = cuts.iter().zip(&self.standings);
        each.map(|(cut, standing)| loss(cut, standing, &self.load, wan)).collect()
    }
}

/// Guests that move, and the seconds that copying their memory takes, one after another: over the narrowest link
/// of the way, or the interface of a host of the site; infinite where memory is rewritten faster than copied.
pub fn copying(program: &Program, now: &Seats, then: &Seats, board: &Board<'_>) -> (u32, f64) {
    let at =
        |seats: &Seats, node| seats.iter().find(|seat| seat.0 == node).map_or(0, |seat| seat.1);
    let more = |from: &Seats, than: &Seats| -> Vec<u32> {
        let each = from.iter().map(|&(node, guests)| (node, guests.saturating_sub(at(than, node))));
        each.flat_map(|(node, guests)| std::iter::repeat_n(node, guests as usize)).collect()
    };
    let (mut leaving, mut coming) = (more(now, then), more(then, now));
    // Nodes are numbered site by site: those that stay on a site are matched first.
    let mut seconds = 0.0;
    let mut moves = 0;
    let mut copy = |from: u32, to: u32| {
        let (a, b) = (board.site(from), board.site(to));
        let rate = board.wan().narrowest(a, b).min(board.fabric().kind(from).nic_bandwidth)
            - program.dirty;
        moves += 1;
        seconds += if rate > 0.0 { program.memory as f64 / rate } else { f64::INFINITY };
    };
    leaving.retain(|&from| {
        let mate = coming.iter().position(|&to| board.site(to) == board.site(from));
        mate.map(|mate| copy(from, coming.remove(mate))).is_none()
    });
    for (from, to) in leaving.into_iter().zip(coming) {
        copy(from, to);
    }
    (moves, seconds)
}

/// How choices are judged: the programs' cuts a second of a run on one site, the terms, what they lose now.
#[derive(Debug, Clone)]
pub struct Worth<'a> {
    /// Of every program.
    pub cuts: &'a [Cut],
    terms: &'a Terms,
    lost_now: Vec<f64>,
}

impl<'a> Worth<'a> {
    /// For the programs of a board.
    pub fn new(board: &Board<'_>, cuts: &'a [Cut], terms: &'a Terms) -> Worth<'a> {
        Worth { cuts, terms, lost_now: losses_now(board, cuts) }
    }

    /// The standings of all programs as the board has them.
    pub fn ledger(&self, board: &Board<'_>) -> Ledger {
        let programs = 0..self.cuts.len();
        Ledger::of(board, programs.map(|p| self.standing(board, p, board.seats(p))).collect())
    }

    fn standing(&self, board: &Board<'_>, program: usize, seats: &Seats) -> Standing {
        let moving = self.moving(board, program, seats);
        Standing { moving, ..standing(board, &self.cuts[program], seats) }
    }

    /// What every program loses as the ledger has it.
    pub fn losses(&self, board: &Board<'_>, ledger: &Ledger) -> Vec<f64> {
        ledger.losses(self.cuts, board.wan())
    }

    /// The time that all guests of all programs lose from now on, guest-seconds, moves included at what
    /// they must bring, if some programs of the ledger had these seats instead. Programs that are not placed
    /// count nothing: no choice may leave one out.
    pub fn price(&self, board: &Board<'_>, ledger: &Ledger, instead: &[(usize, Seats)]) -> f64 {
        let new = instead.iter().map(|(p, seats)| (*p, self.standing(board, *p, seats)));
        let new: Vec<(usize, Standing)> = new.collect();
        let mut load = ledger.load.clone();
        for (program, standing) in &new {
            add(&mut load, &ledger.standings[*program], -1.0);
            add(&mut load, standing, 1.0);
        }
        let mut price = 0.0;
        for (index, (program, cut)) in board.programs().iter().zip(self.cuts).enumerate() {
            let other = new.iter().find(|(changed, _)| *changed == index);
            let standing = other.map_or(&ledger.standings[index], |(_, standing)| standing);
            let lost = program.remaining * loss(cut, standing, &load, board.wan());
            price += f64::from(program.guests) * (lost + standing.moving);
        }
        price
    }

    /// The seconds that moving a program to these seats must bring.
    fn moving(&self, board: &Board<'_>, index: usize, seats: &Seats) -> f64 {
        let program = &board.programs()[index];
        if seats == board.now(index) || board.now(index).is_empty() {
            return 0.0;
        }
        if program.settled < self.terms.rest {
            return f64::INFINITY;
        }
        let (_, seconds) = copying(program, board.now(index), seats, board);
        let least = self.terms.least + self.terms.doubt * self.lost_now[index];
        self.terms.margin * self.terms.drag * seconds + least * program.remaining
    }

    /// The board's choice, program by program.
    pub fn judge(&self, board: &Board<'_>) -> Vec<Judgement> {
        let then = self.losses(board, &self.ledger(board));
        let each = board.programs().iter().enumerate();
        each.map(|(index, program)| {
            let arrives = board.now(index).is_empty() || board.seats(index).is_empty();
            let copied = || copying(program, board.now(index), board.seats(index), board);
            let (moves, seconds) = if arrives { (0, 0.0) } else { copied() };
            Judgement {
                loss_now: self.lost_now[index],
                loss_then: then[index],
                gain: (self.lost_now[index] - then[index]) * program.remaining,
                cost: self.terms.drag * seconds,
                moves,
            }
        })
        .collect()
    }
}
