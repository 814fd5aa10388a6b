use crate::arrangement::{Arrangement, Seats};
use crate::policy::SitePolicy;
use crate::predict::Path;
use crate::standing::Ledger;
use crate::worth::{Worth, lost};

/// Our policy: minimises the predicted time lost over all programs, to the WAN (from turns, bytes and the busiest
/// connection) and to slow processors, including the cost of moves.
///
/// It searches in steps, each the best step for one program. The program goes to one site as a whole; or fills sites in
/// another order, on any hosts or the fastest; or leaves its slowest hosts; or stays and is divided better; or another
/// program makes way for it. It starts from where the programs run now, and from where the other policies would put
/// them. It takes the cheapest result, so it is never worse than no move at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct PredictedTime;

/// The most arrangements that are priced from each start.
const MOST_PRICED: usize = 3_000;
/// A host counts as faster than another if its speed is more than this factor higher, because speeds are measured.
const FASTER: f64 = 1.01;
/// The most programs with which a program on slow hosts tries to exchange hosts.
const MOST_ASKED: usize = 8;

impl SitePolicy for PredictedTime {
    fn name(&self) -> &'static str {
        "predicted-time"
    }

    fn choose(&self, arrangement: &mut Arrangement<'_>, worth: &Worth<'_>) {
        let others: &[&dyn SitePolicy] = if speeds_matter(arrangement) {
            &[&super::InterSiteTraffic, &super::Paper, &super::Processors]
        } else {
            &[&super::InterSiteTraffic]
        };
        let starts: Vec<Arrangement<'_>> =
            others.iter().map(|rule| started(*rule, arrangement, worth)).collect();
        let mut search = SiteSearch { worth, left: MOST_PRICED };
        search.arrivals(arrangement);
        let mut price = search.descend(arrangement);
        let placed = |arrangement: &Arrangement<'_>| {
            (0..arrangement.programs().len()).filter(|&p| !arrangement.seats(p).is_empty()).count()
        };
        let least = placed(arrangement);
        for mut start in starts.into_iter().filter(|start| placed(start) >= least) {
            search.left = MOST_PRICED;
            let cheaper = search.descend(&mut start);
            if cheaper < price {
                (price, *arrangement) = (cheaper, start);
            }
        }
        for program in 0..arrangement.programs().len() {
            if worth.rearranging_pays(arrangement, program) {
                arrangement.rearrange(program);
            }
        }
    }
}

/// Returns where another policy puts the programs.
fn started<'a>(
    rule: &dyn SitePolicy,
    arrangement: &Arrangement<'a>,
    worth: &Worth<'_>,
) -> Arrangement<'a> {
    let mut start = arrangement.clone();
    rule.choose(&mut start, worth);
    start
}

/// Whether some program computes and hosts have different speeds.
fn speeds_matter(arrangement: &Arrangement<'_>) -> bool {
    let (slowest, fastest) = arrangement.speeds();
    fastest > slowest * FASTER && arrangement.programs().iter().any(|one| one.compute > 0.0)
}

struct SiteSearch<'a> {
    worth: &'a Worth<'a>,
    left: usize,
}

/// Programs and their new seats.
type Step = Vec<(usize, Seats)>;

