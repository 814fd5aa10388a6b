//! MG: exchanges faces at every level of a V-cycle.

use topolane_fabric::InputError;

use super::{DOUBLE, of_class};
use crate::patterns::grid::along;
use crate::patterns::phase::{Draft, Phase};

/// One iteration is one V-cycle and the residual after it. 2^k ranks form a grid of 2^a x 2^b x 2^c, a = floor(k/3), b
/// = floor((k - a)/2), numbered along x first. Ranks beyond a power of two are idle, as in NPB. Borders are exchanged
/// (`comm3`) twice at the coarsest level and three times at every other. If a level has fewer points than ranks along
/// an axis, some ranks do not take part and get their points on the way up (`comm3_ex`).
pub(in crate::patterns) fn mg(
    ranks: u32,
    values: &[f64],
    _: u64,
) -> Result<Vec<Phase>, InputError> {
    let levels: u32 = of_class(values, [5, 7, 8, 8, 9, 10]);
    let log = ranks.ilog2();
    let along_x = log / 3;
    let along_y = (log - along_x) / 2;
    let plane = along_x + along_y;
    let axes = [(1, 1 << along_x), (1 << along_x, 1 << along_y), (1 << plane, 1 << (log - plane))];
    let mut draft = Draft::new(ranks, 12 * u64::from(levels))?;
    for rank in 0..1 << log {
        let [xs, ys, zs] = axes.map(|(stride, side)| line(rank / stride % side, side, levels));
        for (level, ((x, y), z)) in xs.into_iter().zip(ys).zip(zs).enumerate() {
            let exchanges = if level == 0 { 2.0 } else { 3.0 };
            exchange(&mut draft, rank, &axes, &[x, y, z], exchanges);
        }
    }
    draft.alone("borders")
}

/// Adds what a rank sends at one level.
fn exchange(
    draft: &mut Draft,
    rank: u32,
    axes: &[(u32, u32); 3],
    here: &[AxisPart; 3],
    times: f64,
) {
    for (axis, &grid) in axes.iter().enumerate() {
        let next = i64::from(here[axis].next);
        let [after, before] = [next, -next].map(|steps| along(rank, grid, steps));
        if here.iter().all(|line| line.points > 0) {
            draft.repeat(rank, after, border(here, axis) * DOUBLE, times);
            draft.repeat(rank, before, border(here, axis) * DOUBLE, times);
        }
        if here[axis].gives {
            let face = whole_face(here, axis) * DOUBLE;
            draft.send(rank, after, 2.0 * face);
            draft.send(rank, before, face);
        }
    }
}

/// The part of a rank along one axis at one level.
#[derive(Clone, Copy)]
struct AxisPart {
    /// The number of its own points.
    points: u32,
    /// The distance in ranks to the next rank that takes part.
    next: u32,
    /// Whether this rank takes part in the next coarser level and the next rank does not.
    gives: bool,
}

/// A rank's part of one axis at every level. The coarsest level, with two points, comes first (`setup` in mg.f).
fn line(at: u32, side: u32, levels: u32) -> Vec<AxisPart> {
    let mut next = 1;
    let mut lines: Vec<AxisPart> = Vec::new();
    for level in (1..=levels).rev() {
        let points_at = |at: u32| ((at + 1) << level) / side - (at << level) / side;
        let (own, neighbours) = (points_at(at), points_at(at + next));
        if own == 0 || neighbours == 0 {
            next *= 2;
        }
        if let Some(finer) = lines.last_mut() {
            finer.gives = own == 1 && neighbours == 0;
        }
        lines.push(AxisPart { points: own, next, gives: false });
    }
    lines.reverse();
    lines
}

/// The number of points of a border. Along y it includes the borders received along x before; along z it includes both.
fn border(here: &[AxisPart; 3], axis: usize) -> f64 {
    let side = |other: usize| f64::from(here[other].points + if other < axis { 2 } else { 0 });
    (0..3).filter(|&other| other != axis).map(side).product()
}

/// The number of points of a face with all borders.
fn whole_face(here: &[AxisPart; 3], axis: usize) -> f64 {
    let side = |other: usize| f64::from(here[other].points + 2);
    (0..3).filter(|&other| other != axis).map(side).product()
}
