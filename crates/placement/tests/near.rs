//! Adding slots to a job that already has some.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex, pgft};
use topolane_placement::{
    Amounts, Occupancy, POLICIES, Placement, Refusal, Request, Share, place_near, policy,
};

/// Two pods of two leaves of three nodes.
fn state() -> Occupancy {
    Occupancy::new(Arc::new(Fabric::build(&pgft("n", &[3, 2, 2], &[1, 2, 2], &[1, 1, 1])).unwrap()))
}

fn near(nodes: u32, members: &[NodeIndex], free: [u32; 12]) -> Request {
    Request {
        nodes,
        stacked: true,
        share: Share::Part(Amounts::default()),
        members: members.to_vec(),
        slots: Some(Arc::from(free)),
        room: Some(Arc::from([2; 12])),
        ..Request::whole_nodes(1, nodes, f64::INFINITY)
    }
}

fn hold(state: &mut Occupancy, nodes: &[NodeIndex]) {
    let share = Share::Part(Amounts::default());
    let placement = Placement::new(state.fabric(), nodes.to_vec(), share).isolated(true);
    state.adopt(&placement).unwrap();
}

fn nodes_under(
    name: &str,
    request: &Request,
    state: &Occupancy,
) -> Result<Vec<NodeIndex>, Refusal> {
    let rule = policy(name, 0).unwrap();
    place_near(&*rule, request, state).map(|placement| placement.nodes().to_vec())
}

/// Members stay first, in their order. A new slot goes where hops are fewest: on the same node, leaf, pod, then
/// elsewhere.
#[test]
fn the_nearest_free_slot() {
    let state = state();
    let free = [0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1];
    for (free_too, wanted) in [(vec![1], 1), (vec![2], 2), (vec![], 3)] {
        let mut free = free;
        for &node in &free_too {
            free[node] = 1;
        }
        let request = near(1, &[1, 0], free);
        assert_eq!(nodes_under("first-fit", &request, &state).unwrap(), [1, 0, wanted]);
        assert_eq!(nodes_under("isolated", &request, &state).unwrap(), [1, 0, wanted]);
    }
}

/// The policy decides where the job may lie: `isolated` never accepts a place where links would be shared, however
/// near.
#[test]
fn the_policy_has_the_last_word() {
    let mut state = state();
    hold(&mut state, &[4, 6]);
    let free = [0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1];
    assert_eq!(nodes_under("first-fit", &near(1, &[0], free), &state).unwrap(), [0, 3]);
    let refused = nodes_under("isolated", &near(1, &[0], free), &state);
    assert!(matches!(refused, Err(Refusal::WouldShareLinks { .. })), "{refused:?}");
    let mut state = self::state();
    hold(&mut state, &[3, 6]);
    hold(&mut state, &[0, 10]);
    let refused = nodes_under("isolated", &near(1, &[1], free), &state);
    assert!(matches!(refused, Err(Refusal::WouldShareLinks { .. })), "{refused:?}");
}

/// A leaf whose links are taken is skipped, also for several slots at once.
#[test]
fn the_next_nearest_where_the_nearest_is_refused() {
    let mut state = Occupancy::new(Arc::new(
        Fabric::build(&pgft("n", &[3, 4, 1], &[1, 2, 2], &[1, 1, 1])).unwrap(),
    ));
    hold(&mut state, &[3, 3]);
    hold(&mut state, &[4, 7]);
    let free = [0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1];
    assert_eq!(nodes_under("isolated", &near(1, &[0], free), &state).unwrap(), [0, 9]);
    assert_eq!(nodes_under("isolated", &near(3, &[0], free), &state).unwrap(), [0, 9, 10, 11]);
    let refused = nodes_under("isolated", &near(4, &[0], free), &state);
    assert!(matches!(refused, Err(Refusal::WouldShareLinks { .. })), "{refused:?}");
}

/// With too few slots, the refusal is not now or never.
#[test]
fn too_few_slots() {
    let state = state();
    let refused = nodes_under("isolated", &near(13, &[0], [1; 12]), &state);
    assert_eq!(refused.unwrap_err(), Refusal::NotNow { wanted: 13, free: 12 });
    let refused = nodes_under("isolated", &near(25, &[0], [1; 12]), &state);
    assert_eq!(refused.unwrap_err(), Refusal::Never { wanted: 25, most: 24 });
}

/// For every policy that answers, members stay and new slots are free ones.
#[test]
fn members_stay_where_they_are() {
    for info in POLICIES {
        let free = [0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 1, 2];
        if let Ok(nodes) = nodes_under(info.name, &near(2, &[3, 0], free), &state()) {
            assert_eq!(nodes, [3, 0, 1, 5], "{}", info.name);
        }
    }
}
