//! The output formats for machines, and what each cannot represent.

use super::infiniband::{ibnetdiscover_named, ibsim_net_named};
use super::labels::{kubernetes_named, topograph_named};
use super::machine_toml::machine_toml_named;
use super::names::{NameLimits, Names};
use super::slurm_blocks::{slurm_blocks_named, slurm_yaml_named};
use super::slurm_topology::slurm_topology_named;
use super::{
    ibnetdiscover, ibsim_net, kubernetes, kueue, machine_toml, slurm_blocks, slurm_topology,
    slurm_yaml, topograph,
};
use crate::error::InputError;
use crate::fabric::Fabric;
use crate::node_kind::NodeKind;

/// An output format for machines.
pub struct Writer {
    /// The name of the format, as options take it.
    pub name: &'static str,
    /// Writes a machine in the format.
    pub write: fn(&Fabric) -> String,
    /// Writes a machine and records which names were changed.
    named: fn(&Fabric, &mut Names) -> String,
    says: &'static [DescriptionPart],
}

/// A part of a machine description.
#[derive(Clone, Copy, PartialEq)]
enum DescriptionPart {
    Tree,
    Cables,
    Domains,
    Inside,
    Wans,
}

use DescriptionPart::{Cables, Domains, Inside, Tree, Wans};

/// All output formats for machines.
pub const WRITERS: &[Writer] = &[
    Writer {
        name: "toml",
        write: machine_toml,
        named: machine_toml_named,
        says: &[Tree, Cables, Domains, Inside, Wans],
    },
    Writer { name: "slurm", write: slurm_topology, named: slurm_topology_named, says: &[Tree] },
    Writer {
        name: "slurm-block",
        write: slurm_blocks,
        named: slurm_blocks_named,
        says: &[Domains],
    },
    Writer {
        name: "slurm-yaml",
        write: slurm_yaml,
        named: slurm_yaml_named,
        says: &[Tree, Domains],
    },
    Writer {
        name: "ibnetdiscover",
        write: ibnetdiscover,
        named: ibnetdiscover_named,
        says: &[Tree, Cables],
    },
    Writer { name: "ibsim-net", write: ibsim_net, named: ibsim_net_named, says: &[Tree, Cables] },
    Writer {
        name: "kubernetes",
        write: kubernetes,
        named: kubernetes_named,
        says: &[Tree, Domains, Inside],
    },
    Writer {
        name: "kueue",
        write: kueue,
        named: |fabric, _| kueue(fabric),
        says: &[Tree, Domains, Inside],
    },
    Writer { name: "topograph", write: topograph, named: topograph_named, says: &[Tree, Domains] },
];

impl Writer {
    /// Returns the format with this name; `None` if there is none.
    pub fn named(name: &str) -> Option<&'static Writer> {
        WRITERS.iter().find(|writer| writer.name == name)
    }

    /// Checks that the format can have the cables of the machine.
    ///
    /// # Errors
    /// A format of cables that can only have those of trees.
    pub fn check(&self, fabric: &Fabric) -> Result<(), InputError> {
        if fabric.wiring().is_tree() || self.name == "toml" || !self.says.contains(&Cables) {
            return Ok(());
        }
        let (name, machine, kind) = (self.name, fabric.name(), fabric.wiring().name());
        Err(InputError::whole(format!(
            "{name} is written for trees only, but {machine} is a {kind}"
        )))
    }

    /// A sentence for each thing that the machine has and the format cannot represent.
    pub fn lost(&self, fabric: &Fabric) -> Vec<String> {
        let name = self.name;
        let left = |part: DescriptionPart| !self.says.contains(&part);
        let mut lost = Vec::new();
        if left(Tree) && fabric.depth() > 1 {
            lost.push(format!("{name} does not say which switches there are: they are dropped"));
        }
        if left(Cables) && !fabric.wiring().is_tree() {
            let kind = fabric.wiring().name();
            lost.push(format!("{name} does not say the cables of a {kind}: they are dropped"));
        }
        let assumed = (0..fabric.sites()).all(|site| {
            (0..fabric.depth()).all(|level| {
                let cabling = fabric.cabling(site, level);
                cabling.parents == 1 && cabling.cables == 1
            })
        });
        if left(Cables) && !assumed {
            lost.push(format!("{name} does not say how many cables there are: they are dropped"));
        }
        if left(Domains) && fabric.domains() > 0 {
            let domains = fabric.domains();
            lost.push(format!("{name} does not say domains: {domains} are dropped"));
        }
        let default = NodeKind::default();
        if left(Inside) && fabric.kinds().iter().any(|kind| *kind != default) {
            lost.push(format!("{name} does not say what is inside of nodes: it is dropped"));
        }
        if left(Wans) && fabric.wans().next().is_some() {
            lost.push(format!("{name} does not say links between sites: they are dropped"));
        }
        let outside = (0..fabric.nodes()).filter(|&node| fabric.domain(node).is_none()).count();
        if left(Tree) && outside > 0 {
            lost.push(format!("{name} names the nodes of domains only: {outside} are dropped"));
        }
        let mut names = Names::new(NameLimits::SHOWN);
        (self.named)(fabric, &mut names);
        lost.extend(names.notes(name));
        lost
    }
}
