//! The messages and bytes of the NAS benchmarks, by closed formulas for what the source of NPB 3.3-MPI sends.
#![allow(clippy::unwrap_used)]

use topolane_traffic::{Traffic, pattern};

const DOUBLE: f64 = 8.0;

fn traffic(text: &str, ranks: u32) -> Traffic {
    pattern(text).unwrap().traffic(ranks, 0).unwrap()
}

fn phase(text: &str, ranks: u32, name: &str) -> Traffic {
    let phases = pattern(text).unwrap().phases(ranks, 0).unwrap();
    phases.into_iter().find(|phase| phase.name == name).unwrap().traffic
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

/// Of 2^27 keys of 4 bytes, all but a p-th change ranks. Every pair of ranks also sends a count of 4 bytes.
#[test]
fn is_sends_all_keys_but_those_that_stay() {
    for ranks in [4u32, 16, 31] {
        let p = f64::from(ranks);
        let keys = phase("is(class=C)", ranks, "keys");
        close(keys.bytes(), 134_217_728.0 * 4.0 * (1.0 - 1.0 / p) + 4.0 * p * (p - 1.0));
        close(keys.messages(), 2.0 * p * (p - 1.0));
        // The verification sends p - 1 messages of one key, once in ten iterations.
        close(phase("is(class=C)", ranks, "verification").messages(), (p - 1.0) / 10.0);
    }
    // 1,024 buckets and 5 test keys of 4 bytes are more than 2,048 bytes, so Rabenseifner's algorithm is used.
    close(phase("is(class=C)", 8, "bucket sizes").bytes(), 2.0 * 7.0 * 4116.0);
    close(phase("is(class=D)", 2, "keys").bytes(), 2f64.powi(31) * 2.0 + 8.0);
}

/// On a square grid of r rows and columns, every rank sends its n/r rows of the product to log2 r partners. It also
/// sends them across the diagonal, unless it lies on the diagonal. It does so 26 times an iteration.
#[test]
fn cg_on_a_square() {
    let (n, r, log) = (150_000.0, 8.0, 3.0);
    let cg = traffic("cg(class=C)", 64);
    let vectors = 26.0 * (64.0 * log + 56.0);
    let sums = 64.0 * log;
    close(cg.messages(), vectors + 53.0 * sums);
    close(cg.bytes(), (vectors * n / r + (52.0 + 2.0) * sums) * DOUBLE);
    // Along row 1, rank 8 sends to the ranks 1, 2 and 4 columns on. Across the diagonal it sends to rank 1.
    let partners: Vec<u32> = cg.sent_by(8).iter().map(|entry| entry.to).collect();
    assert_eq!(partners, [1, 9, 10, 12]);
}

/// With twice as many columns as rows, two ranks share a piece of n/r, so all vectors are half as long.
#[test]
fn cg_on_an_oblong() {
    let (n, r, log) = (150_000.0, 4.0, 3.0);
    let cg = traffic("cg(class=C)", 32);
    // Of the 4 x 4 blocks of two ranks, the 4 on the diagonal send nothing across it.
    let vectors = 26.0 * (32.0 * log + 24.0);
    let sums = 32.0 * log;
    close(cg.messages(), vectors + 53.0 * sums);
    close(cg.bytes(), (vectors * n / r / 2.0 + 54.0 * sums) * DOUBLE);
    // Ranks beyond a power of two are idle.
    assert_eq!(traffic("cg(class=C)", 47).entries(), cg.entries());
}

/// Row 15 of 16 has 4,687 of 75,000 rows. Of two neighbours the even one keeps 2,344 and the odd one 2,343. In their
/// exchange each sends what the other keeps.
#[test]
fn cg_shares_an_odd_piece() {
    let cg = traffic("cg(class=B)", 512);
    for (from, to, sent) in [(480, 481, 2343.0), (481, 480, 2344.0)] {
        let entry = cg.sent_by(from).iter().find(|entry| entry.to == to).unwrap();
        close(entry.bytes, (26.0 * sent + 54.0) * DOUBLE);
    }
}

/// A grid of x by y ranks has (x - 1) y + x (y - 1) neighbours, each of which is sent a line of 5 unknowns for every
/// inner plane, forwards or back, and a face two points deep. The lines along x cover the n - 2 inner points of y, so
/// all lines together have (x - 1)(n - 2) + (y - 1)(n - 2) points for each plane and sweep.
#[test]
fn lu_sends_lines_and_faces() {
    for (ranks, x, y) in [(16, 4.0, 4.0), (32, 8.0, 4.0), (13, 13.0, 1.0), (36, 6.0, 6.0)] {
        let n = 162.0;
        let both_ways = 2.0 * ((x - 1.0) * y + x * (y - 1.0));
        let sweeps = phase("lu(class=C)", ranks, "sweeps");
        close(sweeps.messages(), both_ways * (n - 2.0));
        let lines = 2.0 * ((x - 1.0) + (y - 1.0)) * (n - 2.0);
        close(sweeps.bytes(), lines * 5.0 * DOUBLE * (n - 2.0));
        let faces = phase("lu(class=C)", ranks, "faces");
        close(faces.messages(), both_ways);
        close(faces.bytes(), 2.0 * ((x - 1.0) + (y - 1.0)) * n * n * 10.0 * DOUBLE);
    }
}

/// p^2 ranks cut the cube into p^3 cells. Of the p + 1 planes along an axis, p - 1 are inside. Each of their n^2 points
/// is sent both ways, two deep, with 5 unknowns. The system of a line is passed on p - 1 times.
#[test]
fn bt_sends_faces_and_lines() {
    for (ranks, p) in [(16, 4.0), (25, 5.0), (81, 9.0)] {
        let n: f64 = 162.0;
        let faces = phase("bt(class=C)", ranks, "faces");
        close(faces.messages(), p * p * 6.0);
        close(faces.bytes(), 3.0 * (p - 1.0) * n * n * 2.0 * 2.0 * 5.0 * DOUBLE);
        let lines = phase("bt(class=C)", ranks, "lines");
        close(lines.messages(), p * p * 3.0 * 2.0 * (p - 1.0));
        let cell = ((n / p).floor() + 1.0).powi(2);
        close(lines.bytes(), p * p * 3.0 * (p - 1.0) * cell * (30.0 + 5.0) * DOUBLE);
    }
    assert_eq!(traffic("bt(class=C)", 31).entries(), traffic("bt(class=C)", 25).entries());
    // A rank's cells have six neighbours, the same for all its cells.
    assert!((0..25).all(|rank| traffic("bt(class=C)", 25).sent_by(rank).len() == 6));
}

/// 8 ranks lie as 2 x 2 x 2. While every rank has points, all six borders of a rank go to three other ranks. At a level
/// of m points for each rank and axis, a border has m m, (m + 2) m or (m + 2)^2 points. From 2^9 points down to the
/// coarsest level of 2, every rank has at least one point, so no rank sits out.
#[test]
fn mg_exchanges_the_borders_of_all_levels() {
    let mg = traffic("mg(class=C)", 8);
    let level = |m: f64, times: f64| times * 2.0 * (m * m + (m + 2.0) * m + (m + 2.0) * (m + 2.0));
    let points: f64 = level(1.0, 2.0) + (1..9).map(|l| level(f64::from(1 << l), 3.0)).sum::<f64>();
    close(mg.bytes(), 8.0 * points * DOUBLE);
    close(mg.messages(), 8.0 * 6.0 * (2.0 + 3.0 * 8.0));
    // Borders grow from axis to axis: along x, to rank 1, they have m m points; along z, to rank 4, (m + 2)^2.
    for (to, more) in [(1, 0.0), (4, 2.0)] {
        let border = |l: i32| 2.0 * (f64::from(1 << l) + more).powi(2);
        let sum = 2.0 * border(0) + (1..9).map(|l| 3.0 * border(l)).sum::<f64>();
        let entry = mg.sent_by(0).iter().find(|entry| entry.to == to).unwrap();
        close(entry.bytes, sum * DOUBLE);
    }
    assert!((0..8).all(|rank| mg.sent_by(rank).len() == 3));
}

/// 64 ranks lie as 4 x 4 x 4. At the coarsest level, of 2 points for each axis, only 8 ranks remain, and the others get
/// their points from them. `comm3` sends 6 borders for 64 ranks at the 8 finer levels and for 8 ranks at the coarsest.
/// `comm3_ex` at the second level sends, along every axis, from 2 of 4 ranks, both ways.
#[test]
fn mg_leaves_ranks_out_at_coarse_levels() {
    let mg = traffic("mg(class=C)", 64);
    let comm3 = 6.0 * (64.0 * 3.0 * 8.0 + 8.0 * 2.0);
    let comm3_ex = 3.0 * 2.0 * 16.0 * 2.0;
    close(mg.messages(), comm3 + comm3_ex);
}

/// Three allreduces, of 8, 8 and 80 bytes, by recursive doubling send p log2 p messages each.
#[test]
fn ep_sends_next_to_nothing() {
    let ep = traffic("ep", 32);
    close(ep.messages(), 3.0 * 32.0 * 5.0);
    close(ep.bytes(), (8.0 + 8.0 + 80.0) * 32.0 * 5.0);
}
