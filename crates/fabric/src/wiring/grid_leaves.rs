//! Which leaf of the hierarchy is which switch of a grid.

use std::collections::HashMap;

use super::leaves::Leaves;
use crate::check::check_name;
use crate::error::{InputError, shown};
use crate::ids::GroupIndex;

/// No leaf.
const NONE: u32 = u32::MAX;

/// The words that errors use.
#[derive(Debug, Clone, Copy)]
pub(super) struct GridWords {
    pub kind: &'static str,
    pub switch: &'static str,
    pub switches: &'static str,
}

/// The switches of a grid by number, and their leaves. A switch may have no nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct GridLeaves {
    names: Vec<String>,
    switch_of_leaf: Vec<u32>,
    leaf_of_switch: Vec<u32>,
    is_in_order: bool,
}

impl GridLeaves {
    /// Finds the switch of each leaf by its name. Without names, the leaves are the switches, in order.
    pub fn find(
        words: GridWords,
        dimensions: &[u32],
        names: &[String],
        hierarchy: &Leaves<'_>,
    ) -> Result<Self, InputError> {
        let GridWords { kind, switch: word, switches: plural } = words;
        if !hierarchy.is_even {
            return Err(InputError::whole(format!(
                "a {kind} must be one site, all of it equally deep"
            )));
        }
        let switches = dimensions.iter().product::<u32>();
        let names: Vec<String> = match names {
            [] => hierarchy.names.iter().map(|&name| name.to_owned()).collect(),
            names => names.to_vec(),
        };
        if names.len() != switches as usize {
            return Err(InputError::whole(format!(
                "a {kind} of {} has {switches} {plural}, not {}",
                times(dimensions),
                names.len()
            )));
        }
        let mut by_name = HashMap::new();
        for (switch, name) in (0..).zip(&names) {
            check_name(word, name)?;
            if by_name.insert(name.as_str(), switch).is_some() {
                return Err(InputError::whole(format!("two {plural} are named {}", shown(name))));
            }
        }
        let mut leaf_of_switch = vec![NONE; switches as usize];
        let mut switch_of_leaf = Vec::new();
        for (leaf, &name) in (0..).zip(&hierarchy.names) {
            let Some(&switch) = by_name.get(name) else {
                return Err(InputError::whole(format!(
                    "switch {} has nodes, but the {kind} has no {word} of this name",
                    shown(name)
                )));
            };
            let own = &mut leaf_of_switch[switch as usize];
            if *own != NONE {
                return Err(InputError::whole(format!("two leaves are named {}", shown(name))));
            }
            *own = leaf;
            switch_of_leaf.push(switch);
        }
        let is_in_order = (0..switches).all(|switch| leaf_of_switch[switch as usize] == switch);
        Ok(GridLeaves { names, switch_of_leaf, leaf_of_switch, is_in_order })
    }

    #[inline]
    pub fn switch_of(&self, leaf: GroupIndex) -> u32 {
        self.switch_of_leaf[leaf as usize]
    }

    #[inline]
    pub fn leaf_of(&self, switch: u32) -> Option<GroupIndex> {
        Some(self.leaf_of_switch[switch as usize]).filter(|&leaf| leaf != NONE)
    }

    pub fn name(&self, switch: u32) -> &str {
        &self.names[switch as usize]
    }

    /// Whether all switches have nodes, and leaves have the order of switches.
    pub fn is_in_order(&self) -> bool {
        self.is_in_order
    }
}

/// The difference in number of neighbours in each dimension, the last of which is the fastest.
pub(super) fn strides(sizes: &[u32]) -> Vec<u32> {
    let mut stride = 1;
    let mut strides: Vec<u32> = Vec::with_capacity(sizes.len());
    for &size in sizes.iter().rev() {
        strides.push(stride);
        stride *= size;
    }
    strides.reverse();
    strides
}

/// `4 x 4 x 4`.
pub(crate) fn times(sizes: &[u32]) -> String {
    sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ")
}
