//! How programs use the links between sites, and how fast their hosts' processors are.

use super::Program;
use super::arrangement::{Arrangement, Seats};
use super::predict::{Cut, Path};
use super::wan::WanRoutes;

/// How a program uses the WAN, and the speed of its processors, on given seats.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    cut: Cut,
    /// Latency in seconds of the longest route between two of its sites.
    latency: f64,
    /// Bytes per second on the links that it uses; empty for a program on one site.
    flows: Vec<(usize, f64)>,
    /// The measured loss to the WAN divided by the predicted one.
    correction: f64,
    /// How much longer a second of its run takes on these processors, in seconds.
    slower: f64,
    /// The seconds that moving it there must save.
    pub moving: f64,
}

impl Standing {
    /// Returns the standing with the seconds that moving must save.
    pub fn moved(self, moving: f64) -> Standing {
        Standing { moving, ..self }
    }

    /// How much longer a second of its run takes because of the WAN and the processors, in seconds.
    pub fn loss(&self, load: &[f64], wan: &WanRoutes) -> f64 {
        self.slower + self.loss_to_wan(load, wan)
    }

    /// The part of [`Standing::loss`] due to the WAN.
    pub fn loss_to_wan(&self, load: &[f64], wan: &WanRoutes) -> f64 {
        let predicted = predicted(self, load, wan);
        if predicted.is_finite() { self.correction * predicted } else { predicted }
    }
}

/// How the guests of a program are divided over its sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// The guests stay divided as they are now.
    Now,
    /// The guests are divided with the fewest bytes between sites.
    Best,
}

/// Returns the standing of a program on the given seats. With the best division, traffic out of a site goes to the
/// others in proportion to their guests. With the current division, traffic between sites is spread evenly over the
/// pairs of guests.
pub fn standing(
    arrangement: &Arrangement<'_>,
    program: &Program,
    seats: &Seats,
    division: Division,
) -> Standing {
    let wan = arrangement.wan();
    let placed = Standing {
        correction: program.correction.unwrap_or(1.0),
        slower: program.slower(arrangement.slowest(seats)),
        ..Standing::default()
    };
    // Nodes are numbered site by site, and most programs are on one site.
    match (seats.first(), seats.last()) {
        (Some(first), Some(last)) if arrangement.site(first.0) != arrangement.site(last.0) => {}
        _ => return Standing { flows: outside(arrangement, program, seats), ..placed },
    }
    let spread = arrangement.spread(seats);
    let used: Vec<usize> = (0..spread.len()).filter(|&site| spread[site] > 0).collect();
    let guests = |site: usize| f64::from(spread[site]);
    let all = f64::from(program.guests);
    let each = used.iter().enumerate();
    let ways = each.flat_map(|(place, &a)| used[..place].iter().map(move |&b| (a, b)));
    let here = program.here.filter(|_| division == Division::Now);
    let pairs: f64 = ways.clone().map(|(a, b)| guests(a) * guests(b)).sum();
    let leaving: Vec<Cut> = used.iter().map(|&site| program.apart(spread[site])).collect();
    let left = |site: usize| leaving[used.iter().position(|&one| one == site).unwrap_or(0)].bytes;
    let mut latency = 0.0f64;
    let mut bytes = vec![0.0; wan.bandwidth().len()];
    for (a, b) in ways {
        latency = latency.max(wan.latency(a, b));
        let crossing = if let Some(here) = here {
            here.bytes * guests(a) * guests(b) / pairs
        } else {
            let (from_a, from_b) = (left(a) / (all - guests(a)), left(b) / (all - guests(b)));
            f64::midpoint(from_a * guests(b), from_b * guests(a))
        };
        for &link in wan.links(a, b) {
            bytes[link] += crossing;
        }
    }
    for (link, more) in outside(arrangement, program, seats) {
        bytes[link] += more;
    }
    let flows = bytes.into_iter().enumerate().filter(|&(_, bytes)| bytes > 0.0).collect();
    let cut = here.unwrap_or_else(|| leaving.into_iter().reduce(Cut::worse).unwrap_or_default());
    Standing { cut, latency, flows, ..placed }
}

/// For each link, the bytes per second that guests at other sites exchange with the storage at home.
fn outside(arrangement: &Arrangement<'_>, program: &Program, seats: &Seats) -> Vec<(usize, f64)> {
    let Some(home) = program.home.filter(|_| program.outside > 0.0) else { return Vec::new() };
    let mut bytes = vec![0.0; arrangement.wan().bandwidth().len()];
    for &(node, guests) in seats {
        for &link in arrangement.wan().links(arrangement.site(node), home as usize) {
            bytes[link] += f64::from(guests) * program.outside;
        }
    }
    bytes.into_iter().enumerate().filter(|&(_, bytes)| bytes > 0.0).collect()
}

pub fn add(load: &mut [f64], standing: &Standing, sign: f64) {
    for &(link, bytes) in &standing.flows {
        load[link] += sign * bytes;
    }
}

/// The predicted share of a second lost to the WAN, not corrected.
fn predicted(standing: &Standing, load: &[f64], wan: &WanRoutes) -> f64 {
    if standing.latency <= 0.0 && standing.flows.is_empty() {
        return 0.0;
    }
    if standing.latency.is_infinite() {
        return f64::INFINITY;
    }
    // The bandwidth that others leave, but at least a proportional share.
    let share = |link: usize, bytes: f64| {
        let bandwidth = wan.bandwidth()[link];
        (bandwidth - (load[link] - bytes)).max(bandwidth * bytes / load[link])
    };
    let each = standing.flows.iter().map(|&(link, bytes)| bytes / share(link, bytes));
    let alone = Cut { bytes: each.fold(0.0, f64::max), ..standing.cut };
    alone.loss(Path { latency: standing.latency, bandwidth: 1.0, window: wan.window() })
}

/// The predicted loss of every program to the WAN where it runs now, with all programs sharing the links.
pub fn predicted_now(arrangement: &Arrangement<'_>) -> Vec<f64> {
    let ledger = Ledger::now(arrangement);
    let each = ledger.standings.iter();
    each.map(|standing| predicted(standing, &ledger.load, arrangement.wan())).collect()
}

/// The standings of all programs, and the resulting load of the WAN.
#[derive(Debug, Clone)]
pub struct Ledger {
    pub standings: Vec<Standing>,
    pub load: Vec<f64>,
}

impl Ledger {
    /// Returns the ledger of these standings.
    pub fn of(arrangement: &Arrangement<'_>, standings: Vec<Standing>) -> Ledger {
        let mut load = vec![0.0; arrangement.wan().bandwidth().len()];
        for standing in &standings {
            add(&mut load, standing, 1.0);
        }
        Ledger { standings, load }
    }

    /// Returns the ledger of all programs where they really run now.
    pub fn now(arrangement: &Arrangement<'_>) -> Ledger {
        let each = arrangement.programs().iter().enumerate();
        let now = |(index, program)| {
            standing(arrangement, program, arrangement.now(index), Division::Now)
        };
        Ledger::of(arrangement, each.map(now).collect())
    }

    /// The loss of every program.
    pub fn losses(&self, wan: &WanRoutes) -> Vec<f64> {
        self.standings.iter().map(|standing| standing.loss(&self.load, wan)).collect()
    }

    /// The loss of every program to the WAN.
    pub fn losses_to_wan(&self, wan: &WanRoutes) -> Vec<f64> {
        self.standings.iter().map(|standing| standing.loss_to_wan(&self.load, wan)).collect()
    }
}
