//! Several cubes of a pod, joined by optical switches.

use std::ops::Range;

use super::grid::Grid;

/// A face of a cube in one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    Low,
    High,
}

/// Layers of a cube that a chain begins or ends with, from a face on.
#[derive(Debug, Clone, Copy)]
struct End {
    cube: u32,
    face: Face,
    layers: u32,
}

/// A chain of cubes along a dimension.
#[derive(Debug, Clone)]
struct Chain {
    along: usize,
    /// Free cubes that the job takes wholly.
    whole: u32,
    /// Parts of other cubes, at most one for each face.
    ends: Vec<End>,
}

/// What is free of each cube of a pod.
struct Cubes<'a> {
    grid: &'a Grid<'a>,
    /// Routers of a cube.
    volume: u32,
    /// Cubes of which all is free.
    clean: Vec<u32>,
    /// The other cubes with free routers.
    partial: Vec<u32>,
}

/// Returns the routers of a chain of cubes for the job: whole cubes, and a part of one cube at each end or at one. Of all
/// chains it takes one with the fewest wholly free cubes, then one that leaves the fewest free layers next to its ends.
pub(super) fn routers(grid: &Grid<'_>) -> Option<Vec<u32>> {
    let cubes = Cubes::new(grid);
    let dimensions = 1..grid.search.torus.sizes().len();
    let chains = dimensions.flat_map(|along| cubes.chains(along));
    let (_, chain) = chains.min_by_key(|(price, chain)| (*price, chain.along))?;
    Some(cubes.routers_of(&chain))
}

impl<'a> Cubes<'a> {
    fn new(grid: &'a Grid<'a>) -> Self {
        let sizes = grid.search.torus.sizes();
        let volume: u32 = sizes[1..].iter().product();
        let mut cubes = Cubes { grid, volume, clean: Vec::new(), partial: Vec::new() };
        let all = u64::MAX >> (u64::BITS - volume);
        for cube in 0..sizes[0] {
            let free = cubes.bits(&grid.full, cube);
            let is_open = |dimension: usize| {
                let has_ports = [Face::Low, Face::High]
                    .iter()
                    .all(|&face| cubes.has_ports(cube, dimension, face));
                has_ports && cubes.bits(&grid.open[dimension], cube) == all
            };
            if free == all && (1..sizes.len()).all(is_open) {
                cubes.clean.push(cube);
            } else if free != 0 {
                cubes.partial.push(cube);
            }
        }
        cubes
    }

    /// The routers of a cube that are in a set.
    fn bits(&self, set: &[u64], cube: u32) -> u64 {
        self.bits_of(|word| set[word as usize], cube)
    }

    fn bits_of(&self, word: impl Fn(u32) -> u64, cube: u32) -> u64 {
        let first = cube * self.volume;
        let (at, shift) = (first / u64::BITS, first % u64::BITS);
        let low = word(at) >> shift;
        let bits = if shift + self.volume > u64::BITS {
            low | word(at + 1) << (u64::BITS - shift)
        } else {
            low
        };
        bits & (u64::MAX >> (u64::BITS - self.volume))
    }

    /// The routers of a cube with a place in a dimension.
    fn layer(&self, dimension: usize, place: u32) -> u64 {
        let torus = self.grid.search.torus;
        let is_there = |&router: &u32| torus.place(router, dimension) == place;
        (0..self.volume).filter(is_there).fold(0, |set, router| set | 1 << router)
    }

    /// Whether no job uses the optical ports of a face.
    fn has_ports(&self, cube: u32, dimension: usize, face: Face) -> bool {
        let search = self.grid.search;
        let plane = search.torus.planes_of_ports(dimension)[usize::from(face == Face::High)];
        self.bits_of(|word| search.used.word(plane + word), cube) == 0
    }

    /// The number of free layers of a cube from a face on that no job uses any link of.
    fn depth(&self, cube: u32, along: usize, face: Face) -> u32 {
        if !self.has_ports(cube, along, face) {
            return 0;
        }
        let (grid, sizes) = (self.grid, self.grid.search.torus.sizes());
        let mut able = self.bits(&grid.full, cube);
        for dimension in (1..sizes.len()).filter(|&dimension| dimension != along) {
            able &= self.bits(&grid.open[dimension], cube);
        }
        let open = self.bits(&grid.open[along], cube);
        let mut layers = 0;
        while layers < sizes[along] {
            let (place, lower) = match face {
                Face::Low => (layers, layers.wrapping_sub(1)),
                Face::High => (sizes[along] - 1 - layers, sizes[along] - 1 - layers),
            };
            let layer = self.layer(along, place);
            let is_joined = layers == 0 || self.layer(along, lower) & !open == 0;
            if layer & !able != 0 || !is_joined {
                break;
            }
            layers += 1;
        }
        layers
    }

