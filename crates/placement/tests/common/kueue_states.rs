//! States of machines and requests for `kueue-tas`, one a line, as `benches/kueue` gives them to Kueue:
//!
//! ```text
//! mixed preferred:1 4:1 12 [[3,2],[4,4,0]]
//! ```
//!
//! A line has the profile; the level (`required:L`, `preferred:L`, `anywhere`; 0 for nodes, 1 for the groups of nodes);
//! the size of slices and their level, or `-`; the number of slots; and the free slots of the nodes in nested groups.
//! An answer is `node:slots,node:slots`, or `-` for a refusal.
#![allow(dead_code, clippy::needless_update)]

use std::fmt::{self, Write};
use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use topolane_fabric::{
    Cabling, Children, Description, DomainDescription, Fabric, Group, NodeDescription, NodeKind,
    SiteDescription,
};
use topolane_placement::policies::{KueueProfile, KueueTas};
use topolane_placement::{Level, Occupancy, Placement, Policy, Request, Share, Within};

/// Nested groups of nodes with their free slots.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Node(u32),
    Group(Vec<Tree>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub profile: KueueProfile,
    pub within: Within,
    pub slice: Option<(u32, u8)>,
    pub slots: u32,
    pub tree: Tree,
}

impl Tree {
    /// The number of levels below it: 0 for a node.
    fn depth(&self) -> usize {
        match self {
            Tree::Node(_) => 0,
            Tree::Group(children) => 1 + children.first().map_or(0, Tree::depth),
        }
    }

    pub fn free(&self) -> Vec<u32> {
        match self {
            Tree::Node(free) => vec![*free],
            Tree::Group(children) => children.iter().flat_map(Tree::free).collect(),
        }
    }

    fn parse(text: &str) -> Tree {
        let mut open: Vec<Vec<Tree>> = vec![Vec::new()];
        for word in text.replace('[', "[,").replace(']', ",]").split(',').filter(|w| !w.is_empty())
        {
            let done = match word {
                "[" => {
                    open.push(Vec::new());
                    continue;
                }
                "]" => Tree::Group(open.pop().unwrap()),
                free => Tree::Node(free.parse().unwrap()),
            };
            open.last_mut().unwrap().push(done);
        }
        open.pop().unwrap().pop().unwrap()
    }

    fn random(random: &mut ChaCha8Rng, levels: usize, most_free: u32, widest: usize) -> Tree {
        if levels == 0 {
            // Some nodes are full; more of them if nodes can have more slots.
            let free = random.random_range(0..=most_free + 1);
            return Tree::Node(if free > most_free { 0 } else { free });
        }
        let children = random.random_range(1..=widest);
        Tree::Group(
            (0..children).map(|_| Tree::random(random, levels - 1, most_free, widest)).collect(),
        )
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Node(free) => write!(f, "{free}"),
            Tree::Group(children) => {
                f.write_char('[')?;
                for (index, child) in children.iter().enumerate() {
                    write!(f, "{}{child}", if index > 0 { "," } else { "" })?;
                }
                f.write_char(']')
            }
        }
    }
}

const PROFILES: [(&str, KueueProfile); 3] = [
    ("mixed", KueueProfile::Mixed),
    ("best-fit", KueueProfile::BestFit),
    ("least-free", KueueProfile::LeastFree),
];

fn number(level: Level) -> u8 {
    let Level::Tree(level) = level else { panic!("states have no domains") };
    level
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (profile, _) = PROFILES.iter().find(|(_, profile)| *profile == self.profile).unwrap();
        write!(f, "{profile} {} ", self.mode())?;
        match self.slice {
            Some((size, level)) => write!(f, "{size}:{level}")?,
            None => f.write_char('-')?,
        }
        write!(f, " {} {}", self.slots, self.tree)
    }
}

impl State {
    pub fn mode(&self) -> String {
        match self.within {
            Within::Required(level) => format!("required:{}", number(level)),
            Within::Preferred(level) => format!("preferred:{}", number(level)),
            Within::Anywhere | Within::Unsaid => "anywhere".to_owned(),
        }
    }

