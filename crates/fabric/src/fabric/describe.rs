//! Converts a fabric back to a description, for writers.

use super::Fabric;
use crate::description::{
    Children, Description, Group, MissingCable, NodeDescription, SiteDescription, WanDescription,
    WiringDescription,
};
use crate::ids::GroupIndex;
use crate::wiring::Wiring;

impl Fabric {
    /// The levels of switches of one site alone: [`Fabric::depth`] without padding.
    pub fn site_depth(&self, site: u32) -> usize {
        self.sites[site as usize].depth
    }

    /// The description that this fabric was built from. Missing cables are sorted by number, without duplicates.
    pub fn description(&self) -> Description {
        let name = |site| self.group_name(self.depth(), site).to_owned();
        let wans = self.wans().map(|(_, (a, b), latency, bandwidth)| WanDescription {
            between: (name(a), name(b)),
            latency,
            bandwidth,
        });
        let mut sites: Vec<SiteDescription> =
            (0..self.sites()).map(|site| self.describe_site(site)).collect();
        for &id in self.missing_cables() {
            let Some((level, group, switch, parent, cable)) = self.cable_place(id) else {
                continue;
            };
            let site = self.site_of_group(level, group);
            let padding = self.depth() - self.site_depth(site);
            sites[site as usize].missing.push(MissingCable {
                level: if level > 1 { level - padding } else { level },
                group: group - self.level_range(site, level).start,
                switch,
                parent,
                cable,
            });
        }
        Description {
            name: self.name().to_owned(),
            sites,
            wans: wans.collect(),
            kinds: self.kinds().to_vec(),
            domains: self.describe_domains(),
            block_sizes: self.block_sizes().to_vec(),
            wiring: match self.wiring() {
                Wiring::Tree => WiringDescription::Tree,
                Wiring::Dragonfly(dragonfly) => {
                    WiringDescription::Dragonfly(dragonfly.description())
                }
                Wiring::Torus(torus) => WiringDescription::Torus(torus.description().clone()),
                Wiring::HyperX(hyperx) => WiringDescription::HyperX(hyperx.description().clone()),
            },
        }
    }

    fn describe_site(&self, site: u32) -> SiteDescription {
        let own = self.site_depth(site);
        let mut cabling = self.sites[site as usize].cabling.clone();
        let above_leaves = own.min(2);
        cabling.drain(above_leaves..above_leaves + self.depth() - own);
        let root = self.describe_group(self.depth(), site);
        SiteDescription { root, cabling, missing: Vec::new() }
    }

    fn describe_group(&self, level: usize, group: GroupIndex) -> Group {
        let below = self.children(level, group);
        if self.is_padding(level, group) {
            return self.describe_group(level - 1, below.start);
        }
        let children = if level == 1 {
            let node = |node| NodeDescription {
                name: self.node_name(node).to_owned(),
                kind: self.kind_index(node),
            };
            Children::Nodes(below.map(node).collect())
        } else {
            Children::Groups(below.map(|child| self.describe_group(level - 1, child)).collect())
        };
        Group {
            name: self.group_name(level, group).to_owned(),
            switches: self.switch_names(level, group).to_vec(),
            children,
        }
    }
}
