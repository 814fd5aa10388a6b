use crate::sites::board::{Board, Seats};
use crate::sites::policy::SitePolicy;
use crate::sites::predict::Path;
use crate::sites::standing::Ledger;
use crate::sites::worth::Worth;

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

    fn choose(&self, board: &mut Board<'_>, worth: &Worth<'_>) {
        let mut gathered = board.clone();
        super::InterSiteTraffic.choose(&mut gathered, worth);
        let mut search = Search { worth, left: MOST_PRICED };
        search.arrivals(board);
        let price = search.descend(board);
        search.left = MOST_PRICED;
        let placed = |board: &Board<'_>| {
            (0..board.programs().len()).filter(|&p| !board.seats(p).is_empty()).count()
        };
        if placed(&gathered) >= placed(board) && search.descend(&mut gathered) < price {
            *board = gathered;
        }
        for program in 0..board.programs().len() {
            if worth.rearranging_pays(board, program) {
                board.rearrange(program);
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
    fn arrivals(&mut self, board: &mut Board<'_>) {
        for program in 0..board.programs().len() {
            if board.now(program).is_empty() {
                let steps = alone(board, program);
                if let Some((_, step)) = self.best(board, &self.worth.ledger(board), steps) {
                    make(board, step);
                }
            }
        }
    }

    /// Steps until none makes the board cheaper; answers with its price.
    fn descend(&mut self, board: &mut Board<'_>) -> f64 {
        let mut ledger = self.worth.ledger(board);
        let mut price = self.worth.price(board, &ledger, &[]);
        loop {
            let before = price;
            for program in losers(board, &ledger) {
                let mut steps = alone(board, program);
                steps.extend(exchanges(board, program));
                if let Some((cheaper, step)) = self.best(board, &ledger, steps)
                    && cheaper < price * (1.0 - 1e-9)
                {
                    make(board, step);
                    ledger = self.worth.ledger(board);
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
        board: &Board<'_>,
        ledger: &Ledger,
        mut steps: Vec<Step>,
    ) -> Option<(f64, Step)> {
        steps.truncate(self.left);
        self.left -= steps.len();
        let priced = steps.into_iter().map(|step| (self.worth.price(board, ledger, &step), step));
        priced.min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// Programs that lose time, those that lose most of it first.
fn losers(board: &Board<'_>, ledger: &Ledger) -> Vec<usize> {
    let programs = board.programs();
    let losses = ledger.losses(board.wan());
    let lost = |p: usize| losses[p] * f64::from(programs[p].guests) * programs[p].remaining;
    let mut losers: Vec<usize> = (0..programs.len()).filter(|&p| losses[p] > 0.0).collect();
    losers.sort_by(|&a, &b| lost(b).total_cmp(&lost(a)));
    losers
}

/// Makes a step.
fn make(board: &mut Board<'_>, step: Step) {
    for (program, _) in &step {
        board.lift(*program);
    }
    for (program, seats) in step {
        board.put(program, seats);
    }
}

/// A program on every site as a whole, and filling the sites from every one of them outwards; if none holds it,
/// also divided over every two where that costs least.
fn alone(board: &mut Board<'_>, program: usize) -> Vec<Step> {
    let back = board.lift(program);
    let sites = board.allowed(program);
    let mut found: Vec<Seats> =
        sites.iter().filter_map(|&site| board.whole(program, site)).collect();
    if found.is_empty() {
        let pairs = sites.iter().flat_map(|&a| sites.iter().map(move |&b| (a, b)));
        found.extend(
            pairs.filter(|(a, b)| a != b).filter_map(|(a, b)| divided(board, program, a, b)),
        );
    }
    found.extend(
        sites.iter().filter_map(|&site| board.filled(program, &outwards(board, program, site))),
    );
    board.put(program, back);
    found.dedup();
    found.into_iter().map(|seats| vec![(program, seats)]).collect()
}

/// Of all divisions over two sites that fit the one that loses least on the way between them alone.
fn divided(board: &Board<'_>, program: usize, a: usize, b: usize) -> Option<Seats> {
    let guests = board.programs()[program].guests;
    let (first, second) = (board.free_slots(program, a), board.free_slots(program, b));
    let path = Path {
        latency: board.wan().latency(a, b),
        bandwidth: board.wan().narrowest(a, b),
        window: board.wan().window(),
    };
    let fits = (1..guests).filter(|&here| here <= first && guests - here <= second);
    let loss = |here: u32| board.programs()[program].apart(here).loss(path);
    let best = fits.min_by(|&x, &y| loss(x).total_cmp(&loss(y)))?;
    board.divided(program, &[(a, best), (b, guests - best)])
}

/// A program as a whole on every site where one other program gives way to it.
fn exchanges(board: &mut Board<'_>, program: usize) -> Vec<Step> {
    let back = board.lift(program);
    let mut found = Vec::new();
    for site in board.allowed(program) {
        if board.whole(program, site).is_none() {
            for other in 0..board.programs().len() {
                let there = board.spread(board.seats(other))[site] > 0;
                if other != program && there {
                    exchange(board, program, other, site, &mut found);
                }
            }
        }
    }
    board.put(program, back);
    found
}

/// The steps in which `program`, now off the board, gets a site that `other` leaves.
fn exchange(
    board: &mut Board<'_>,
    program: usize,
    other: usize,
    site: usize,
    found: &mut Vec<Step>,
) {
    let back = board.lift(other);
    if let Some(whole) = board.whole(program, site) {
        board.put(program, whole.clone());
        for to in board.allowed(other) {
            let seats =
                board.whole(other, to).or_else(|| board.filled(other, &outwards(board, other, to)));
            found.extend(seats.map(|seats| vec![(program, whole.clone()), (other, seats)]));
        }
        board.lift(program);
    }
    board.put(other, back);
}

/// The sites a program may use, nearest first.
fn outwards(board: &Board<'_>, program: usize, from: usize) -> Vec<usize> {
    let mut sites = board.allowed(program);
    sites.sort_by(|&a, &b| board.wan().latency(from, a).total_cmp(&board.wan().latency(from, b)));
    sites
}
