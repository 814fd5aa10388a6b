//! Every pattern does what its rule says, counted by formulas and not by the pattern's own loops.
// Counts are small whole numbers, so they are exact.
#![allow(clippy::float_cmp, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use topolane_traffic::PhaseKind::{self, Collective, PointToPoint};
use topolane_traffic::{PATTERNS, Patterned, Traffic, TrafficEntry, pattern};

fn traffic(text: &str, ranks: u32) -> Traffic {
    pattern(text).unwrap().traffic(ranks, 7).unwrap()
}

/// The bytes that one rank sends another.
fn bytes(traffic: &Traffic, from: u32, to: u32) -> f64 {
    traffic.sent_by(from).iter().find(|entry| entry.to == to).map_or(0.0, |entry| entry.bytes)
}

fn receivers(traffic: &Traffic, from: u32) -> BTreeSet<u32> {
    traffic.sent_by(from).iter().map(|entry| entry.to).collect()
}

fn is_symmetric(traffic: &Traffic) -> bool {
    let back = |entry: &topolane_traffic::TrafficEntry| bytes(traffic, entry.to, entry.from);
    traffic.entries().iter().all(|entry| (entry.bytes - back(entry)).abs() < 1e-9)
}

/// On sides of 3 or more, a rank of a 4-D torus has 8 neighbours. 81 ranks lie as 3 x 3 x 3 x 3, so the neighbours of
/// rank 0 are 1 and 2 steps of 1, 3, 9 and 27 ranks away.
#[test]
fn a_4d_stencil_has_eight_neighbours() {
    let stencil = traffic("stencil4d(bytes=10)", 81);
    assert_eq!(receivers(&stencil, 0), BTreeSet::from([1, 2, 3, 6, 9, 18, 27, 54]));
    assert!((0..81).all(|rank| receivers(&stencil, rank).len() == 8));
    assert!(is_symmetric(&stencil));
    assert_eq!(stencil.bytes(), 81.0 * 8.0 * 10.0);
}

/// Along a side of 2, both neighbours are the same rank, which gets both messages. 16 ranks lie as 2 x 2 x 2 x 2.
#[test]
fn both_ways_around_a_short_axis_add_up() {
    let stencil = traffic("stencil4d(bytes=10)", 16);
    assert_eq!(receivers(&stencil, 0), BTreeSet::from([1, 2, 4, 8]));
    assert!(stencil.entries().iter().all(|entry| (entry.bytes, entry.messages) == (20.0, 2.0)));
}

/// A prime number of ranks lies on one axis: every rank sends both ways around a ring.
#[test]
fn a_prime_stencil_is_a_ring() {
    let stencil = traffic("stencil4d(bytes=10)", 13);
    for rank in 0..13 {
        assert_eq!(receivers(&stencil, rank), BTreeSet::from([(rank + 1) % 13, (rank + 12) % 13]));
    }
}

#[test]
fn a_ring_sends_to_the_next_rank_only() {
    let ring = traffic("ring(bytes=3)", 5);
    assert_eq!((ring.entries().len(), ring.bytes()), (5, 15.0));
    assert!((0..5).all(|rank| bytes(&ring, rank, (rank + 1) % 5) == 3.0));
}

/// Every rank makes 6 to 20 draws, each less than 3 ranks away along every axis of the torus, here 8 x 8 x 8. A draw of
/// the rank itself is not sent, so there may be fewer messages but not more.
#[test]
fn an_unstructured_mesh_draws_its_neighbours_nearby() {
    let mesh = traffic("unstructured3d(bytes=2)", 512);
    for rank in 0..512u32 {
        let messages: f64 = mesh.sent_by(rank).iter().map(|entry| entry.messages).sum();
        assert!((1.0..=20.0).contains(&messages), "{rank}: {messages}");
        for to in receivers(&mesh, rank) {
            for stride in [1, 8, 64] {
                let distance = (to / stride % 8 + 8 - rank / stride % 8) % 8;
                assert!(distance.min(8 - distance) < 3);
            }
        }
    }
    // A rank makes 13 draws in the mean. A draw is the rank itself with probability 1/27.
    let mean = mesh.messages() / 512.0;
    assert!((mean - 13.0 * 26.0 / 27.0).abs() < 0.7, "{mean}");
    assert_eq!(mesh.bytes(), 2.0 * mesh.messages());
    assert_ne!(mesh, pattern("unstructured3d(bytes=2)").unwrap().traffic(512, 8).unwrap());
}

