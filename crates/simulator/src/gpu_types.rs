//! Finds the nodes of jobs that can use several GPU types.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, NodeSet};
use topolane_placement::{Lack, Refusal};

use crate::workload::Job;

/// A cache of the nodes for each set of types.
#[derive(Default)]
pub(crate) struct GpuTypes {
    nodes: HashMap<Arc<[String]>, Arc<NodeSet>>,
}

impl GpuTypes {
    /// The nodes that a job may use: those whose GPUs are all of one of its types. `None` if the job names no types.
    ///
    /// # Errors
    /// The missing types, if no node has GPUs of any of them.
    pub(crate) fn nodes(
        &mut self,
        job: &Job,
        fabric: &Fabric,
    ) -> Result<Option<Arc<NodeSet>>, Refusal> {
        let Some(types) = &job.gpu_types else { return Ok(None) };
        if let Some(nodes) = self.nodes.get(types) {
            return Ok(Some(Arc::clone(nodes)));
        }
        let resources = fabric.resources();
        let gpu = resources.index("gpu");
        let kinds = types.iter().filter_map(|kind| resources.index(&format!("gpu:{kind}")));
        let kinds: Vec<usize> = kinds.collect();
        let will_do = |&node: &u32| {
            let has = fabric.counts(node);
            gpu.is_some_and(|gpu| kinds.iter().any(|&kind| has[kind] > 0 && has[kind] == has[gpu]))
        };
        let nodes = NodeSet::of(fabric.nodes(), (0..fabric.nodes()).filter(will_do));
        if nodes.iter().next().is_none() {
            let resource = format!("gpu:{}", types.join("|")).into();
            return Err(Refusal::Lacks(Lack { resource, wanted: 1, most: 0 }));
        }
        let nodes = Arc::new(nodes);
        self.nodes.insert(Arc::clone(types), Arc::clone(&nodes));
        Ok(Some(nodes))
    }
}
