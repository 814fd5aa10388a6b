//! Code for policies that place all programs again, one after another, regardless of the cost of moving.

use std::cmp::Reverse;

use crate::arrangement::{Arrangement, Seats};
use crate::policy::SitePolicy;
use crate::worth::Worth;

/// The programs sorted by a number, the largest first.
pub fn descending(programs: usize, figure: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..programs).collect();
    order.sort_by(|&a, &b| figure(b).total_cmp(&figure(a)));
    order
}

/// Places the programs in this order, each where `place` says; if that fails, where it runs now, or spread. If a
/// running program then cannot be placed, no program moves.
pub fn place_all(
    arrangement: &mut Arrangement<'_>,
    worth: &Worth<'_>,
    order: &[usize],
    place: impl Fn(&Arrangement<'_>, usize) -> Option<Seats>,
) {
    let before = arrangement.clone();
    for &program in order {
        arrangement.lift(program);
    }
    for &program in order {
        let spread = || {
            let sites = fullest_first(arrangement, program);
            arrangement.again(program).or_else(|| arrangement.filled(program, &sites, 0.0))
        };
        let seats = place(arrangement, program).or_else(spread).unwrap_or_default();
        if seats.is_empty() && !arrangement.now(program).is_empty() {
            *arrangement = before;
            return super::Stay.choose(arrangement, worth);
        }
        arrangement.put(program, seats);
    }
}

/// Seats on a single site that can hold the program; the site with most of its guests now is preferred.
pub fn gathered(arrangement: &Arrangement<'_>, program: usize) -> Option<Seats> {
    let mut sites = fullest_first(arrangement, program).into_iter();
    sites.find_map(|site| arrangement.whole(program, site, 0.0))
}

/// Seats on the fastest hosts of any site; the current ones if they are equally fast.
pub fn quickest(arrangement: &Arrangement<'_>, program: usize) -> Option<Seats> {
    let sites = fullest_first(arrangement, program);
    let least = arrangement.fastest(program, &sites)?;
    let stays = arrangement.again(program).filter(|seats| arrangement.slowest(seats) >= least);
    stays.or_else(|| arrangement.filled(program, &sites, least))
}

/// The sites that a program may use; the one with most of its guests now comes first.
fn fullest_first(arrangement: &Arrangement<'_>, program: usize) -> Vec<usize> {
    let here = arrangement.spread(arrangement.now(program));
    let mut sites = arrangement.allowed(program);
    sites.sort_by_key(|&site| Reverse(here[site]));
    sites
}
