//! Machines, requests and occupied machines for the tests.
#![allow(dead_code)]

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::{
    Cabling, Children, Description, Fabric, Group, NodeDescription, NodeIndex, NodeKind, NodeSet,
    SiteDescription, WanDescription, Wiring, pgft,
};
use topolane_placement::{
    Occupancy, POLICIES, Placement, Policy, PolicyInfo, Request, Share, policy,
};

/// Returns a policy by name.
pub fn rule(name: &str) -> Box<dyn Policy> {
    policy(name, 7).unwrap()
}

/// A regular machine whose nodes have 16 cores and 32 GiB.
pub fn tree(children: &[u32]) -> Arc<Fabric> {
    let parents: Vec<u32> = (0..children.len()).map(|level| 1 + (level as u32).min(1)).collect();
    Arc::new(Fabric::build(&pgft("n", children, &parents, &vec![1; children.len()])).unwrap())
}

/// A group of groups, or of this number of nodes.
fn group(name: String, children: Children) -> Group {
    Group { name, switches: Vec::new(), children }
}

fn leaf(name: &str, nodes: u32, next: &mut u32) -> Group {
    let first = *next;
    *next += nodes;
    // Every third node is of the smaller kind.
    let nodes = (first..*next)
        .map(|i| NodeDescription { name: format!("n{i}"), kind: u32::from(i % 3 == 2) });
    group(name.to_owned(), Children::Nodes(nodes.collect()))
}

/// Pods, each given by the sizes of its leaves. With `true`, a pod of one leaf is only the leaf, directly below the
/// core.
pub type Site = Vec<(Vec<u32>, bool)>;

/// Builds a machine of sites, each a tree; WAN links connect them in a chain, or not at all.
pub fn build(sites: &[Site], joined: bool) -> Arc<Fabric> {
    let mut next = 0;
    let mut described = Vec::new();
    for (index, pods) in sites.iter().enumerate() {
        let mut depth = 2;
        let mut below = Vec::new();
        for (p, (leaves, short)) in pods.iter().enumerate() {
            let name = format!("s{index}p{p}");
            if *short {
                below.push(leaf(&name, leaves[0], &mut next));
                continue;
            }
            depth = 3;
            let leaves = leaves.iter().enumerate();
            let leaves = leaves.map(|(l, &size)| leaf(&format!("{name}l{l}"), size, &mut next));
            below.push(group(name.clone(), Children::Groups(leaves.collect())));
        }
        let cabling = |level: usize| Cabling::new(1 + level.min(1) as u32, 1, 1e9);
        described.push(SiteDescription {
            root: group(format!("site{index}"), Children::Groups(below)),
            cabling: (0..depth).map(cabling).collect(),
            missing: Vec::new(),
        });
    }
    let small = NodeKind { cores_per_socket: 2, memory: 8 << 30, ..NodeKind::default() };
    let large = NodeKind { cores_per_socket: 4, memory: 32 << 30, ..NodeKind::default() };
    let mut machine = Description {
        name: "uneven".to_owned(),
        sites: described,
        wans: Vec::new(),
        kinds: vec![large, small],
        domains: Vec::new(),
        ..Description::default()
    };
    if joined {
        for pair in machine.sites.windows(2) {
            let between = (pair[0].root.name.clone(), pair[1].root.name.clone());
            machine.wans.push(WanDescription { between, latency: 0.005, bandwidth: 1e9 });
        }
    }
    Arc::new(Fabric::build(&machine).unwrap())
}

/// A machine in a short form, so that failing cases are readable.
#[derive(Debug, Clone)]
pub enum Machine {
    Regular(Vec<u32>),
    Sites(Vec<Site>, bool),
}

impl Machine {
    pub fn fabric(&self) -> Arc<Fabric> {
        match self {
            Machine::Regular(children) => tree(children),
            Machine::Sites(sites, joined) => build(sites, *joined),
        }
    }
}

/// A regular tree of two to four levels.
pub fn regular() -> impl Strategy<Value = Machine> {
    prop::collection::vec(1u32..4, 2..5).prop_map(Machine::Regular)
}

/// A machine with one tree, regular or uneven.
pub fn one_site() -> impl Strategy<Value = Machine> {
    prop_oneof![regular(), site().prop_map(|site| Machine::Sites(vec![site], true))]
}

/// A tree with uneven groups and sometimes a short branch.
pub fn site() -> impl Strategy<Value = Site> {
    prop::collection::vec((prop::collection::vec(1u32..5, 1..4), prop::bool::weighted(0.25)), 1..4)
}

/// Any machine: regular, uneven, padded, or of several sites with or without WAN links.
pub fn machine() -> impl Strategy<Value = Machine> {
    let sites = (prop::collection::vec(site(), 2..4), any::<bool>());
    prop_oneof![one_site(), sites.prop_map(|(sites, joined)| Machine::Sites(sites, joined))]
}

/// A request that is not yet bound to a machine.
#[derive(Debug, Clone)]
pub struct Ask {
    pub id: u64,
    pub nodes: Index,
    pub share: Share,
    pub stacked: bool,
    pub eligible: Option<u64>,
    pub members: Vec<Index>,
}

/// Requests mostly for whole nodes, some for shared or stacked slots, some with eligible nodes or members.
pub fn ask() -> impl Strategy<Value = Ask> {
    let share = prop_oneof![
        3 => Just(Share::Whole),
        2 => (1u32..5, 0u64..9).prop_map(|(cores, gib)| Share::part(cores, gib << 30)),
    ];
    let eligible = prop::option::weighted(0.3, any::<u64>());
    let members = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(any::<Index>(), 1..4),
    ];
    (any::<u64>(), any::<Index>(), share, any::<bool>(), eligible, members).prop_map(
        |(id, nodes, share, stacked, eligible, members)| Ask {
            id,
            nodes,
            share,
            stacked,
            eligible,
            members,
        },
    )
}

