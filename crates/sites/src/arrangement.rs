//! The arrangement: which guests are on which hosts, while a policy chooses sites.

use std::ops::Range;

use topolane_fabric::resources::CORES;
use topolane_fabric::{Fabric, NodeIndex, NodeKind};

use super::Program;
use super::wan::WanRoutes;
use topolane_placement::Occupancy;

/// The numbers of guests on nodes.
pub type Seats = Vec<(NodeIndex, u32)>;

/// The programs on their hosts, and the free resources of the hosts. Running programs may hold more than a host has,
/// because hosts are overbooked. No guest is placed on a host with too little free.
#[derive(Debug, Clone)]
pub struct Arrangement<'a> {
    programs: &'a [Program],
    wan: &'a WanRoutes,
    fabric: &'a Fabric,
    occupancy: &'a Occupancy,
    /// The free amount of every resource on every node; negative on an overbooked host.
    left: Vec<i128>,
    /// The core speed of every node, relative to the default clock.
    speed: Vec<f64>,
    /// All nodes, the fastest first.
    by_speed: Vec<NodeIndex>,
    seats: Vec<Seats>,
    now: Vec<Seats>,
    rearranged: Vec<bool>,
}

impl<'a> Arrangement<'a> {
    /// Returns the programs where they run now. `occupancy` has all other guests.
    pub fn new(
        programs: &'a [Program],
        occupancy: &'a Occupancy,
        wan: &'a WanRoutes,
    ) -> Arrangement<'a> {
        let fabric: &Fabric = occupancy.fabric();
        let nodes = 0..fabric.nodes();
        let now: Vec<Seats> = programs.iter().map(|program| seats(&program.nodes)).collect();
        let speed: Vec<f64> = nodes.clone().map(|node| speed(fabric, node)).collect();
        let mut by_speed: Vec<NodeIndex> = nodes.clone().collect();
        by_speed.sort_by(|&a, &b| speed[b as usize].total_cmp(&speed[a as usize]));
        let mut arrangement = Arrangement {
            programs,
            wan,
            fabric,
            occupancy,
            left: nodes.flat_map(|node| left_on(occupancy, node)).collect(),
            speed,
            by_speed,
            seats: vec![Seats::new(); programs.len()],
            now: now.clone(),
            rearranged: vec![false; programs.len()],
        };
        for (program, seats) in now.into_iter().enumerate() {
            arrangement.put(program, seats);
        }
        arrangement
    }

    /// All programs, by index.
    pub fn programs(&self) -> &'a [Program] {
        self.programs
    }

    /// The routes between sites.
    pub fn wan(&self) -> &'a WanRoutes {
        self.wan
    }

    /// The machine, whose nodes are the hosts.
    pub fn fabric(&self) -> &'a Fabric {
        self.fabric
    }

    /// Guests of no program, and hosts out of service.
    pub fn occupancy(&self) -> &'a Occupancy {
        self.occupancy
    }

    /// Where a program is in the arrangement; empty if it is not placed.
    pub fn seats(&self, program: usize) -> &Seats {
        &self.seats[program]
    }

    /// Where a program really runs now.
    pub fn now(&self, program: usize) -> &Seats {
        &self.now[program]
    }

    /// Allows guests of a program that stays on its sites to exchange places, so that it is divided best.
    pub fn rearrange(&mut self, program: usize) {
        self.rearranged[program] = true;
    }

    /// Whether guests of the program exchange places.
    pub fn is_rearranged(&self, program: usize) -> bool {
        self.rearranged[program] && self.seats[program] == self.now[program]
    }

    /// The number of guests at every site.
    pub fn spread(&self, seats: &Seats) -> Vec<u32> {
        let mut spread = vec![0; self.wan.sites()];
        for &(node, guests) in seats {
            spread[self.site(node)] += guests;
        }
        spread
    }

    /// The site of a node.
    pub fn site(&self, node: NodeIndex) -> usize {
        self.fabric.group(self.fabric.depth(), node) as usize
    }

    /// The speed of the slowest core with a guest; 1 if there are no guests.
    pub fn slowest(&self, seats: &Seats) -> f64 {
        let speeds = seats.iter().map(|&(node, _)| self.speed[node as usize]);
        speeds.reduce(f64::min).unwrap_or(1.0)
    }

    /// The speed of the fastest core with a guest; 0 if there are no guests.
    pub fn quickest(&self, seats: &Seats) -> f64 {
        seats.iter().map(|&(node, _)| self.speed[node as usize]).fold(0.0, f64::max)
    }

    /// The speeds of the slowest and of the fastest node.
    pub fn speeds(&self) -> (f64, f64) {
        let at = |node: Option<&NodeIndex>| node.map_or(1.0, |&node| self.speed[node as usize]);
        (at(self.by_speed.last()), at(self.by_speed.first()))
    }

    /// The speed of the slowest node that a program needs if it takes the fastest nodes of these sites; `None` if it
    /// does not fit. The program itself must not be placed.
    pub fn fastest(&self, program: usize, sites: &[usize]) -> Option<f64> {
        let mut left = self.programs[program].guests;
        let nodes = self.by_speed.iter().filter(|&&node| sites.contains(&self.site(node)));
        nodes.copied().find_map(|node| {
            left -= left.min(self.slots_on(program, node));
            (left == 0).then(|| self.speed[node as usize])
        })
    }

    /// The sites that a program may use.
    pub fn allowed(&self, program: usize) -> Vec<usize> {
        let sites = &self.programs[program].sites;
        (0..self.wan.sites())
            .filter(|&site| sites.is_empty() || sites.contains(&(site as u32)))
            .collect()
    }

    /// Removes a program from the arrangement. Returns where it was.
    pub fn lift(&mut self, program: usize) -> Seats {
        let seats = std::mem::take(&mut self.seats[program]);
        self.hold(program, &seats, -1);
        seats
    }

    /// Places a program that is not in the arrangement.
    pub fn put(&mut self, program: usize, seats: Seats) {
        self.hold(program, &seats, 1);
        self.seats[program] = seats;
    }

    /// Places a program, with a node for every guest.
    pub fn put_on(&mut self, program: usize, nodes: &[NodeIndex]) {
        self.put(program, seats(nodes));
    }

    fn hold(&mut self, program: usize, seats: &Seats, sign: i128) {
        let guest = &self.programs[program];
        for &(node, guests) in seats {
            let (guests, row) = (i128::from(guests) * sign, self.row(node));
            for (left, amount) in self.left[row].iter_mut().zip(guest.guest.iter()) {
                *left -= guests * i128::from(amount);
            }
        }
    }

    /// The number of further guests of a program that fit on a node.
    fn slots_on(&self, program: usize, node: NodeIndex) -> u32 {
        let guest = &self.programs[program].guest;
        let barred = self.programs[program].barred.binary_search(&node).is_ok();
        if barred || self.occupancy.slots_on(node, guest) == 0 {
            return 0;
        }
        let left = |left: &i128| u64::try_from((*left).max(0)).unwrap_or(u64::MAX);
        let left: Vec<u64> = self.left[self.row(node)].iter().map(left).collect();
        guest.slots_in(&left)
    }

    /// The range of a node's resources in `left`.
    fn row(&self, node: NodeIndex) -> Range<usize> {
        let counted = self.fabric.resources().names().len();
        node as usize * counted..(node as usize + 1) * counted
    }

    /// The number of guests of a program that fit on a site. The program itself must not be placed.
    pub fn free_slots(&self, program: usize, site: usize) -> u32 {
        let nodes = self.fabric.node_range(self.fabric.depth(), site as u32);
        nodes.map(|node| self.slots_on(program, node)).fold(0, u32::saturating_add)
    }

    /// Seats for up to `guests` guests of a program on hosts of a site that are not slower than `least`. Hosts where it
    /// runs now come first, then those with the least free resources, so that large gaps remain.
    fn seat(&self, program: usize, site: usize, guests: u32, least: f64) -> Seats {
        let range = self.fabric.node_range(self.fabric.depth(), site as u32);
        let mut left = guests;
        let mut found: Seats = Seats::new();
        let enough = |node: NodeIndex| self.speed[node as usize] >= least;
        let here = |node: NodeIndex| range.contains(&node) && enough(node);
        for &(node, here) in self.now[program].iter().filter(|(node, _)| here(*node)) {
            let taken = left.min(here).min(self.slots_on(program, node));
            left -= taken;
            found.push((node, taken));
        }
        if left == 0 {
            return merged(found);
        }
        let mut nodes: Vec<(u32, NodeIndex)> = Vec::new();
        for node in range.clone().filter(|&node| enough(node)) {
            let taken = found.iter().find(|(at, _)| *at == node).map_or(0, |&(_, guests)| guests);
            let free = self.slots_on(program, node) - taken;
            if free > 0 {
                nodes.push((free, node));
            }
        }
        nodes.sort_unstable();
        // Take the tightest host that holds all that is left, otherwise the one with most free.
        while left > 0 && !nodes.is_empty() {
            let fits = nodes.iter().position(|&(free, _)| free >= left).unwrap_or(nodes.len() - 1);
            let (free, node) = nodes.remove(fits);
            let taken = left.min(free);
            left -= taken;
            found.push((node, taken));
        }
        merged(found)
    }

    /// The seats where it runs now; `None` if it does not fit there or is new.
    pub fn again(&self, program: usize) -> Option<Seats> {
        let now = &self.now[program];
        let fits = |&(node, guests): &(NodeIndex, u32)| self.slots_on(program, node) >= guests;
        (!now.is_empty() && now.iter().all(fits)).then(|| now.clone())
    }

    /// Seats for the whole program on one site, on hosts not slower than `least`; `None` if it does not fit.
    pub fn whole(&self, program: usize, site: usize, least: f64) -> Option<Seats> {
        let guests = self.programs[program].guests;
        let seats = self.seat(program, site, guests, least);
        (total(&seats) == guests).then_some(seats)
    }

    /// Seats for a given number of guests on each of these sites; `None` if they do not fit.
    pub fn divided(&self, program: usize, sites: &[(usize, u32)]) -> Option<Seats> {
        let mut found = Seats::new();
        for &(site, guests) in sites {
            let seats = self.seat(program, site, guests, 0.0);
            if total(&seats) < guests {
                return None;
            }
            found.extend(seats);
        }
        Some(merged(found))
    }

    /// Seats for all guests, filling one of these sites after another, on hosts that are not slower than `least`.
    /// `None` if the guests do not all fit.
    pub fn filled(&self, program: usize, sites: &[usize], least: f64) -> Option<Seats> {
        let mut left = self.programs[program].guests;
        let mut found = Seats::new();
        for &site in sites {
            let seats = self.seat(program, site, left, least);
            left -= total(&seats);
            found.extend(seats);
        }
        (left == 0).then(|| merged(found))
    }

    /// Seats with the guests on hosts slower than `least` moved: within their site as far as possible, then to other
    /// sites that the program may use.
    pub fn quickened(&self, program: usize, least: f64) -> Option<Seats> {
        let spread = self.spread(&self.now[program]);
        let mut left = 0;
        let mut found = Seats::new();
        for (site, &guests) in spread.iter().enumerate().filter(|&(_, &guests)| guests > 0) {
            let seats = self.seat(program, site, guests, least);
            left += guests - total(&seats);
            found.extend(seats);
        }
        for site in self.allowed(program).into_iter().filter(|&site| spread[site] == 0) {
            let seats = self.seat(program, site, left, least);
            left -= total(&seats);
            found.extend(seats);
        }
        (left == 0 && !found.is_empty()).then(|| merged(found))
    }

    /// A node for every guest; guests that can stay where they are do so.
    pub fn nodes(&self, program: usize) -> Vec<NodeIndex> {
        let mut left = self.seats[program].clone();
        let mut take = |wanted: Option<NodeIndex>| {
            let at = left
                .iter()
                .position(|&(node, guests)| guests > 0 && wanted.is_none_or(|want| want == node));
            at.map(|at| {
                left[at].1 -= 1;
                left[at].0
            })
        };
        let now = &self.programs[program].nodes;
        let stay: Vec<Option<NodeIndex>> = now.iter().map(|&node| take(Some(node))).collect();
        let stay = stay.into_iter().chain(std::iter::repeat_n(None, self.guests_to_come(program)));
        stay.filter_map(|node| node.or_else(|| take(None))).collect()
    }

    fn guests_to_come(&self, program: usize) -> usize {
        (total(&self.seats[program]) as usize).saturating_sub(self.programs[program].nodes.len())
    }
}

/// The total number of guests.
pub fn total(seats: &Seats) -> u32 {
    seats.iter().map(|&(_, guests)| guests).sum()
}

/// The core speed of a node, relative to the default clock.
fn speed(fabric: &Fabric, node: NodeIndex) -> f64 {
    fabric.kind(node).core_speed / NodeKind::default().core_speed
}

fn left_on(occupancy: &Occupancy, node: NodeIndex) -> impl Iterator<Item = i128> + '_ {
    let cores = u64::from(occupancy.cores_free(node));
    let free = occupancy.free(node).iter().enumerate();
    free.map(move |(resource, &free)| i128::from(if resource == CORES { cores } else { free }))
}

fn seats(nodes: &[NodeIndex]) -> Seats {
    merged(nodes.iter().map(|&node| (node, 1)).collect())
}

/// Merges seats on the same node; drops those without guests.
fn merged(mut seats: Seats) -> Seats {
    seats.sort_unstable_by_key(|&(node, _)| node);
    seats.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    seats.retain(|&(_, guests)| guests > 0);
    seats
}
