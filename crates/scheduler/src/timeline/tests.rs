//! A timeline gives the same answers as an array with the held bits of each moment.

use proptest::prelude::*;

use super::{CROSSED, Openings, Timeline};

/// The number of moments of the array; the last one never ends.
const MOMENTS: usize = 40;

/// Random nodes of a leaf with six, and whether it is crossed.
fn bits() -> impl Strategy<Value = u64> {
    (0u64..64, any::<bool>()).prop_map(|(nodes, crossed)| nodes | if crossed { CROSSED } else { 0 })
}

/// The bits held at any moment from `start` to `end`.
fn held(moments: &[u64], start: usize, end: usize) -> u64 {
    let last = end.max(start + 1).min(MOMENTS);
    moments[start.min(MOMENTS - 1)..last.max(start.min(MOMENTS - 1) + 1)]
        .iter()
        .fold(0, |all, &one| all | one)
}

/// Converts a moment to a time; the end of the last moment is infinite.
fn time(moment: usize) -> f64 {
    if moment < MOMENTS { moment as f64 } else { f64::INFINITY }
}

/// The openings found by trying all windows that overlap the span from `from` to `until`.
fn openings(
    moments: &[u64],
    bits: u64,
    nodes: u64,
    (from, until): (usize, usize),
    now: usize,
) -> Openings {
    let mut found =
        Openings { first: f64::INFINITY, last: f64::NEG_INFINITY, ..Openings::default() };
    found.with_nodes.resize(nodes.count_ones() as usize, 0.0);
    for start in now..until {
        for end in (start + 1).max(from + 1)..=MOMENTS {
            let taken = held(moments, start, end);
            if bits & !taken == 0 {
                continue;
            }
            let length = time(end) - start as f64;
            let free = (nodes & !taken).count_ones() as usize;
            if bits & nodes & !taken != 0 {
                for most in &mut found.with_nodes[..free] {
                    *most = most.max(length);
                }
            }
            if free > 0 && taken & CROSSED == 0 {
                found.uncrossed = found.uncrossed.max(length);
            }
            found.longest = found.longest.max(length);
            found.first = found.first.min(start as f64);
            found.last = found.last.max(time(end));
        }
    }
    found
}

proptest! {
    /// Each change reports how the bits change, for exactly its time span. Answers equal those of the array, also after
    /// the past has been dropped.
    #[test]
    fn it_answers_as_an_array(
        changes in prop::collection::vec((any::<bool>(), bits(), 0..MOMENTS, 0..20usize), 0..25),
        asked in prop::collection::vec((bits(), 0..MOMENTS - 1, 1..12usize, 1..12usize, 1u32..4), 1..12),
        now in 0..30usize,
    ) {
        let (mut timeline, mut moments) = (Timeline::new(), [0u64; MOMENTS]);
        let mut holds = 0;
        for (is_hold, bits, start, length) in changes {
            let end = (start + length).min(MOMENTS);
            let when = (start as f64, time(end));
            let mut said = Vec::new();
            let says = |span, change| said.push((span, change));
            if is_hold {
                let is_free = held(&moments, start, end) & bits == 0;
                prop_assert_eq!(timeline.hold(bits, when, says), is_free);
                holds += 1;
            } else {
                timeline.give_back(bits, when, says);
            }
            let mut reached = when.0;
            for ((begin, until), [old, new]) in said {
                prop_assert_eq!(begin.to_bits(), reached.to_bits());
                reached = until;
                for moment in &moments[begin as usize..if until < f64::INFINITY { until as usize } else { MOMENTS }] {
                    prop_assert_eq!(*moment, old);
                    prop_assert_eq!(if is_hold { old | bits } else { old & !bits }, new);
                }
            }
            prop_assert!(length == 0 || reached.to_bits() == when.1.to_bits());
            for moment in &mut moments[start..end] {
                *moment = if is_hold { *moment | bits } else { *moment & !bits };
            }
            prop_assert_eq!(timeline.holds(), holds);
        }
        let all: Vec<_> = timeline.spans().collect();
        prop_assert!(all.windows(2).all(|two| two[0].0.1.to_bits() == two[1].0.0.to_bits()));
        prop_assert_eq!(all.last().map(|last| last.0.1), Some(f64::INFINITY));
        for &((begin, end), bits) in &all {
            for (moment, &held) in moments.iter().enumerate() {
                prop_assert!(!(begin..end).contains(&(moment as f64)) || held == bits);
            }
        }
        timeline.forget_before(now as f64);
        for (bits, start, length, duration, wanted) in asked {
            let start = start.max(now);
            let (end, nodes) = ((start + length).min(MOMENTS), bits & !CROSSED);
            let when = (start as f64, end as f64);
            let taken = held(&moments, start, end);
            prop_assert_eq!(timeline.held(when.0, when.1), taken);
            prop_assert_eq!(timeline.held_of(bits, when), bits & taken);
            if start > now {
                prop_assert_eq!(timeline.held_before(when.0), moments[start - 1]);
            }
            let change = (start + 1..MOMENTS).find(|&later| moments[later] != moments[later - 1]);
            let next = timeline.step_after(when.0);
            prop_assert!(when.0 < next && next <= time(change.unwrap_or(MOMENTS)));
            let room = |held: u64| (nodes & !held).count_ones();
            let room_at = |from: usize| room(held(&moments, from, from + duration));
            let first = (start..end).find(|&from| room_at(from) >= wanted).map(|from| from as f64);
            prop_assert_eq!(timeline.earliest(nodes, wanted, duration as f64, when), first);
            let rooms: Vec<(f64, u32)> = timeline.rooms(room, duration as f64, when).collect();
            prop_assert_eq!(rooms[0].0.to_bits(), when.0.to_bits());
            for moment in start..end {
                let last = rooms.iter().rfind(|room| room.0 <= moment as f64);
                let (since, most) = last.copied().unwrap_or((f64::NAN, 0));
                let now = room_at(moment);
                prop_assert!(now == most || now < most && since < moment as f64);
            }
            let found = timeline.openings(bits, nodes, when, now as f64);
            let plain = openings(&moments, bits, nodes, (start, end), now);
            prop_assert_eq!(format!("{found:?}"), format!("{plain:?}"));
        }
    }
}
