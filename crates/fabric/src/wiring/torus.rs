//! Tori and meshes: routers at the points of a grid, joined along each dimension; pods of cubes joined by optical
//! switches.

use std::sync::OnceLock;

use super::grid_leaves::{GridLeaves, GridWords, strides, times};
use super::leaves::Leaves;
use super::prisms::Shapes;
use crate::check::{most_cables, positive, too_many_cables};
use crate::description::{SwitchCable, TorusDescription};
use crate::error::InputError;
use crate::ids::{CableId, GroupIndex};

/// The fewest and the most dimensions.
const DIMENSIONS: std::ops::RangeInclusive<usize> = 2..=6;
/// The most routers in one dimension: its places are the bits of a word.
const MOST_IN_DIMENSION: u32 = u64::BITS;
/// The most routers of a cube: they are the bits of a word.
const MOST_IN_CUBE: u32 = u64::BITS;
/// The most routers of a machine.
const MOST_ROUTERS: u64 = 1 << 20;
const WORDS: GridWords = GridWords { kind: "torus", switch: "router", switches: "routers" };

/// The cables of a torus or mesh. A router may have no nodes.
///
/// Routing is in the order of the dimensions: a message goes to its place in the first dimension, then in the second,
/// and so on. In a ring it goes the shorter way; if both are equally short, either.
///
/// In a pod of cubes, optical switches join the faces of whole cubes. The grid then has a dimension of cubes, which has
/// no cables, in front of those of a cube, which have no wrap: see [`Torus::links_of`].
///
/// A link of a [`LinkSet`](super::LinkSet) is a bit of a router, in one plane for each dimension and direction: from
/// the router to the next, then from the next to the router. Pods have two more planes for each dimension of a cube: the
/// optical ports of the low face and of the high face.
#[derive(Debug, Clone)]
pub struct Torus {
    description: TorusDescription,
    /// The routers in each dimension of the grid.
    pub(super) sizes: Vec<u32>,
    /// The difference in number of neighbours in each dimension.
    pub(super) strides: Vec<u32>,
    /// Whether each dimension is a ring.
    pub(super) rings: Vec<bool>,
    /// Cubes in each dimension, with the switches set to one torus; empty if there are no cubes.
    cubes: Vec<u32>,
    leaves: GridLeaves,
    /// The first cable of each dimension, counted from 0; then their number.
    first_cable: Vec<u32>,
    pub(super) shapes: OnceLock<Shapes>,
}

impl Torus {
    pub(super) fn build(
        description: &TorusDescription,
        leaves: &Leaves<'_>,
    ) -> Result<Self, InputError> {
        check_torus(description)?;
        let TorusDescription { dimensions, wrap, cube, .. } = description;
        let mut torus = Torus {
            sizes: dimensions.clone(),
            strides: Vec::new(),
            rings: dimensions.iter().zip(wrap).map(|(&size, &wrap)| wrap && size > 2).collect(),
            cubes: Vec::new(),
            leaves: GridLeaves::default(),
            first_cable: vec![0],
            shapes: OnceLock::new(),
            description: description.clone(),
        };
        if !cube.is_empty() {
            torus.cubes = dimensions.iter().zip(cube).map(|(&all, &side)| all / side).collect();
            torus.sizes =
                std::iter::once(torus.cubes.iter().product()).chain(cube.iter().copied()).collect();
            torus.rings = vec![false; torus.sizes.len()];
        }
        torus.strides = strides(&torus.sizes);
        let mut cables = 0u64;
        for dimension in 0..torus.sizes.len() {
            cables += u64::from(torus.cables_of(dimension));
            torus.first_cable.push(cables as u32);
        }
        if cables > most_cables(leaves.nodes) {
            return Err(too_many_cables(leaves.machine, leaves.nodes));
        }
        torus.leaves = GridLeaves::find(WORDS, dimensions, &description.routers, leaves)?;
        Ok(torus)
    }

    /// The description that the torus was built from.
    pub fn description(&self) -> &TorusDescription {
        &self.description
    }

    /// The number of routers, with or without nodes.
    #[inline]
    pub fn routers(&self) -> u32 {
        self.sizes.iter().product()
    }