    pub fn parse(line: &str) -> State {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, profile) = PROFILES.iter().find(|(name, _)| *name == words[0]).unwrap();
        let within = match words[1] {
            "anywhere" => Within::Anywhere,
            said => said.parse().unwrap(),
        };
        let slice = words[2].split_once(':');
        let slice = slice.map(|(size, level)| (size.parse().unwrap(), level.parse().unwrap()));
        let (slots, tree) = (words[3].parse().unwrap(), Tree::parse(words[4]));
        State { profile: *profile, within, slice, slots, tree }
    }

    /// A random machine of two to four levels, its free slots, and a request. Requests in slices are multiples of the
    /// slice, because Kueue ignores the rest.
    pub fn random(random: &mut ChaCha8Rng) -> State {
        let levels = random.random_range(2..=4usize);
        let most_free = [1, 1, 3, 8][random.random_range(0..4)];
        let widest = [12, 6, 4][levels - 2];
        let tree = Tree::random(random, levels, most_free, widest);
        let total: u32 = tree.free().iter().sum();
        let level = |random: &mut ChaCha8Rng| random.random_range(0..levels as u8);
        let within = match random.random_range(0..8) {
            0 | 1 => Within::Anywhere,
            2..=4 => Within::Required(Level::Tree(level(random))),
            _ => Within::Preferred(Level::Tree(level(random))),
        };
        let slice = random.random_bool(0.6).then(|| (random.random_range(1..=6), level(random)));
        let most = if random.random_bool(0.5) { total / 3 } else { total + total / 8 };
        let wanted = random.random_range(1..=most.max(1));
        let size = slice.map_or(1, |(size, _)| size);
        let slots = wanted.div_ceil(size) * size;
        let profile = PROFILES[random.random_range(0..3)].1;
        State { profile, within, slice, slots, tree }
    }

    /// The machine of the state: its groups under one site. With `of_domains`, the lowest groups are domains and not
    /// leaves.
    pub fn fabric(&self, of_domains: bool) -> Arc<Fabric> {
        let mut domains = Vec::new();
        let domains_of = of_domains.then_some(&mut domains);
        let root = describe(&self.tree, &mut Counter::default(), domains_of);
        let depth = self.tree.depth() - usize::from(of_domains);
        let cabling = (0..depth).map(|_| Cabling::new(1, 1, 1e9));
        let site = SiteDescription { root, cabling: cabling.collect(), missing: Vec::new() };
        let machine = Description {
            name: "state".to_owned(),
            sites: vec![site],
            wans: Vec::new(),
            kinds: vec![NodeKind::default()],
            domains,
            ..Description::default()
        };
        Arc::new(Fabric::build(&machine).unwrap())
    }

    pub fn request(&self, of_domains: bool) -> Request {
        let level = |level: u8| match (of_domains, level) {
            (true, 1) => Level::Domain,
            (true, level) if level > 1 => Level::Tree(level - 1),
            _ => Level::Tree(level),
        };
        Request {
            within: match self.within {
                Within::Required(of) => Within::Required(level(number(of))),
                Within::Preferred(of) => Within::Preferred(level(number(of))),
                other => other,
            },
            segment: self.slice.map(|(size, _)| size),
            segment_level: self.slice.map(|(_, of)| level(of)),
            ..Request::whole_nodes(1, self.slots, 1.0)
        }
    }

    /// The answer of `kueue-tas` for the counts of free slots.
    pub fn answer(&self, of_domains: bool) -> String {
        let stacked = Request {
            slots: Some(self.tree.free().into()),
            stacked: true,
            ..self.request(of_domains)
        };
        let occupancy = Occupancy::new(self.fabric(of_domains));
        written(&KueueTas { profile: self.profile }, &stacked, &occupancy)
    }

    /// The answer of `kueue-tas` for whole nodes, some of which other jobs hold; `None` if a node has several slots.
    pub fn answer_of_whole_nodes(&self) -> Option<String> {
        let free = self.tree.free();
        if free.iter().any(|&slots| slots > 1) {
            return None;
        }
        let fabric = self.fabric(false);
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let held: Vec<u32> =
            (0..).zip(&free).filter(|(_, free)| **free == 0).map(|(n, _)| n).collect();
        if !held.is_empty() {
            occupancy.claim(&Placement::new(&fabric, held, Share::Whole)).unwrap();
        }
        Some(written(&KueueTas { profile: self.profile }, &self.request(false), &occupancy))
    }
}

fn written(policy: &dyn Policy, request: &Request, occupancy: &Occupancy) -> String {
    let Ok(placement) = policy.place(request, occupancy) else { return "-".to_owned() };
    let mut counts: Vec<(u32, u32)> = Vec::new();
    for &node in placement.nodes() {
        match counts.last_mut() {
            Some((last, count)) if *last == node => *count += 1,
            _ => counts.push((node, 1)),
        }
    }
    counts.iter().map(|(node, count)| format!("{node}:{count}")).collect::<Vec<_>>().join(",")
}

#[derive(Default)]
struct Counter {
    nodes: usize,
    groups: usize,
}

/// Describes the groups of a tree. If `domains` is given, the lowest groups become domains, and their nodes are on the
/// group above.
fn describe(
    tree: &Tree,
    counter: &mut Counter,
    mut domains: Option<&mut Vec<DomainDescription>>,
) -> Group {
    let Tree::Group(children) = tree else { panic!("a machine is more than a node") };
    counter.groups += 1;
    let name = format!("g{}", counter.groups);
    let below = tree.depth();
    let children = if below == 1 {
        Children::Nodes(nodes(children, counter))
    } else if let (2, Some(domains)) = (below, &mut domains) {
        let mut all = Vec::new();
        for child in children {
            let Tree::Group(of) = child else { panic!("uneven") };
            let nodes = nodes(of, counter);
            let names = nodes.iter().map(|node| node.name.clone()).collect();
            let name = format!("d{}", domains.len());
            domains.push(DomainDescription { name, nodes: names, bandwidth: 1e12 });
            all.extend(nodes);
        }
        Children::Nodes(all)
    } else {
        let mut groups = Vec::new();
        for child in children {
            groups.push(describe(child, counter, domains.as_deref_mut()));
        }
        Children::Groups(groups)
    };
    Group { name, switches: Vec::new(), children }
}

fn nodes(trees: &[Tree], counter: &mut Counter) -> Vec<NodeDescription> {
    let name = |_| {
        counter.nodes += 1;
        NodeDescription { name: format!("n{}", counter.nodes), kind: 0 }
    };
    trees.iter().map(name).collect()
}
