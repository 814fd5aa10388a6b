//! Finds the nodes on which jobs ran according to a log.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, InputError, NodeIndex, expand};

use crate::workload::Job;

type NamedNodes = Option<Arc<[NodeIndex]>>;

/// Node lists of a log as node indices. Lists recur, so each is looked up once.
pub(crate) struct RecordedNodes<'a> {
    fabric: &'a Fabric,
    known: HashMap<String, Arc<[NodeIndex]>>,
}

impl<'a> RecordedNodes<'a> {
    pub fn on(fabric: &'a Fabric) -> Self {
        RecordedNodes { fabric, known: HashMap::new() }
    }

    /// The nodes on which a job ran, if the log names them. The inner error is for a node that the machine does not
    /// have, the outer one for a list that cannot be read.
    pub fn nodes(&mut self, job: &Job) -> Result<Result<NamedNodes, InputError>, InputError> {
        let hosts = job.recorded.as_ref().map_or("", |recorded| &recorded.hosts);
        if hosts.is_empty() {
            return Ok(Ok(None));
        }
        if let Some(nodes) = self.known.get(hosts) {
            return Ok(Ok(Some(Arc::clone(nodes))));
        }
        let of_job =
            |error: InputError| InputError::whole(format!("job {}: {}", job.id, error.message));
        let mut nodes = Vec::new();
        for name in expand(hosts).map_err(of_job)? {
            let Some(node) = self.fabric.node_named(&name) else {
                return Ok(Err(InputError::whole(format!(
                    "job {} ran on node {name}, which machine {} does not have; nor do the others \
                     have all their nodes there",
                    job.id,
                    self.fabric.name()
                ))));
            };
            nodes.push(node);
        }
        let nodes: Arc<[NodeIndex]> = nodes.into();
        self.known.insert(hosts.to_owned(), Arc::clone(&nodes));
        Ok(Ok(Some(nodes)))
    }
}
