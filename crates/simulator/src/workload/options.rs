//! Options of all log readers.

/// Options for reading a log. An option that does not apply to the format is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Cores per node, to convert processors to nodes; by default from the header of the log.
    pub cores_per_node: Option<u32>,
    /// GPUs per node, to convert GPUs to nodes in logs that count only GPUs (Philly, Lingjun).
    pub gpus_per_node: Option<u32>,
    /// Read only the jobs of this partition (SWF: number or name; sacct and CSV: name).
    pub partition: Option<String>,
    /// Whether jobs take cores and memory of nodes that others may share (sacct); otherwise they take whole nodes.
    pub shared: bool,
}
