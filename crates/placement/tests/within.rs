//! Requests that must lie in one group, and slots that another system counts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use topolane_fabric::{Fabric, pgft};
use topolane_placement::{
    Amounts, Occupancy, POLICIES, Refusal, Request, Share, place_within, policy,
};

/// Two pods of two leaves of three nodes.
fn state() -> Occupancy {
    Occupancy::new(Arc::new(Fabric::build(&pgft("n", &[3, 2, 2], &[1, 2, 2], &[1, 1, 1])).unwrap()))
}

fn request(nodes: u32, within: &str) -> Request {
    Request { within: within.parse().unwrap(), ..Request::whole_nodes(1, nodes, 1.0) }
}

/// For every policy, a required group holds all nodes, and a request for more than any such group has never fits.
#[test]
fn a_required_group_holds_all() {
    for info in POLICIES {
        let rule = policy(info.name, 0).unwrap();
        let state = state();
        let Ok(placed) = place_within(&*rule, &request(2, "required:leaf"), &state) else {
            continue;
        };
        let leaf = placed.nodes()[0] / 3;
        assert!(placed.nodes().iter().all(|node| node / 3 == leaf), "{}", info.name);
        let refused = place_within(&*rule, &request(4, "required:leaf"), &state);
        assert!(refused.is_err(), "{}", info.name);
    }
    let rule = policy("first-fit", 0).unwrap();
    let refused = place_within(&*rule, &request(4, "required:leaf"), &state());
    assert_eq!(refused.unwrap_err(), Refusal::Never { wanted: 4, most: 3 });
}

/// The group with the fewest free slots that suffice is taken; if other jobs hold it, the refusal is only for now.
#[test]
fn the_tightest_group_first() {
    let rule = policy("first-fit", 0).unwrap();
    let mut state = state();
    let ask = Request { eligible: None, ..request(1, "required:2") };
    let one = rule.place(&ask, &state).unwrap();
    state.claim(&one).unwrap();
    assert_eq!(place_within(&*rule, &request(5, "required:2"), &state).unwrap().nodes()[0], 1);
    assert_eq!(place_within(&*rule, &request(3, "required:leaf"), &state).unwrap().nodes()[0], 3);
    for _ in 0..3 {
        let next = place_within(&*rule, &request(3, "required:leaf"), &state).unwrap();
        state.claim(&next).unwrap();
    }
    let refused = place_within(&*rule, &request(3, "required:leaf"), &state);
    assert_eq!(refused.unwrap_err(), Refusal::NotNow { wanted: 3, free: 2 });
}

/// If a preferred group cannot hold the request, the next level is tried, and finally the whole machine.
#[test]
fn a_preferred_group_may_be_left() {
    let rule = policy("first-fit", 0).unwrap();
    let mut state = state();
    let nodes = |asked: &Request, state: &Occupancy| {
        place_within(&*rule, asked, state).unwrap().nodes().to_vec()
    };
    state.claim(&rule.place(&request(3, "unconstrained"), &state).unwrap()).unwrap();
    assert_eq!(nodes(&request(5, "preferred:leaf"), &state), [6, 7, 8, 9, 10]);
    assert_eq!(nodes(&request(8, "preferred:leaf"), &state).len(), 8);
}

/// With slots counted by another system, the free slots differ from those on an idle machine.
#[test]
fn not_now_and_never_of_counted_slots() {
    let rule = policy("isolated", 0).unwrap();
    let free: Arc<[u32]> = vec![0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0].into();
    let room: Arc<[u32]> = vec![2; 12].into();
    let ask = |nodes| Request {
        nodes,
        stacked: true,
        share: Share::Part(Amounts::default()),
        slots: Some(Arc::clone(&free)),
        room: Some(Arc::clone(&room)),
        ..Request::default()
    };
    assert_eq!(rule.place(&ask(4), &state()).unwrap().nodes(), [3, 3, 4, 4]);
    assert_eq!(rule.place(&ask(5), &state()), Err(Refusal::NotNow { wanted: 5, free: 4 }));
    assert_eq!(rule.place(&ask(25), &state()), Err(Refusal::Never { wanted: 25, most: 24 }));
}