    /// The routers in each dimension of the grid. The first dimension of a pod is that of its cubes.
    #[inline]
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// The difference in number of neighbours in each dimension.
    #[inline]
    pub fn strides(&self) -> &[u32] {
        &self.strides
    }

    /// Whether each dimension is a ring.
    #[inline]
    pub fn rings(&self) -> &[bool] {
        &self.rings
    }

    /// Whether the machine is a pod: cubes whose faces optical switches join.
    #[inline]
    pub fn is_pod(&self) -> bool {
        !self.cubes.is_empty()
    }

    /// The router of a leaf of the hierarchy.
    #[inline]
    pub fn router_of_leaf(&self, leaf: GroupIndex) -> u32 {
        self.leaves.switch_of(leaf)
    }

    /// The leaf of a router; `None` if it has no nodes.
    #[inline]
    pub fn leaf_of_router(&self, router: u32) -> Option<GroupIndex> {
        self.leaves.leaf_of(router)
    }

    /// Whether all routers have nodes, and leaves have the order of routers.
    #[inline]
    pub fn is_in_order(&self) -> bool {
        self.leaves.is_in_order()
    }

    /// Whether each router has one of the machine's `nodes`, and nodes have the order of routers.
    pub fn is_plain(&self, nodes: u32) -> bool {
        nodes == self.routers() && self.leaves.is_in_order()
    }

    /// The name of a router.
    pub fn router_name(&self, router: u32) -> &str {
        self.leaves.name(router)
    }

    /// The place of a router in one dimension of the grid.
    #[inline]
    pub fn place(&self, router: u32, dimension: usize) -> u32 {
        router / self.strides[dimension] % self.sizes[dimension]
    }

    /// The place of a router in one dimension of the machine; in a pod, with the switches set to one torus.
    fn place_in_machine(&self, router: u32, dimension: usize) -> u32 {
        if !self.is_pod() {
            return self.place(router, dimension);
        }
        let after: u32 = self.cubes[dimension + 1..].iter().product();
        let cube = self.place(router, 0) / after % self.cubes[dimension];
        cube * self.sizes[dimension + 1] + self.place(router, dimension + 1)
    }

    /// Links between two places of a dimension of the machine.
    fn distance(&self, dimension: usize, a: u32, b: u32) -> u32 {
        let size = self.description.dimensions[dimension];
        let straight = a.abs_diff(b);
        let is_ring = self.is_pod() || self.rings[dimension];
        if is_ring { straight.min(size - straight) } else { straight }
    }

    /// Hops between two routers. Those of two cubes of a pod count as if the switches joined the whole machine to one
    /// torus.
    pub fn hops(&self, a: u32, b: u32) -> u32 {
        let places =
            |dimension| (self.place_in_machine(a, dimension), self.place_in_machine(b, dimension));
        let dimensions = 0..self.description.dimensions.len();
        dimensions
            .map(|dimension| {
                let (a, b) = places(dimension);
                self.distance(dimension, a, b)
            })
            .sum()
    }

    /// The sum of hops over all unordered pairs, for some nodes on each of these routers. O(routers + size^2) in each
    /// dimension.
    pub fn pair_hops(&self, on_routers: &[(u32, f64)]) -> f64 {
        let mut hops = 0.0;
        for (dimension, &size) in self.description.dimensions.iter().enumerate() {
            let mut on_place = vec![0.0; size as usize];
            for &(router, count) in on_routers {
                on_place[self.place_in_machine(router, dimension) as usize] += count;
            }
            for (a, &on_a) in (0..).zip(&on_place) {
                for (b, &on_b) in (0..).zip(&on_place[..a as usize]) {
                    hops += f64::from(self.distance(dimension, a, b)) * on_a * on_b;
                }
            }
        }
        hops
    }

    /// Whether cables join the routers of a dimension of the grid: not the cubes of a pod.
    #[inline]
    pub fn is_cabled(&self, dimension: usize) -> bool {
        dimension > 0 || !self.is_pod()
    }