/// Ranks of the first half are paired with ranks of the second. Every rank has one partner, which sends back.
#[test]
fn pairs_are_a_matching_of_the_halves() {
    for ranks in [2, 64, 65] {
        let pairs = traffic("pairs(bytes=4)", ranks);
        let half = ranks / 2;
        for rank in 0..half {
            let partners = receivers(&pairs, rank);
            assert_eq!(partners.len(), 1);
            assert!(partners.iter().all(|&to| (half..2 * half).contains(&to)));
        }
        let all: BTreeSet<u32> = (0..half).flat_map(|rank| receivers(&pairs, rank)).collect();
        assert_eq!(all.len(), half as usize);
        assert!(is_symmetric(&pairs));
        assert_eq!(pairs.bytes(), f64::from(2 * half) * 4.0);
    }
}

/// 60 ranks lie as 5 x 4 x 3. Along d axes, a rank sends to as many others as the sum of (side - 1) over these axes.
#[test]
fn sub_communicators_are_the_lines_of_a_grid() {
    for (dims, degree) in [(1, 4), (2, 4 + 3), (3, 4 + 3 + 2)] {
        let lines = traffic(&format!("suba2a(dims={dims}, bytes=1)"), 60);
        assert!((0..60).all(|rank| receivers(&lines, rank).len() == degree), "{dims}");
        assert!(is_symmetric(&lines));
    }
    let lines = traffic("suba2a(dims=2)", 60);
    assert_eq!(receivers(&lines, 0), BTreeSet::from([1, 2, 3, 4, 5, 10, 15]));
}

#[test]
fn all_to_all_is_everybody_to_everybody_else() {
    let all = traffic("alltoall(bytes=2)", 9);
    assert_eq!((all.entries().len(), all.bytes()), (72, 144.0));
    assert_eq!(traffic("suba2a(bytes=2)", 7), traffic("alltoall(bytes=2)", 7));
}

#[test]
fn uniform_sends_its_number_of_messages_to_others() {
    let uniform = traffic("uniform(bytes=2, messages=50)", 20);
    for rank in 0..20 {
        let sent: f64 = uniform.sent_by(rank).iter().map(|entry| entry.messages).sum();
        assert_eq!(sent, 50.0);
    }
    let received: f64 =
        uniform.entries().iter().filter(|entry| entry.to == 3).map(|entry| entry.messages).sum();
    assert!((20.0..80.0).contains(&received), "{received}");
}

/// The bytes of an allreduce of n bytes by p ranks, of which q = 2^k take part in the exchanges (Thakur et al. 2005):
/// recursive doubling q k n, Rabenseifner 2 n (q - 1), a ring 2 n (p - 1). Each of the p - q other ranks adds 2 n, for
/// its data into the exchange and the result back.
#[test]
fn allreduce_moves_what_its_algorithm_moves() {
    for ranks in 2u32..70 {
        let k = (f64::from(ranks) + 0.5).log2().floor();
        let (p, q, n) = (f64::from(ranks), k.exp2(), 6000.0);
        let moved = |algorithm: &str| {
            traffic(&format!("allreduce(bytes={n}, algorithm={algorithm})"), ranks).bytes()
        };
        let others = 2.0 * n * (p - q);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b, "{ranks}: {a} {b}");
        close(moved("recursive-doubling"), q * k * n + others);
        close(moved("rabenseifner"), 2.0 * n * (q - 1.0) + others);
        close(moved("ring"), 2.0 * n * (p - 1.0));
    }
}

