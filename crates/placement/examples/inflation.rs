//! The inflation experiment of "Beware of Fragmentation" (USENIX ATC'23): tasks arrive one after another and stay; one that does
//! not fit is dropped. Prints, for one policy, the share of all GPUs that no task holds when the GPUs requested so far reach given
//! shares of all GPUs. `benches/gpu/inflation.py` draws the tasks and makes the table.
//!
//! cargo run --release -p topolane-placement --example inflation -- nodes.csv POLICY MARK... < tasks.csv
//!
//! A node is `name,cpu_milli,memory_mib,gpus,type`, a task `cpu_milli,memory_mib,gpus,thousandths,types` with types joined by `|`.
//! A core stands for a thousandth of one.
#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::error::Error;
use std::io::BufRead;
use std::sync::Arc;

use topolane_fabric::{
    Cabling, Children, Description, Fabric, Group, NodeDescription, NodeKind, NodeSet,
    SiteDescription, resources::ResourceCounts,
};
use topolane_placement::{
    Amounts, GpuPart, Occupancy, Policy, Request, SeenRequests, Share, policy,
};

type Failed = Box<dyn Error>;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [nodes, name, marks @ ..] = &arguments[..] else {
        return Err("usage: inflation NODES.csv POLICY MARK...".into());
    };
    let rule = policy(name, 1).ok_or_else(|| format!("there is no policy {name}"))?;
    let marks: Vec<f64> = marks.iter().map(|mark| mark.parse()).collect::<Result<_, _>>()?;
    let mut cluster = Cluster::read(&std::fs::read_to_string(nodes)?)?;
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let task = cluster.task(index as u64, &line?)?;
        cluster.offer(&*rule, &task);
        while let Some(mark) = marks.get(cluster.left.len()) {
            if cluster.arrived < mark * cluster.gpus {
                break;
            }
            cluster.left.push(1.0 - cluster.given / cluster.gpus);
        }
    }
    let left: Vec<String> = cluster.left.iter().map(|left| format!("{left:.6}")).collect();
    println!("{} {}", cluster.refused, left.join(" "));
    Ok(())
}

/// The nodes, what tasks hold of them, and the GPUs requested so far.
struct Cluster {
    occupancy: Occupancy,
    types: Vec<String>,
    by_types: HashMap<String, Arc<NodeSet>>,
    seen: SeenRequests,
    gpus: f64,
    arrived: f64,
    given: f64,
    refused: u64,
    left: Vec<f64>,
}

impl Cluster {
    fn read(text: &str) -> Result<Self, Failed> {
        let (mut kinds, mut nodes, mut types) = (Vec::new(), Vec::new(), Vec::new());
        let mut gpus = 0;
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let [name, cores, memory, count, kind] = fields[..] else {
                return Err(format!("not a node: {line}").into());
            };
            let count: u32 = count.parse()?;
            let mut made = NodeKind {
                sockets: 1,
                cores_per_socket: cores.parse()?,
                memory: memory.parse::<u64>()? << 20,
                ..NodeKind::default()
            };
            if count > 0 {
                made.resources = ResourceCounts::from([("gpu", count)]);
            }
            let found = kinds.iter().position(|known| known == &made);
            let kind_index = found.unwrap_or_else(|| {
                kinds.push(made);
                kinds.len() - 1
            });
            nodes.push(NodeDescription { name: name.to_owned(), kind: kind_index as u32 });
            types.push(kind.to_owned());
            gpus += count;
        }
        let children = Children::Nodes(nodes);
        let root = Group { name: "leaf".to_owned(), switches: Vec::new(), children };
        let cabling = vec![Cabling::new(1, 1, 1e9)];
        let machine = Description {
            name: "cluster".to_owned(),
            sites: vec![SiteDescription { root, cabling, missing: Vec::new() }],
            wans: Vec::new(),
            kinds,
            domains: Vec::new(),
            ..Description::default()
        };
        let fabric = Arc::new(Fabric::build(&machine)?);
        Ok(Cluster {
            occupancy: Occupancy::new(fabric),
            types,
            by_types: HashMap::new(),
            seen: SeenRequests::default(),
            gpus: f64::from(gpus),
            arrived: 0.0,
            given: 0.0,
            refused: 0,
            left: Vec::new(),
        })
    }

    fn task(&mut self, id: u64, line: &str) -> Result<Request, Failed> {
        let fields: Vec<&str> = line.split(',').collect();
        let [cores, memory, gpus, thousandths, types] = fields[..] else {
            return Err(format!("not a task: {line}").into());
        };
        let resources = self.occupancy.fabric().resources();
        let (gpus, thousandths): (u64, u16) = (gpus.parse()?, thousandths.parse()?);
        let part = resources.index("gpu").filter(|_| gpus == 1);
        let part = part.and_then(|gpu| GpuPart::new(gpu, thousandths));
        let whole = if part.is_some() { 0 } else { gpus };
        let memory = memory.parse::<u64>()? << 20;
        let counts = [("cores", cores.parse()?), ("memory", memory), ("gpu", whole)];
        let amounts = Amounts::named(resources, counts)?.with_gpu_part(part);
        let eligible = (!types.is_empty()).then(|| self.nodes_of(types));
        let share = Share::Part(amounts);
        Ok(Request { share, eligible, ..Request::whole_nodes(id, 1, 1.0) })
    }

    /// The nodes with some types.
    fn nodes_of(&mut self, types: &str) -> Arc<NodeSet> {
        let nodes = self.occupancy.fabric().nodes();
        let of = &self.types;
        let make = || {
            let named = |&node: &u32| types.split('|').any(|name| name == of[node as usize]);
            Arc::new(NodeSet::of(nodes, (0..nodes).filter(named)))
        };
        Arc::clone(self.by_types.entry(types.to_owned()).or_insert_with(make))
    }

    fn offer(&mut self, rule: &dyn Policy, request: &Request) {
        let fabric = Arc::clone(self.occupancy.fabric());
        if let Some(demand) = self.seen.note(request, &fabric) {
            self.occupancy.set_demand(demand);
        }
        let Share::Part(amounts) = &request.share else { return };
        let gpus = amounts.gpu_thousandths(fabric.resources()) as f64 / 1000.0;
        self.arrived += gpus;
        match rule.place(request, &self.occupancy) {
            Ok(placement) if self.occupancy.claim(&placement).is_ok() => self.given += gpus,
            _ => self.refused += 1,
        }
    }
}