    /// The number of cables of a dimension of the grid.
    fn cables_of(&self, dimension: usize) -> u32 {
        let (size, routers) = (self.sizes[dimension], self.routers());
        match (self.is_cabled(dimension), self.rings[dimension]) {
            (false, _) => 0,
            (true, true) => routers,
            (true, false) => routers / size * (size - 1),
        }
    }

    /// The number of cables between routers. Those between cubes and optical switches do not count.
    pub fn cables(&self) -> u32 {
        self.first_cable.last().copied().unwrap_or_default()
    }

    /// The cable from a router to the next one of a dimension that has cables, counted from 0; the last router of a mesh
    /// has none.
    pub(crate) fn cable_after(&self, router: u32, dimension: usize) -> CableId {
        let (size, stride) = (self.sizes[dimension], self.strides[dimension]);
        let from = size - u32::from(!self.rings[dimension]);
        let (outer, rest) = (router / (size * stride), router % (size * stride));
        self.first_cable[dimension] + outer * from * stride + rest
    }

    /// The routers that a cable joins; cables are counted from 0 here, dimension by dimension.
    pub fn cable(&self, cable: CableId) -> Option<SwitchCable> {
        if cable >= self.cables() {
            return None;
        }
        let dimension = self.first_cable.partition_point(|&first| first <= cable) - 1;
        let (size, stride) = (self.sizes[dimension], self.strides[dimension]);
        let number = cable - self.first_cable[dimension];
        let from = size - u32::from(!self.rings[dimension]);
        let (outer, rest) = (number / (from * stride), number % (from * stride));
        let lower = outer * size * stride + rest;
        let next = if self.place(lower, dimension) + 1 == size {
            lower - (size - 1) * stride
        } else {
            lower + stride
        };
        let of_machine = dimension - usize::from(self.is_pod());
        let bandwidth = self.description.bandwidth[of_machine];
        Some(SwitchCable { between: (lower, next), count: 1, bandwidth })
    }
}

/// Checks what does not depend on the nodes.
pub(crate) fn check_torus(description: &TorusDescription) -> Result<(), InputError> {
    let TorusDescription { dimensions, wrap, cube, bandwidth, .. } = description;
    let refuse = |message: String| Err(InputError::whole(message));
    let is_size = |size: &u32| (1..=MOST_IN_DIMENSION).contains(size);
    if !DIMENSIONS.contains(&dimensions.len()) || !dimensions.iter().all(is_size) {
        return refuse(format!(
            "a torus has {} to {} dimensions of 1 to {MOST_IN_DIMENSION} routers, not {dimensions:?}",
            DIMENSIONS.start(),
            DIMENSIONS.end()
        ));
    }
    if dimensions.iter().map(|&size| u64::from(size)).product::<u64>() > MOST_ROUTERS {
        return refuse(format!(
            "a torus of {} has more than {MOST_ROUTERS} routers",
            times(dimensions)
        ));
    }
    let count = dimensions.len();
    if wrap.len() != count || bandwidth.len() != count {
        return refuse(format!(
            "wrap and bandwidth of a torus need a value for each of the {count} dimensions"
        ));
    }
    if let Some(bandwidth) = bandwidth.iter().find(|&&bandwidth| !positive(bandwidth)) {
        return refuse(format!("bandwidth of cables must be above 0, not {bandwidth} B/s"));
    }
    if cube.is_empty() {
        return Ok(());
    }
    let divides = |(&all, &side): (&u32, &u32)| side > 0 && all % side == 0;
    let fits = cube.len() == count && dimensions.iter().zip(cube).all(divides);
    if !fits || cube.iter().product::<u32>() > MOST_IN_CUBE || cube.len() == *DIMENSIONS.end() {
        return refuse(format!(
            "a cube of {} cannot be one of a machine of {}: its sides must divide the dimensions, which are at most 5, \
             and it has at most {MOST_IN_CUBE} routers",
            times(cube),
            times(dimensions)
        ));
    }
    if wrap.contains(&false) {
        return refuse(
            "optical switches join cubes to rings: leave out wrap, or make it true".to_owned(),
        );
    }
    Ok(())
}
