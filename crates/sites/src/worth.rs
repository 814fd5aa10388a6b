//! The value of a choice of hosts: time lost to the WAN and to slow processors, and the cost of moving.

use super::Program;
use super::arrangement::{Arrangement, Seats};
use super::copying::{copying, exchanging};
use super::standing::{Division, Ledger, Standing, add, standing};

/// The conditions for a move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// The gain of a move must be at least this factor times its cost.
    pub margin: f64,
    /// The gain must be at least this share of the program's remaining time.
    pub least: f64,
    /// The gain must be at least this share of what the program loses now compared with one site of the fastest hosts.
    /// It reflects the doubt about measured rates.
    pub doubt: f64,
    /// Seconds for which a program is left alone after one of its guests was moved.
    pub rest: f64,
    /// The share of its speed that a program loses while a guest is copied.
    pub drag: f64,
}

impl Default for Terms {
    fn default() -> Self {
        Terms { margin: 1.5, least: 0.02, doubt: 0.2, rest: 300.0, drag: 0.3 }
    }
}

/// The evaluation of a choice for one program.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Judgement {
    /// How much longer a second of its run takes where it runs now, in seconds, compared with a run alone on one site
    /// on reference cores; negative on fast cores.
    pub loss_now: f64,
    /// The same as `loss_now`, for the chosen hosts.
    pub loss_then: f64,
    /// The part of `loss_now` due to the WAN.
    pub wan_now: f64,
    /// The part of `loss_then` due to the WAN.
    pub wan_then: f64,
    /// The speed of its slowest core where it runs now.
    pub speed_now: f64,
    /// The speed of its slowest core on the chosen hosts.
    pub speed_then: f64,
    /// Seconds of computing per second of its run alone; the rest is communication.
    pub compute: f64,
    /// The measured loss to the WAN divided by the predicted one; below 1 if it spends less time in MPI than predicted.
    pub correction: f64,
    /// Seconds of its remaining run that the choice saves; negative if it makes way for others.
    pub gain: f64,
    /// Seconds of its run that the moves cost.
    pub cost: f64,
    /// The number of guests that move.
    pub moves: u32,
}

/// Evaluates choices: by the terms, and by what programs lose now. The cuts of the arrangement's programs must be per
/// second of a run on one site.
#[derive(Debug, Clone)]
pub struct Worth<'a> {
    terms: &'a Terms,
    now: Ledger,
    /// What every program could gain on one site of the fastest hosts.
    lost: Vec<f64>,
}

