//! Each segment of a job lies in one domain, and small jobs leave empty domains to large ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::{rule, whole};
use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::{DomainDescription, Fabric, NodeIndex, pgft};
use topolane_placement::{LinkUse, Occupancy, Placement, Refusal, Request, Share};

/// A machine of two levels whose domains need not nest in its leaves. `of` gives each node its domain, 0 for none.
fn machine(leaves: [u32; 2], of: &[u32]) -> Arc<Fabric> {
    let mut described = pgft("n", &leaves, &[1, 1], &[1, 1]);
    let names = Fabric::build(&described).unwrap();
    for domain in 1..5 {
        let inside = (0..names.nodes()).filter(|&node| of[node as usize % of.len()] == domain);
        let nodes: Vec<String> = inside.map(|node| names.node_name(node).to_owned()).collect();
        if !nodes.is_empty() {
            let name = format!("d{domain}");
            described.domains.push(DomainDescription { name, nodes, bandwidth: 1e12 });
        }
    }
    Arc::new(Fabric::build(&described).unwrap())
}

/// A machine, the jobs on it, and its nodes out of service.
#[derive(Debug, Clone)]
struct Scene {
    leaves: [u32; 2],
    of: Vec<u32>,
    jobs: Vec<Vec<Index>>,
    out: Vec<Index>,
}

fn scene() -> impl Strategy<Value = Scene> {
    let some = |most| prop::collection::vec(any::<Index>(), 0..most);
    let jobs = prop::collection::vec(some(5), 0..6);
    let of = prop::collection::vec(0u32..5, 1..30);
    ((1u32..6, 1u32..6), of, jobs, some(4)).prop_map(|((a, b), of, jobs, out)| Scene {
        leaves: [a, b],
        of,
        jobs,
        out,
    })
}

impl Scene {
    fn occupancy(&self) -> (Occupancy, Vec<Placement>) {
        let fabric = machine(self.leaves, &self.of);
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let mut held = Vec::new();
        for job in &self.jobs {
            let nodes: BTreeSet<NodeIndex> =
                job.iter().map(|at| at.index(fabric.nodes() as usize) as NodeIndex).collect();
            let placement = whole(&fabric, &nodes.into_iter().collect::<Vec<_>>());
            if !placement.nodes().is_empty() && occupancy.claim(&placement).is_ok() {
                held.push(placement);
            }
        }
        for out in &self.out {
            occupancy.set_in_service(out.index(fabric.nodes() as usize) as NodeIndex, false);
        }
        (occupancy, held)
    }
}

/// The free nodes of every block, counted one by one.
fn free(occupancy: &Occupancy) -> Vec<u32> {
    let fabric = occupancy.fabric();
    let idle = |block| fabric.block_nodes(block).iter().filter(|&&n| occupancy.idle().contains(n));
    (0..fabric.blocks()).map(|block| idle(block).count() as u32).collect()
}

/// Whether blocks with these numbers of free slots can hold the parts, by trying each block for the rest.
fn fits(room: &[u32], nodes: u32, segment: u32) -> bool {
    let (whole, rest) = (nodes / segment, nodes % segment);
    (0..room.len()).any(|of_rest| {
        let left = |block: usize| room[block].checked_sub(if block == of_rest { rest } else { 0 });
        let segments = |block| left(block).map(|left| left / segment);
        (0..room.len()).map(segments).sum::<Option<u32>>().is_some_and(|found| found >= whole)
    })
}

/// The segment size into which the policy splits a request, as its description says.
fn segment_of(request: &Request, fabric: &Fabric) -> u32 {
    match request.segment {
        Some(segment) => segment.min(request.nodes),
        None if request.nodes <= fabric.largest_block() => request.nodes,
        None => 1,
    }
}