    /// All chains along a dimension, with their prices: cubes that are wholly free, layers left over, ends.
    fn chains(&self, along: usize) -> Vec<((u32, u32, usize), Chain)> {
        let (most, wanted) = (self.grid.most, self.grid.search.wanted);
        let size = self.grid.search.torus.sizes()[along];
        let of_layer = self.volume / size * most;
        let of_cube = self.volume * most;
        let available = self.clean.len() as u32;
        let depths: Vec<(u32, [u32; 2])> = self
            .partial
            .iter()
            .map(|&cube| (cube, [Face::Low, Face::High].map(|face| self.depth(cube, along, face))))
            .collect();
        let mut chains = Vec::new();
        let mut add = |whole: u32, broken: u32, left: u32, ends: Vec<End>| {
            if whole + broken <= available {
                chains.push(((whole + broken, left, ends.len()), Chain { along, whole, ends }));
            }
        };
        let least = wanted / of_cube;
        for whole in [Some(least), least.checked_sub(1)].into_iter().flatten() {
            let layers = (wanted - whole * of_cube).div_ceil(of_layer);
            if layers == 0 {
                add(whole, 0, 0, Vec::new());
                continue;
            }
            if layers >= size {
                add(whole + layers.div_ceil(size), 0, 0, Vec::new());
            } else if let Some(&cube) = self.clean.get(whole as usize) {
                add(whole, 1, 0, vec![End { cube, face: Face::Low, layers }]);
            }
            for &(cube, depths) in &depths {
                for (face, depth) in [Face::Low, Face::High].into_iter().zip(depths) {
                    if depth >= layers && layers < size {
                        add(whole, 0, depth - layers, vec![End { cube, face, layers }]);
                    }
                }
            }
            for &(low, [depth_low, _]) in &depths {
                for &(high, [_, depth_high]) in &depths {
                    // A part of a chain is less than a cube.
                    let (most_low, most_high) = (depth_low.min(size - 1), depth_high.min(size - 1));
                    if low != high
                        && most_low + most_high >= layers
                        && most_low * most_high > 0
                        && layers > 1
                    {
                        let of_low = most_low.min(layers - 1);
                        let ends = vec![
                            End { cube: low, face: Face::Low, layers: of_low },
                            End { cube: high, face: Face::High, layers: layers - of_low },
                        ];
                        add(whole, 0, depth_low + depth_high - layers, ends);
                    }
                }
            }
        }
        chains
    }

    /// The routers of a chain. Two opposite corners of each box come first, so that the job has all of its cross-section
    /// even if it does not need all of its routers; then whole cubes, then the ends, layer by layer.
    fn routers_of(&self, chain: &Chain) -> Vec<u32> {
        let torus = self.grid.search.torus;
        let size = torus.sizes()[chain.along];
        let whole =
            self.clean.iter().take(chain.whole as usize).map(|&cube| (cube, 0..size, false));
        let end = |end: &End| match end.face {
            Face::Low => (end.cube, 0..end.layers, false),
            Face::High => (end.cube, size - end.layers..size, true),
        };
        let boxes: Vec<(u32, Range<u32>, bool)> = whole.chain(chain.ends.iter().map(end)).collect();
        let mut first = Vec::new();
        let mut rest = Vec::new();
        for (cube, places, is_reversed) in boxes {
            let layers = places.map(|place| {
                let layer = self.layer(chain.along, place);
                let inside = move |&router: &u32| layer >> router & 1 == 1;
                (0..self.volume).filter(inside).map(|router| cube * self.volume + router).collect()
            });
            let mut layers: Vec<Vec<u32>> = layers.collect();
            if is_reversed {
                layers.reverse();
            }
            let mut routers: Vec<u32> = layers.concat();
            let corners = [routers.iter().min().copied(), routers.iter().max().copied()];
            routers.retain(|&router| !corners.contains(&Some(router)));
            rest.append(&mut routers);
            first.extend(corners.into_iter().flatten());
        }
        first.dedup();
        first.append(&mut rest);
        first
    }
}