impl Ask {
    /// The request on a machine, for 1 to 1.5 times its number of nodes.
    pub fn on(&self, fabric: &Fabric) -> Request {
        let nodes = fabric.nodes();
        let pick =
            |mask: u64| NodeSet::of(nodes, (0..nodes).filter(|node| mask >> (node % 64) & 1 == 1));
        let members = self.members.iter().map(|member| member.index(nodes as usize) as NodeIndex);
        Request {
            id: self.id,
            nodes: 1 + self.nodes.index(nodes as usize * 3 / 2) as u32,
            share: self.share.clone(),
            stacked: self.stacked,
            eligible: self.eligible.map(|mask| Arc::new(pick(mask))),
            members: members.collect(),
            recorded: Some((0..nodes.min(3)).collect()),
            walltime: 10.0,
            ..Request::default()
        }
    }
}

/// A machine on which other jobs hold nodes and some nodes are out of service.
pub fn crowded(fabric: &Arc<Fabric>, others: &[Ask], out: &[Index]) -> Occupancy {
    let mut occupancy = Occupancy::new(Arc::clone(fabric));
    for (index, other) in others.iter().enumerate() {
        let request = Request { nodes: 1 + other.nodes.index(4) as u32, ..other.on(fabric) };
        let policy = (POLICIES[index % 5].build)(1);
        if let Ok(placement) = policy.place(&request, &occupancy) {
            occupancy.claim(&placement).unwrap();
        }
    }
    for node in out {
        occupancy.set_in_service(node.index(fabric.nodes() as usize) as u32, false);
    }
    occupancy
}

/// The slots of a node for the request, computed from what is free there.
pub fn slots(occupancy: &Occupancy, request: &Request, node: NodeIndex) -> u32 {
    let allowed = request.eligible.as_ref().is_none_or(|set| set.contains(node));
    if !allowed || !occupancy.in_service().contains(node) {
        return 0;
    }
    match request.share {
        Share::Whole => u32::from(occupancy.held(node) == 0),
        Share::Part(ref amounts) => {
            let (cores, memory) = (amounts.cores() as u32, amounts.memory());
            let mut slots = 0;
            let (mut free, mut bytes) = (occupancy.cores_free(node), occupancy.memory_free(node));
            while free >= cores && bytes >= memory && (slots == 0 || request.stacked) {
                (free, bytes, slots) = (free - cores, bytes - memory, slots + 1);
            }
            slots
        }
    }
}

/// Whether a link joins the sites of both nodes.
pub fn joined(fabric: &Fabric, a: NodeIndex, b: NodeIndex) -> bool {
    let top = fabric.depth();
    fabric.site_hops(fabric.group(top, a), fabric.group(top, b)).is_some()
}

/// The sum of hops over unordered pairs, computed pair by pair; `None` if two nodes are not connected.
pub fn pair_hops(fabric: &Fabric, nodes: &[NodeIndex]) -> Option<u64> {
    let mut sum = 0;
    for (index, &a) in nodes.iter().enumerate() {
        for &b in &nodes[..index] {
            sum += u64::from(fabric.hops(a, b)?);
        }
    }
    Some(sum)
}

/// All choices of `wanted` slots that use each node at most as often as `slots` allows.
pub fn choices(slots: &[u32], wanted: u32) -> Vec<Vec<NodeIndex>> {
    fn go(
        slots: &[u32],
        node: usize,
        left: u32,
        now: &mut Vec<NodeIndex>,
        all: &mut Vec<Vec<NodeIndex>>,
    ) {
        if left == 0 {
            all.push(now.clone());
            return;
        }
        let Some(&most) = slots.get(node) else { return };
        for here in 0..=most.min(left) {
            now.extend((0..here).map(|_| node as NodeIndex));
            go(slots, node + 1, left - here, now, all);
            now.truncate(now.len() - here as usize);
        }
    }
    let mut all = Vec::new();
    go(slots, 0, wanted, &mut Vec::new(), &mut all);
    all
}

/// A placement of whole nodes.
pub fn whole(fabric: &Fabric, nodes: &[NodeIndex]) -> Placement {
    Placement::new(fabric, nodes.to_vec(), Share::Whole)
}

/// Everything that the interface of an occupancy shows.
pub fn seen(occupancy: &Occupancy) -> impl PartialEq + std::fmt::Debug + use<> {
    let fabric = occupancy.fabric();
    let nodes: Vec<_> = (0..fabric.nodes())
        .map(|node| (occupancy.cores_free(node), occupancy.memory_free(node), occupancy.held(node)))
        .collect();
    let groups: Vec<_> = (0..=fabric.depth())
        .flat_map(|level| (0..fabric.groups(level)).map(move |group| (level, group)))
        .map(|(level, group)| {
            let idle = if level > 0 { occupancy.idle_in(level, group) } else { 0 };
            (idle, occupancy.crossing(level, group))
        })
        .collect();
    (
        nodes,
        groups,
        occupancy.idle().clone(),
        occupancy.in_service().clone(),
        occupancy.idle_nodes(),
    )
}

/// The policies that work on trees, except `recorded`.
pub fn tree_policies() -> impl Iterator<Item = &'static PolicyInfo> {
    let on_trees = |info: &&PolicyInfo| (info.build)(0).traits().wirings.has(&Wiring::Tree);
    POLICIES.iter().filter(on_trees).filter(|info| info.name != "recorded")
}
