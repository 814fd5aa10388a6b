//! How to read a log, for every reader.

/// How to read a log. What does not apply to its format is not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Cores of a node, to turn processors into nodes; by default the log's header says.
    pub cores_per_node: Option<u32>,
    /// GPUs of a node, to turn GPUs into nodes where a log counts only GPUs (Philly, Lingjun).
    pub gpus_per_node: Option<u32>,
    /// Only the jobs of this partition (SWF: its number or name; sacct and CSV: its name).
    pub partition: Option<String>,
    /// Jobs take cores and memory of nodes that others may share (sacct); else whole nodes.
    pub shared: bool,
}