fn request(nodes: Index, segment: Option<u32>, fabric: &Fabric) -> Request {
    let nodes = 1 + nodes.index(fabric.nodes() as usize) as u32;
    Request { segment, ..Request::whole_nodes(1, nodes, 1.0) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// In rank order, every segment lies in one block, and so does the rest. A request is placed exactly if the free
    /// nodes contain such parts.
    #[test]
    fn segments_are_never_split(scene in scene(), nodes: Index, segment in prop::option::of(1u32..8)) {
        let (occupancy, _) = scene.occupancy();
        let fabric = occupancy.fabric();
        let request = request(nodes, segment, fabric);
        let segment = segment_of(&request, fabric);
        let placed = rule("segments").place(&request, &occupancy);
        prop_assert_eq!(placed.is_ok(), fits(&free(&occupancy), request.nodes, segment));
        if let Ok(placement) = placed {
            for part in placement.nodes().chunks(segment as usize) {
                let blocks: BTreeSet<_> = part.iter().map(|&node| fabric.block(node)).collect();
                prop_assert_eq!(blocks.len(), 1, "{:?}", part);
            }
        }
    }

    /// A request that would fit in an empty block uses none as long as the blocks with jobs can hold its parts. Among
    /// those that can hold it whole, it takes the tightest.
    #[test]
    fn small_jobs_stay_out_of_empty_domains(scene in scene(), nodes: Index, segment in prop::option::of(1u32..8)) {
        let (occupancy, _) = scene.occupancy();
        let fabric = occupancy.fabric();
        let all = free(&occupancy);
        let most = all.iter().copied().max().unwrap_or(0);
        prop_assume!(most > 0);
        let request = Request { segment, ..Request::whole_nodes(1, 1 + nodes.index(most as usize) as u32, 1.0) };
        let has_jobs = |block: usize| occupancy.held_in_block(block as u32) > 0;
        let with_jobs: Vec<u32> =
            all.iter().enumerate().map(|(block, &room)| if has_jobs(block) { room } else { 0 }).collect();
        if !fits(&with_jobs, request.nodes, segment_of(&request, fabric)) {
            return Ok(());
        }
        let placement = rule("segments").place(&request, &occupancy).unwrap();
        let taken: BTreeSet<_> = placement.nodes().iter().map(|&node| fabric.block(node)).collect();
        prop_assert!(taken.iter().all(|&block| has_jobs(block as usize)), "{:?}", taken);
        if let Some(tightest) = with_jobs.iter().filter(|&&room| room >= request.nodes).min() {
            let rooms: Vec<u32> = taken.iter().map(|&block| with_jobs[block as usize]).collect();
            prop_assert_eq!(rooms, [*tightest], "one block, with no more room than another that holds it");
        }
    }

    /// A request too large for any block leaves as few nodes over as possible: it never uses a block and leaves room
    /// there for a segment that it has elsewhere, except for the last one.
    #[test]
    fn large_jobs_fill_the_blocks_they_enter(scene in scene(), nodes: Index, segment in 1u32..5) {
        let (occupancy, _) = scene.occupancy();
        let fabric = occupancy.fabric();
        let request = request(nodes, Some(segment), fabric);
        let before = free(&occupancy);
        prop_assume!(before.iter().all(|&room| room < request.nodes));
        let Ok(placement) = rule("segments").place(&request, &occupancy) else { return Ok(()) };
        let mut after = occupancy.clone();
        after.claim(&placement).unwrap();
        let after = free(&after);
        let with_room = (0..before.len()).filter(|&block| after[block] < before[block] && after[block] >= segment);
        prop_assert!(with_room.count() <= 2, "the last, and the block of what is left over");
    }

    /// With links too, segments are not split, and no two jobs share a link.
    #[test]
    fn segments_with_links_keep_both_promises(scene in scene(), sizes: Vec<(Index, Option<u8>)>) {
        let fabric = machine(scene.leaves, &scene.of);
        for name in ["segments-isolated", "segments-dedicated"] {
            let mut occupancy = Occupancy::new(Arc::clone(&fabric));
            let mut placed = Vec::new();
            for (index, (nodes, segment)) in sizes.iter().take(8).enumerate() {
                let nodes = 1 + nodes.index(fabric.nodes() as usize) as u32;
                let segment = segment.map(|segment| 1 + u32::from(segment % 7));
                let request = Request { segment, ..Request::whole_nodes(index as u64, nodes, 1.0) };
                let Ok(placement) = rule(name).place(&request, &occupancy) else { continue };
                for part in placement.nodes().chunks(segment_of(&request, &fabric) as usize) {
                    let blocks: BTreeSet<_> = part.iter().map(|&node| fabric.block(node)).collect();
                    prop_assert_eq!(blocks.len(), 1, "{}: {:?}", name, part);
                }
                occupancy.claim(&placement).unwrap();
                placed.push((index as u64, placement));
            }
            let jobs: Vec<_> = placed.iter().map(|(id, placement)| (*id, placement)).collect();
            prop_assert_eq!(LinkUse::of(&fabric, &jobs).shared(), 0, "{}", name);
        }
    }

    /// Isolated segments are placed exactly if one block can hold the job, or if the uncrossed part of some group can
    /// hold its parts. More free capacity never makes the policy refuse.
    #[test]
    fn isolated_segments_find_every_place(scene in scene(), nodes: Index, segment in prop::option::of(1u32..8)) {
        let (mut occupancy, mut held) = scene.occupancy();
        let fabric = Arc::clone(occupancy.fabric());
        let request = request(nodes, segment, &fabric);
        let segment = segment_of(&request, &fabric);
        loop {
            let in_one_block = free(&occupancy).iter().any(|&room| room >= request.nodes);
            let in_groups = (1..=fabric.depth()).any(|level| {
                (0..fabric.groups(level)).any(|group| {
                    let mut room = vec![0; fabric.blocks() as usize];
                    for node in fabric.node_range(level, group).filter(|&node| occupancy.idle().contains(node)) {
                        let clear = |below| occupancy.crossing(below, fabric.group(below, node)) == 0;
                        room[fabric.block(node) as usize] += u32::from((1..level).all(clear));
                    }
                    fits(&room, request.nodes, segment)
                })
            });
            let placed = rule("segments-isolated").place(&request, &occupancy);
            prop_assert_eq!(placed.is_ok(), in_one_block || in_groups);
            prop_assert_eq!(rule("segments-isolated").can_place(&request, &occupancy).is_ok(), placed.is_ok());
            let Some(gone) = held.pop() else { break };
            occupancy.release(&gone);
        }
    }

    /// Counts by block equal those of the nodes after any claims, releases and nodes out of service.
    #[test]
    fn counts_by_block_follow_the_nodes(scene in scene(), leaving: Vec<bool>, back: Vec<Index>) {
        let (mut occupancy, held) = scene.occupancy();
        let fabric = Arc::clone(occupancy.fabric());
        for (placement, _) in held.iter().zip(leaving).filter(|(_, leaves)| *leaves) {
            occupancy.release(placement);
        }
        for node in back {
            occupancy.set_in_service(node.index(fabric.nodes() as usize) as NodeIndex, true);
        }
        let held = |block: u32| fabric.block_nodes(block).iter().filter(|&&n| occupancy.held(n) > 0).count();
        prop_assert_eq!(occupancy.idle_in_blocks(), free(&occupancy));
        for block in 0..fabric.blocks() {
            prop_assert_eq!(occupancy.held_in_block(block) as usize, held(block));
        }
    }
}

/// A request for a part of a node goes to a node with jobs as long as one can hold it, here to the free half of node
/// 40, and only then to an idle node.
#[test]
fn parts_of_nodes_open_no_idle_node() {
    let mut occupancy = racks();
    let fabric = Arc::clone(occupancy.fabric());
    let share = Share::part(8, 0);
    let begun = Placement::new(&fabric, vec![40], share.clone());
    occupancy.claim(&begun).unwrap();
    let request = Request { share, ..Request::whole_nodes(1, 1, 1.0) };
    let placed = rule("segments").place(&request, &occupancy).unwrap();
    assert_eq!(placed.nodes(), [40], "the half that is free, though rack 2 had no other job");
    occupancy.claim(&placed).unwrap();
    let next = rule("segments").place(&request, &occupancy).unwrap();
    assert_eq!(next.nodes()[0] / 18, 1, "a node of the tightest rack with jobs");
}

/// Four racks of 18 nodes, 36 nodes per leaf, with 2, 10, 0 and 0 nodes held.
fn racks() -> Occupancy {
    let of: Vec<u32> = (0..72).map(|node| 1 + node / 18).collect();
    let fabric = machine([36, 2], &of);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&whole(&fabric, &[0, 1])).unwrap();
    occupancy.claim(&whole(&fabric, &(18..28).collect::<Vec<_>>())).unwrap();
    occupancy
}