impl SiteSearch<'_> {
    /// Places new programs one after another, each where it costs least.
    fn arrivals(&mut self, arrangement: &mut Arrangement<'_>) {
        for program in 0..arrangement.programs().len() {
            if arrangement.now(program).is_empty() {
                let steps = alone(arrangement, program);
                if let Some((_, step)) =
                    self.best(arrangement, &self.worth.ledger(arrangement), steps)
                {
                    make(arrangement, step);
                }
            }
        }
    }

    /// Makes steps until none reduces the cost. Returns the final cost.
    fn descend(&mut self, arrangement: &mut Arrangement<'_>) -> f64 {
        let mut ledger = self.worth.ledger(arrangement);
        let mut price = self.worth.price(arrangement, &ledger, &[]);
        loop {
            let before = price;
            for program in losers(arrangement, &ledger) {
                let mut steps = alone(arrangement, program);
                steps.extend(exchanges(arrangement, program));
                if speeds_matter(arrangement) {
                    steps.extend(quicker_hosts(arrangement, program));
                }
                if let Some((cheaper, step)) = self.best(arrangement, &ledger, steps)
                    && cheaper < price - price.abs() * 1e-9
                {
                    make(arrangement, step);
                    ledger = self.worth.ledger(arrangement);
                    price = cheaper;
                }
            }
            if price >= before || self.left == 0 {
                return price;
            }
        }
    }

    /// The cheapest of the arrangements to which these steps lead.
    fn best(
        &mut self,
        arrangement: &Arrangement<'_>,
        ledger: &Ledger,
        mut steps: Vec<Step>,
    ) -> Option<(f64, Step)> {
        steps.truncate(self.left);
        self.left -= steps.len();
        let priced =
            steps.into_iter().map(|step| (self.worth.price(arrangement, ledger, &step), step));
        priced.min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// Programs that lose time compared with one site of the fastest hosts, the largest loss first.
fn losers(arrangement: &Arrangement<'_>, ledger: &Ledger) -> Vec<usize> {
    let programs = arrangement.programs();
    let losses = lost(arrangement, ledger);
    let lost = |p: usize| losses[p] * f64::from(programs[p].guests) * programs[p].remaining;
    let mut losers: Vec<usize> = (0..programs.len()).filter(|&p| losses[p] > 0.0).collect();
    losers.sort_by(|&a, &b| lost(b).total_cmp(&lost(a)));
    losers
}

/// Applies a step.
fn make(arrangement: &mut Arrangement<'_>, step: Step) {
    for (program, _) in &step {
        arrangement.lift(*program);
    }
    for (program, seats) in step {
        arrangement.put(program, seats);
    }
}

/// The steps that move one program: onto each site as a whole; filling sites from each one outwards, on any hosts and
/// on the fastest; leaving its slowest hosts. If no site can hold it, also divided over every two sites where that
/// costs least.
fn alone(arrangement: &mut Arrangement<'_>, program: usize) -> Vec<Step> {
    let slowest = arrangement.slowest(arrangement.seats(program));
    let back = arrangement.lift(program);
    let sites = arrangement.allowed(program);
    let mut found: Vec<Seats> =
        sites.iter().filter_map(|&site| arrangement.whole(program, site, 0.0)).collect();
    if found.is_empty() {
        let pairs = sites.iter().flat_map(|&a| sites.iter().map(move |&b| (a, b)));
        found.extend(
            pairs.filter(|(a, b)| a != b).filter_map(|(a, b)| divided(arrangement, program, a, b)),
        );
    }
    found.extend(sites.iter().filter_map(|&site| {
        arrangement.filled(program, &outwards(arrangement, program, site), 0.0)
    }));
    if speeds_matter(arrangement) && arrangement.programs()[program].compute > 0.0 {
        found.extend(quicker(arrangement, program, &sites, slowest));
    }
    arrangement.put(program, back);
    found.dedup();
    found.into_iter().map(|seats| vec![(program, seats)]).collect()
}

/// Faster hosts for a program that is not placed: the fastest of every site; the fastest of all, with most of them on
/// one site; and others only in place of its slowest.
fn quicker(
    arrangement: &Arrangement<'_>,
    program: usize,
    sites: &[usize],
    slowest: f64,
) -> Vec<Seats> {
    let fastest = |sites: &[usize]| {
        arrangement.fastest(program, sites).filter(|&least| least > slowest * FASTER)
    };
    let mut found = Vec::new();
    for &site in sites {
        found.extend(
            fastest(&[site]).and_then(|least| arrangement.whole(program, site, least / FASTER)),
        );
    }
    if let Some(least) = fastest(sites) {
        for &site in sites {
            let order = outwards(arrangement, program, site);
            found.extend(arrangement.filled(program, &order, least / FASTER));
        }
        found.extend(arrangement.quickened(program, least / FASTER));
        found.extend(arrangement.quickened(program, slowest * FASTER));
    }
    found
}

/// Steps in which a program takes faster hosts from another one, which then gets free hosts near its own place or near
/// the first program's.
fn quicker_hosts(arrangement: &mut Arrangement<'_>, program: usize) -> Vec<Step> {
    if arrangement.programs()[program].compute <= 0.0 {
        return Vec::new();
    }
    let slowest = arrangement.slowest(arrangement.seats(program));
    let others = asked(arrangement, program, slowest);
    let back = arrangement.lift(program);
    let here = first_site(arrangement, &back);
    let mut found = Vec::new();
    for other in others {
        let theirs = arrangement.lift(other);
        let there = first_site(arrangement, &theirs);
        let order = outwards(arrangement, program, there);
        let least = arrangement.fastest(program, &order).filter(|&least| least > slowest * FASTER);
        let taken = [
            least.and_then(|least| arrangement.filled(program, &order, least / FASTER)),
            arrangement.quickened(program, slowest * FASTER),
        ];
        for seats in taken.into_iter().flatten() {
            arrangement.put(program, seats.clone());
            for from in [there, here] {
                let seat = arrangement.filled(other, &outwards(arrangement, other, from), 0.0);
                found.extend(seat.map(|seat| vec![(program, seats.clone()), (other, seat)]));
            }
            arrangement.lift(program);
        }
        arrangement.put(other, theirs);
    }
    arrangement.put(program, back);
    found.dedup();
    found
}

/// Programs on faster hosts, ordered by how little slower hosts would hurt their computing.
fn asked(arrangement: &Arrangement<'_>, program: usize, slowest: f64) -> Vec<usize> {
    let programs = arrangement.programs();
    let hurt = |other: usize| {
        let one = &programs[other];
        one.compute * one.remaining * f64::from(one.guests)
    };
    let has_faster = |&other: &usize| {
        let seats = arrangement.seats(other);
        other != program
            && arrangement.quickest(seats) > slowest * FASTER
            && hurt(other) < hurt(program)
    };
    let mut others: Vec<usize> = (0..programs.len()).filter(has_faster).collect();
    others.sort_by(|&a, &b| hurt(a).total_cmp(&hurt(b)));
    others.truncate(MOST_ASKED);
    others
}

/// The site of the first of these seats; the first site if there are none.
fn first_site(arrangement: &Arrangement<'_>, seats: &Seats) -> usize {
    seats.first().map_or(0, |&(node, _)| arrangement.site(node))
}

/// The division over two sites that fits and loses least on the route between them, considering nothing else.
fn divided(arrangement: &Arrangement<'_>, program: usize, a: usize, b: usize) -> Option<Seats> {
    let guests = arrangement.programs()[program].guests;
    let (first, second) = (arrangement.free_slots(program, a), arrangement.free_slots(program, b));
    let path = Path {
        latency: arrangement.wan().latency(a, b),
        bandwidth: arrangement.wan().narrowest(a, b),
        window: arrangement.wan().window(),
    };
    let fits = (1..guests).filter(|&here| here <= first && guests - here <= second);
    let loss = |here: u32| arrangement.programs()[program].apart(here).loss(path);
    let best = fits.min_by(|&x, &y| loss(x).total_cmp(&loss(y)))?;
    arrangement.divided(program, &[(a, best), (b, guests - best)])
}

/// Steps that put a program as a whole onto a site where one other program makes way for it.
fn exchanges(arrangement: &mut Arrangement<'_>, program: usize) -> Vec<Step> {
    let back = arrangement.lift(program);
    let mut found = Vec::new();
    for site in arrangement.allowed(program) {
        if arrangement.whole(program, site, 0.0).is_none() {
            for other in 0..arrangement.programs().len() {
                let there = arrangement.spread(arrangement.seats(other))[site] > 0;
                if other != program && there {
                    exchange(arrangement, program, other, site, &mut found);
                }
            }
        }
    }
    arrangement.put(program, back);
    found
}

/// The steps in which `program`, which is not placed, gets a site that `other` leaves.
fn exchange(
    arrangement: &mut Arrangement<'_>,
    program: usize,
    other: usize,
    site: usize,
    found: &mut Vec<Step>,
) {
    let back = arrangement.lift(other);
    if let Some(whole) = arrangement.whole(program, site, 0.0) {
        arrangement.put(program, whole.clone());
        for to in arrangement.allowed(other) {
            let seats = arrangement
                .whole(other, to, 0.0)
                .or_else(|| arrangement.filled(other, &outwards(arrangement, other, to), 0.0));
            found.extend(seats.map(|seats| vec![(program, whole.clone()), (other, seats)]));
        }
        arrangement.lift(program);
    }
    arrangement.put(other, back);
}

/// The sites that a program may use, the nearest first.
fn outwards(arrangement: &Arrangement<'_>, program: usize, from: usize) -> Vec<usize> {
    let mut sites = arrangement.allowed(program);
    sites.sort_by(|&a, &b| {
        arrangement.wan().latency(from, a).total_cmp(&arrangement.wan().latency(from, b))
    });
    sites
}
