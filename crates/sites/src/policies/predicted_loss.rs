use crate::arrangement::{Arrangement, Seats};
use crate::policy::SitePolicy;
use crate::predict::Path;
use crate::standing::Ledger;
use crate::worth::Worth;

/// Ours: the least time lost over all programs, predicted from turns, bytes and the busiest connection, with moves
/// at what they must bring. Found by steps, each the best for one program: it goes to a site as a whole, alone
/// or in exchange for another program there, or fills sites in another order, or stays and is divided better. From two starts, where everybody runs
/// now and where the rule of 2007 would put them; the cheaper end is taken, so it is never dearer than staying.
#[derive(Debug, Clone, Copy, Default)]
pub struct PredictedLoss;

/// Boards that may be priced from each start.
const MOST_PRICED: usize = 3_000;

impl SitePolicy for PredictedLoss {
    fn name(&self) -> &'static str {
        "predicted-loss"
    }

    fn choose(&self, arrangement: &mut Arrangement<'_>, worth: &Worth<'_>) {
        let mut gathered = arrangement.clone();
        super::InterSiteTraffic.choose(&mut gathered, worth);
        let mut search = Search { worth, left: MOST_PRICED };
        search.arrivals(arrangement);
        let price = search.descend(arrangement);
        search.left = MOST_PRICED;
        let placed = |arrangement: &Arrangement<'_>| {
            (0..arrangement.programs().len()).filter(|&p| !arrangement.seats(p).is_empty()).count()
        };
        if placed(&gathered) >= placed(arrangement) && search.descend(&mut gathered) < price {
            *arrangement = gathered;
        }
        for program in 0..arrangement.programs().len() {
            if worth.rearranging_pays(arrangement, program) {
                arrangement.rearrange(program);
            }
        }
    }
}

struct Search<'a> {
    worth: &'a Worth<'a>,
    left: usize,
}

/// Programs with new seats.
type Step = Vec<(usize, Seats)>;

impl Search<'_> {
    /// Who arrives takes the cheapest place there is, one after another.
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

    /// Steps until none makes the arrangement cheaper; answers with its price.
    fn descend(&mut self, arrangement: &mut Arrangement<'_>) -> f64 {
        let mut ledger = self.worth.ledger(arrangement);
        let mut price = self.worth.price(arrangement, &ledger, &[]);
        loop {
            let before = price;
            for program in losers(arrangement, &ledger) {
                let mut steps = alone(arrangement, program);
                steps.extend(exchanges(arrangement, program));
                if let Some((cheaper, step)) = self.best(arrangement, &ledger, steps)
                    && cheaper < price * (1.0 - 1e-9)
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

    /// The cheapest of the boards that these steps lead to.
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

/// Programs that lose time, those that lose most of it first.
fn losers(arrangement: &Arrangement<'_>, ledger: &Ledger) -> Vec<usize> {
    let programs = arrangement.programs();
    let losses = ledger.losses(arrangement.wan());
    let lost = |p: usize| losses[p] * f64::from(programs[p].guests) * programs[p].remaining;
    let mut losers: Vec<usize> = (0..programs.len()).filter(|&p| losses[p] > 0.0).collect();
    losers.sort_by(|&a, &b| lost(b).total_cmp(&lost(a)));
    losers
}

/// Makes a step.
fn make(arrangement: &mut Arrangement<'_>, step: Step) {
    for (program, _) in &step {
        arrangement.lift(*program);
    }
    for (program, seats) in step {
        arrangement.put(program, seats);
    }
}

/// A program on every site as a whole, and filling the sites from every one of them outwards; if none holds it,
/// also divided over every two where that costs least.
fn alone(arrangement: &mut Arrangement<'_>, program: usize) -> Vec<Step> {
    let back = arrangement.lift(program);
    let sites = arrangement.allowed(program);
    let mut found: Vec<Seats> =
        sites.iter().filter_map(|&site| arrangement.whole(program, site)).collect();
    if found.is_empty() {
        let pairs = sites.iter().flat_map(|&a| sites.iter().map(move |&b| (a, b)));
        found.extend(
            pairs.filter(|(a, b)| a != b).filter_map(|(a, b)| divided(arrangement, program, a, b)),
        );
    }
    found.extend(
        sites
            .iter()
            .filter_map(|&site| arrangement.filled(program, &outwards(arrangement, program, site))),
    );
    arrangement.put(program, back);
    found.dedup();
    found.into_iter().map(|seats| vec![(program, seats)]).collect()
}

/// Of all divisions over two sites that fit the one that loses least on the way between them alone.
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

/// A program as a whole on every site where one other program gives way to it.
fn exchanges(arrangement: &mut Arrangement<'_>, program: usize) -> Vec<Step> {
    let back = arrangement.lift(program);
    let mut found = Vec::new();
    for site in arrangement.allowed(program) {
        if arrangement.whole(program, site).is_none() {
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

/// The steps in which `program`, now off the arrangement, gets a site that `other` leaves.
fn exchange(
    arrangement: &mut Arrangement<'_>,
    program: usize,
    other: usize,
    site: usize,
    found: &mut Vec<Step>,
) {
    let back = arrangement.lift(other);
    if let Some(whole) = arrangement.whole(program, site) {
        arrangement.put(program, whole.clone());
        for to in arrangement.allowed(other) {
            let seats = arrangement
                .whole(other, to)
                .or_else(|| arrangement.filled(other, &outwards(arrangement, other, to)));
            found.extend(seats.map(|seats| vec![(program, whole.clone()), (other, seats)]));
        }
        arrangement.lift(program);
    }
    arrangement.put(other, back);
}

/// The sites a program may use, nearest first.
fn outwards(arrangement: &Arrangement<'_>, program: usize, from: usize) -> Vec<usize> {
    let mut sites = arrangement.allowed(program);
    sites.sort_by(|&a, &b| {
        arrangement.wan().latency(from, a).total_cmp(&arrangement.wan().latency(from, b))
    });
    sites
}