fn racks_of(request: &Request) -> Result<Vec<(u32, usize)>, Refusal> {
    let occupancy = racks();
    let placement = rule("segments").place(request, &occupancy)?;
    let of = |rack| placement.nodes().iter().filter(|&&node| node / 18 == rack).count();
    Ok((0..4).map(|rack| (rack, of(rack))).filter(|&(_, count)| count > 0).collect())
}

/// 8 nodes are free on rack 1 and 16 on rack 0. A job of 8 takes rack 1, one of 16 rack 0, one of 17 an empty rack. In
/// segments of 16, a job of 48 nodes takes the rest of rack 0 and two empty racks; with 49, the extra node is next to
/// the last segment. In segments of 17, a job of 38 nodes takes the empty racks, and its rest of 4 goes to rack 1.
#[test]
fn on_four_racks() {
    let ask =
        |nodes, segment| racks_of(&Request { segment, ..Request::whole_nodes(1, nodes, 1.0) });
    assert_eq!(ask(8, None).unwrap(), [(1, 8)]);
    assert_eq!(ask(16, Some(16)).unwrap(), [(0, 16)]);
    assert_eq!(ask(17, None).unwrap(), [(2, 17)]);
    assert_eq!(ask(48, Some(16)).unwrap(), [(0, 16), (2, 16), (3, 16)]);
    assert_eq!(ask(49, Some(16)).unwrap(), [(0, 16), (2, 16), (3, 17)]);
    assert_eq!(ask(38, Some(17)).unwrap(), [(1, 4), (2, 17), (3, 17)]);
    assert_eq!(ask(54, Some(18)), Err(Refusal::NotNow { wanted: 54, free: 52 }));
    let empty = Occupancy::new(Arc::clone(racks().fabric()));
    let wider = Request { segment: Some(20), ..Request::whole_nodes(1, 40, 1.0) };
    let never = rule("segments").never(&wider, &empty);
    assert_eq!(never, Some(Refusal::Never { wanted: 40, most: 18 }), "no rack has 20 nodes");
}

/// Four racks of 8 nodes, each on a leaf, are half held. A job of two segments of 4 fits in no rack and takes two of
/// them, where no other job crosses the leaf. If the rack's own job crosses its leaf, there is no placement.
#[test]
fn isolated_segments_spread_over_leaves_if_no_leaf_holds_them() {
    let of: Vec<u32> = (0..32).map(|node| 1 + node / 8).collect();
    let fabric = machine([8, 4], &of);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    for rack in 0..4 {
        occupancy.claim(&whole(&fabric, &(rack * 8..rack * 8 + 4).collect::<Vec<_>>())).unwrap();
    }
    let request = Request { segment: Some(4), ..Request::whole_nodes(1, 8, 1.0) };
    let placed = rule("segments-isolated").place(&request, &occupancy).unwrap();
    assert_eq!(placed.nodes(), [4, 5, 6, 7, 12, 13, 14, 15]);
    occupancy.claim(&whole(&fabric, &[4, 12, 20])).unwrap();
    assert!(rule("segments-isolated").place(&request, &occupancy).is_err());
}
