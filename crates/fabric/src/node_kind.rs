//! The inside of a node: cores, memory and network interfaces.

use serde::{Deserialize, Serialize};

use crate::resources::{CORES, MEMORY, ResourceCounts, Resources};

/// A kind of node: its cores, memory and network interfaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct NodeKind {
    /// The number of sockets (NUMA domains).
    pub sockets: u32,
    /// The number of cores per socket.
    pub cores_per_socket: u32,
    /// The clock rate of a core in Hz.
    pub core_speed: f64,
    /// The memory in bytes.
    pub memory: u64,
    /// The number of network interfaces.
    pub nics: u32,
    /// Bandwidth of one interface in each direction, in bytes per second.
    pub nic_bandwidth: f64,
    /// Bytes per second that a single message reaches; `None` if it can use the whole interface.
    pub flow_bandwidth: Option<f64>,
    /// Seconds that a message to another node takes in addition to its bytes.
    pub latency: f64,
    /// How concurrent messages slow each other down at the interface.
    pub penalty: Penalty,
    /// Bytes per second between two processes of the node, through shared memory.
    pub copy_bandwidth: f64,
    /// Seconds that a message inside the node takes in addition to its bytes.
    pub copy_latency: f64,
    /// Bytes per second that all cores together can move to and from memory.
    pub memory_bandwidth: f64,
    /// Other resources that jobs take, with their counts: `gpu`, `gpu:h100`, `nic`, ...
    pub resources: ResourceCounts,
}

/// By how much an interface falls short of an even share if several messages use it. The factors are numbers above 0;
/// the models are in the crate `traffic`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", deny_unknown_fields, rename_all = "lowercase")]
pub enum Penalty {
    /// An even share for each message. The braces make serde refuse factors.
    Fair {},
    /// InfiniBand (Vienne 2010, as in `SimGrid`).
    InfiniBand {
        /// Cost of each message that leaves the node.
        #[serde(default = "outgoing")]
        outgoing: f64,
        /// Cost of each message that arrives.
        #[serde(default = "incoming")]
        incoming: f64,
        /// Further factor if more than two messages arrive at a receiver.
        #[serde(default = "crowded")]
        crowded: f64,
    },
    /// TCP over Gigabit Ethernet (Vienne, Martinasso, Vincent & Mehaut 2008).
    Ethernet {
        /// Cost of each of several concurrent messages.
        #[serde(default = "beta")]
        beta: f64,
        /// What messages to the busiest receivers lose compared with others.
        #[serde(default = "gamma_out", rename = "gamma-out")]
        gamma_out: f64,
        /// What messages from the busiest senders lose compared with others.
        #[serde(default = "gamma_in", rename = "gamma-in")]
        gamma_in: f64,
    },
}

fn outgoing() -> f64 {
    0.925
}

fn incoming() -> f64 {
    0.965
}

fn crowded() -> f64 {
    1.35
}

fn beta() -> f64 {
    0.75
}

fn gamma_out() -> f64 {
    0.115
}

fn gamma_in() -> f64 {
    0.036
}

impl Penalty {
    /// Returns the InfiniBand model with `SimGrid`'s factors.
    pub fn infiniband() -> Self {
        Penalty::InfiniBand { outgoing: outgoing(), incoming: incoming(), crowded: crowded() }
    }

    /// Returns the Gigabit Ethernet model with the factors of the paper.
    pub fn ethernet() -> Self {
        Penalty::Ethernet { beta: beta(), gamma_out: gamma_out(), gamma_in: gamma_in() }
    }

    /// The factors of the model, by name.
    pub fn factors(&self) -> Vec<(&'static str, f64)> {
        match *self {
            Penalty::Fair {} => Vec::new(),
            Penalty::InfiniBand { outgoing, incoming, crowded } => {
                vec![("outgoing", outgoing), ("incoming", incoming), ("crowded", crowded)]
            }
            Penalty::Ethernet { beta, gamma_out, gamma_in } => {
                vec![("beta", beta), ("gamma-out", gamma_out), ("gamma-in", gamma_in)]
            }
        }
    }

    /// The name of the model.
    pub fn name(&self) -> &'static str {
        match self {
            Penalty::Fair {} => "fair",
            Penalty::InfiniBand { .. } => "infiniband",
            Penalty::Ethernet { .. } => "ethernet",
        }
    }
}

impl NodeKind {
    /// Bytes per second that a single message reaches.
    pub fn lone_flow(&self) -> f64 {
        self.flow_bandwidth.unwrap_or(self.nic_bandwidth)
    }

    /// The number of cores of the whole node.
    pub fn cores(&self) -> u32 {
        self.sockets.saturating_mul(self.cores_per_socket)
    }

    /// The amount of each of these resources, by index.
    pub fn counts(&self, resources: &Resources) -> Vec<u64> {
        let mut counts = vec![0; resources.names().len()];
        counts[CORES] = u64::from(self.cores());
        counts[MEMORY] = self.memory;
        for (name, count) in self.resources.iter() {
            if let Some(index) = resources.index(name) {
                counts[index] = u64::from(count);
            }
        }
        resources.include_types(&mut counts);
        counts
    }
}

impl Default for NodeKind {
    /// Returns a node of Cab: two sockets of eight cores, 2.6 GHz, 32 GB, one InfiniBand QDR port. Its latencies and
    /// memory speeds are typical of its year, not measured.
    fn default() -> Self {
        NodeKind {
            sockets: 2,
            cores_per_socket: 8,
            core_speed: 2.6e9,
            memory: 32 << 30,
            nics: 1,
            nic_bandwidth: 4e9,
            flow_bandwidth: None,
            latency: 1.5e-6,
            penalty: Penalty::Fair {},
            copy_bandwidth: 4e9,
            copy_latency: 5e-7,
            memory_bandwidth: 6.4e10,
            resources: ResourceCounts::default(),
        }
    }
}
