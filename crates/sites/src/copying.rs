//! The time that moving guests takes.

use super::Program;
use super::arrangement::{Arrangement, Seats};

/// The number of guests that move, and the seconds that copying their memory takes, one after another. A copy uses the
/// narrowest link of the route or, within a site, a host's interface. Infinite if memory is rewritten faster than it
/// can be copied.
pub fn copying(
    program: &Program,
    now: &Seats,
    then: &Seats,
    arrangement: &Arrangement<'_>,
) -> (u32, f64) {
    let at =
        |seats: &Seats, node| seats.iter().find(|seat| seat.0 == node).map_or(0, |seat| seat.1);
    let more = |from: &Seats, than: &Seats| -> Vec<u32> {
        let each = from.iter().map(|&(node, guests)| (node, guests.saturating_sub(at(than, node))));
        each.flat_map(|(node, guests)| std::iter::repeat_n(node, guests as usize)).collect()
    };
    let (mut leaving, mut coming) = (more(now, then), more(then, now));
    // Nodes are numbered site by site; guests that stay on a site are matched first.
    let mut total = 0.0;
    let mut moves = 0;
    let mut copy = |from: u32, to: u32| {
        let (a, b) = (arrangement.site(from), arrangement.site(to));
        let rate =
            arrangement.wan().narrowest(a, b).min(arrangement.fabric().kind(from).nic_bandwidth);
        moves += 1;
        total += seconds(program, rate);
    };
    leaving.retain(|&from| {
        let mate = coming.iter().position(|&to| arrangement.site(to) == arrangement.site(from));
        mate.map(|mate| copy(from, coming.remove(mate))).is_none()
    });
    for (from, to) in leaving.into_iter().zip(coming) {
        copy(from, to);
    }
    (moves, total)
}

/// The seconds to copy one guest at `rate` bytes per second, taking rewritten memory into account.
fn seconds(program: &Program, rate: f64) -> f64 {
    let rate = rate - program.dirty;
    if rate > 0.0 { program.guest.memory() as f64 / rate } else { f64::INFINITY }
}

/// The seconds of copying if guests exchange places between the program's sites, assuming the slowest route for all.
pub fn exchanging(arrangement: &Arrangement<'_>, index: usize) -> f64 {
    let program = &arrangement.programs()[index];
    let spread = arrangement.spread(arrangement.now(index));
    let used: Vec<usize> = (0..spread.len()).filter(|&site| spread[site] > 0).collect();
    let ways = used.iter().flat_map(|&a| used.iter().map(move |&b| (a, b)));
    let rate = ways.map(|(a, b)| arrangement.wan().narrowest(a, b)).fold(f64::INFINITY, f64::min);
    f64::from(program.exchange) * seconds(program, rate)
}