impl<'a> Worth<'a> {
    /// Returns the evaluation for the programs of an arrangement.
    pub fn new(arrangement: &Arrangement<'_>, terms: &'a Terms) -> Worth<'a> {
        let now = Ledger::now(arrangement);
        let lost = lost(arrangement, &now);
        Worth { terms, now, lost }
    }

    /// The standings of all programs in the arrangement.
    pub fn ledger(&self, arrangement: &Arrangement<'_>) -> Ledger {
        let programs = 0..arrangement.programs().len();
        Ledger::of(
            arrangement,
            programs.map(|p| self.standing(arrangement, p, arrangement.seats(p))).collect(),
        )
    }

    /// The standing of a program on the given seats. If it stays, its guests are divided again over its sites if that
    /// pays.
    fn standing(&self, arrangement: &Arrangement<'_>, index: usize, seats: &Seats) -> Standing {
        let program = &arrangement.programs()[index];
        if seats != arrangement.now(index) {
            let moving = self.moving(arrangement, index, seats);
            return standing(arrangement, program, seats, Division::Best).moved(moving);
        }
        let division =
            if self.rearranging_pays(arrangement, index) { Division::Best } else { Division::Now };
        self.staying(arrangement, index, division)
    }

    fn staying(&self, arrangement: &Arrangement<'_>, index: usize, division: Division) -> Standing {
        let moving = match division {
            Division::Now => 0.0,
            Division::Best => self.must_bring(
                index,
                &arrangement.programs()[index],
                exchanging(arrangement, index),
            ),
        };
        standing(arrangement, &arrangement.programs()[index], arrangement.now(index), division)
            .moved(moving)
    }

    /// Whether dividing a program again over its current sites saves what moving its guests must save.
    pub fn rearranging_pays(&self, arrangement: &Arrangement<'_>, index: usize) -> bool {
        let program = &arrangement.programs()[index];
        if program.here.is_none() || program.exchange == 0 {
            return false;
        }
        let price = |division| {
            let standing = self.staying(arrangement, index, division);
            let moving = standing.moving;
            let alone = Ledger::of(arrangement, vec![standing]).losses(arrangement.wan());
            program.remaining * alone[0] + moving
        };
        price(Division::Best) < price(Division::Now)
    }

    /// The total time lost by all guests of all programs from now on, in guest-seconds, including what moves must save,
    /// if some programs of the ledger had the seats in `instead`. Programs that are not placed count nothing, so no
    /// choice may leave one unplaced.
    pub fn price(
        &self,
        arrangement: &Arrangement<'_>,
        ledger: &Ledger,
        instead: &[(usize, Seats)],
    ) -> f64 {
        let new = instead.iter().map(|(p, seats)| (*p, self.standing(arrangement, *p, seats)));
        let new: Vec<(usize, Standing)> = new.collect();
        let mut load = ledger.load.clone();
        for (program, standing) in &new {
            add(&mut load, &ledger.standings[*program], -1.0);
            add(&mut load, standing, 1.0);
        }
        let mut price = 0.0;
        for (index, program) in arrangement.programs().iter().enumerate() {
            let other = new.iter().find(|(changed, _)| *changed == index);
            let standing = other.map_or(&ledger.standings[index], |(_, standing)| standing);
            let lost = program.remaining * standing.loss(&load, arrangement.wan());
            price += f64::from(program.guests) * (lost + standing.moving);
        }
        price
    }

    /// The seconds that moving a program to other seats must save.
    fn moving(&self, arrangement: &Arrangement<'_>, index: usize, seats: &Seats) -> f64 {
        let now = arrangement.now(index);
        if now.is_empty() {
            return 0.0;
        }
        let program = &arrangement.programs()[index];
        self.must_bring(index, program, copying(program, now, seats, arrangement).1)
    }

    fn must_bring(&self, index: usize, program: &Program, seconds: f64) -> f64 {
        if program.settled < self.terms.rest {
            return f64::INFINITY;
        }
        let least = self.terms.least + self.terms.doubt * self.lost[index];
        self.terms.margin * self.terms.drag * seconds + least * program.remaining
    }

    /// Evaluates the arrangement's choice for each program.
    pub fn judge(&self, arrangement: &Arrangement<'_>) -> Vec<Judgement> {
        let programs = arrangement.programs();
        let division =
            |p| if arrangement.is_rearranged(p) { Division::Best } else { Division::Now };
        let as_it_is = |p| standing(arrangement, &programs[p], arrangement.now(p), division(p));
        let chosen = |p| {
            if arrangement.seats(p) == arrangement.now(p) {
                as_it_is(p)
            } else {
                standing(arrangement, &programs[p], arrangement.seats(p), Division::Best)
            }
        };
        let wan = arrangement.wan();
        let then = Ledger::of(arrangement, (0..programs.len()).map(chosen).collect());
        let (loss_now, loss_then) = (self.now.losses(wan), then.losses(wan));
        let (wan_now, wan_then) = (self.now.losses_to_wan(wan), then.losses_to_wan(wan));
        let each = programs.iter().enumerate();
        each.map(|(index, program)| {
            let (now, seats) = (arrangement.now(index), arrangement.seats(index));
            let (moves, seconds) = if arrangement.is_rearranged(index) {
                (program.exchange, exchanging(arrangement, index))
            } else if now.is_empty() || seats.is_empty() {
                (0, 0.0)
            } else {
                copying(program, now, seats, arrangement)
            };
            Judgement {
                loss_now: loss_now[index],
                loss_then: loss_then[index],
                wan_now: wan_now[index],
                wan_then: wan_then[index],
                speed_now: arrangement.slowest(now),
                speed_then: arrangement.slowest(seats),
                compute: program.compute,
                correction: program.correction.unwrap_or(1.0),
                gain: (loss_now[index] - loss_then[index]) * program.remaining,
                cost: self.terms.drag * seconds,
                moves,
            }
        })
        .collect()
    }
}

/// What every program of a ledger loses compared with one site of the fastest hosts.
pub fn lost(arrangement: &Arrangement<'_>, ledger: &Ledger) -> Vec<f64> {
    let (_, fastest) = arrangement.speeds();
    let each = arrangement.programs().iter().zip(ledger.losses(arrangement.wan()));
    each.map(|(program, loss)| (loss - program.slower(fastest)).max(0.0)).collect()
}