/// As in MPICH, up to 2,048 bytes are reduced by recursive doubling, and more by Rabenseifner's algorithm.
#[test]
fn allreduce_chooses_by_size() {
    for (size, algorithm) in [(2048, "recursive-doubling"), (2049, "rabenseifner")] {
        let named = format!("allreduce(bytes={size}, algorithm={algorithm})");
        assert_eq!(traffic(&format!("allreduce(bytes={size})"), 12), traffic(&named, 12));
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    for (text, says) in [
        ("stencil", "there is none of that name; there are stencil4d"),
        ("ring(bytes=1", "the bracket is not closed"),
        ("ring(size=1)", "no parameter \"size\"; there are bytes"),
        ("ring(bytes)", "\"bytes\" is not parameter=value"),
        ("ring(bytes=1, bytes=2)", "bytes is given twice"),
        ("ring(bytes=-1)", "bytes \"-1\" is not a number from 0"),
        ("ring(bytes=NaN)", "bytes \"NaN\" is not a number"),
        ("suba2a(dims=4)", "dims \"4\" is not a whole number from 1 to 3"),
        ("suba2a(dims=2.5)", "dims \"2.5\" is not a whole number"),
        ("is(class=E)", "class \"E\" is not one of S, W, A, B, C, D"),
        ("allreduce(algorithm=tree)", "is not one of auto, recursive-doubling"),
    ] {
        let message = pattern(text).unwrap_err().message;
        assert!(message.contains(says) && message.contains(text), "{message}");
    }
    let refused = |text: &str, ranks| pattern(text).unwrap().traffic(ranks, 0).unwrap_err().message;
    let message = refused("unstructured3d(least=9, most=8)", 4);
    assert!(message.contains("least 9 is more than most 8"), "{message}");
    // This is refused before it is built, because its entries would take 17 GB or more.
    assert!(refused("alltoall", 30_000).contains("more than the 16777216 entries"));
    for info in PATTERNS {
        assert!(refused(info.name, u32::MAX).contains("4294967295 ranks are more than"));
    }
    // All-to-all traffic has at most 4,096 ranks.
    assert!(refused("alltoall", 4097).contains("4097 ranks with 4096 entries each"));
}

fn texts() -> impl Strategy<Value = String> {
    let names: Vec<&str> = PATTERNS.iter().map(|info| info.name).collect();
    let argument = "(bytes|class|dims|least|most|reach|messages|algorithm)=\
        (-?[0-9]{1,4}(\\.5)?|[SWABCD]|ring|NaN|inf|1e30|auto|rabenseifner)";
    (proptest::sample::select(names), prop::collection::vec(argument, 0..3), "[(),= ]{0,2}")
        .prop_map(|(name, given, noise)| format!("{name}({}){noise}", given.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any text is a pattern or an error. The text of a pattern gives the same pattern again. Its traffic is in range,
    /// the same for the same seed, and the sum of its phases.
    #[test]
    fn any_text_any_ranks(text in texts(), ranks in 0u32..200, seed in any::<u64>()) {
        let Ok(asked) = pattern(&text) else { return Ok(()) };
        prop_assert_eq!(pattern(&asked.to_string()).unwrap().to_string(), asked.to_string());
        let Ok(traffic) = asked.traffic(ranks, seed) else { return Ok(()) };
        prop_assert_eq!(traffic.ranks(), ranks);
        prop_assert!(traffic.entries().iter().all(|e| e.from < ranks && e.to < ranks && e.from != e.to));
        prop_assert_eq!(&asked.traffic(ranks, seed).unwrap(), &traffic);
        let phases = asked.phases(ranks, seed).unwrap();
        let sum: f64 = phases.iter().map(|phase| phase.traffic.bytes()).sum();
        prop_assert!((sum - traffic.bytes()).abs() <= 1e-9 * sum);
        if ranks < 2 {
            prop_assert!(traffic.entries().is_empty());
        }
    }

    #[test]
    fn noise_is_refused_not_followed(text in "\\PC{0,30}") {
        let _ = pattern(&text);
    }

    /// With its defaults, every pattern works for every number of ranks. Patterns whose rule is the same both ways are
    /// symmetric.
    #[test]
    fn defaults_work_for_all_ranks(ranks in 2u32..200, seed in any::<u64>()) {
        for info in PATTERNS {
            let traffic = pattern(info.name).unwrap().traffic(ranks, seed).unwrap();
            // Of 2 or 3 ranks BT uses only one.
            prop_assert!(traffic.messages() > 0.0 || info.name == "bt" && ranks < 4, "{}", info.name);
            let symmetric = ["stencil4d", "pairs", "suba2a", "alltoall", "allreduce", "ep"];
            if symmetric.contains(&info.name) {
                prop_assert!(is_symmetric(&traffic), "{}", info.name);
            }
        }
    }
}

#[test]
fn phases_say_how_their_messages_come_about() {
    let kinds = |text: &str| -> Vec<PhaseKind> {
        pattern(text).unwrap().phases(16, 0).unwrap().iter().map(|phase| phase.kind).collect()
    };
    assert_eq!(kinds("is"), [Collective, Collective, PointToPoint]);
    assert_eq!(kinds("alltoall"), [Collective]);
    assert_eq!(kinds("cg"), [PointToPoint]);
}

/// A measured matrix of 4 ranks is used for 2 and for 6. On 2 ranks, ranks 0 and 1 become the first and ranks 2 and 3
/// the second; what the two of one rank sent each other is dropped. On 6 ranks the last two are idle. The pattern has
/// only its own phase.
#[test]
fn a_measured_matrix_is_folded_onto_other_numbers_of_ranks() {
    let entry = |from, to, bytes| TrafficEntry { from, to, bytes, messages: 1.0 };
    let entries = [entry(0, 1, 1.0), entry(0, 2, 2.0), entry(1, 3, 4.0), entry(3, 0, 8.0)];
    let measured = Arc::new(Traffic::new(4, entries).unwrap());
    let pattern = Patterned::measured("mine", Arc::clone(&measured));
    assert_eq!(pattern.name(), "mine");
    let two = pattern.traffic(2, 0).unwrap();
    let folded = [TrafficEntry { messages: 2.0, ..entry(0, 1, 6.0) }, entry(1, 0, 8.0)];
    assert_eq!(two.entries(), folded);
    assert_eq!(pattern.traffic(4, 7).unwrap(), *measured);
    let six = pattern.traffic(6, 0).unwrap();
    assert_eq!((six.ranks(), six.entries()), (6, measured.entries()));
}
