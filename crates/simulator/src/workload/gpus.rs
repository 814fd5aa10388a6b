//! GPUs of jobs: their number, the number of nodes, and their type.

use std::sync::Arc;

use topolane_fabric::resources::Resources;
use topolane_placement::{Amounts, GpuPart, Share};

use super::parse::{amount, shown};

/// One GPU in thousandths.
pub(super) const WHOLE: u64 = 1000;

/// Parses a number of GPUs into thousandths: whole GPUs, or a part of one rounded to a thousandth.
///
/// # Errors
/// A text that is not a number, a value below a thousandth, or one over 1 that is not whole.
pub(super) fn gpus(what: &str, text: &str) -> Result<u64, String> {
    if !text.contains('.') {
        return amount(what, text).map(|whole| whole.saturating_mul(WHOLE));
    }
    let wrong = || format!("{what} {} is not a number of GPUs", shown(text.as_bytes()));
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = text.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    let thousandths = (number * WHOLE as f64).round();
    if number > 1.0 && number.fract() != 0.0 {
        return Err(format!("{what} {text}: a job takes whole GPUs, or a part of one below 1"));
    }
    if number > 0.0 && thousandths == 0.0 {
        return Err(format!("{what} {text} is less than a thousandth of a GPU"));
    }
    if thousandths > f64::from(u32::MAX) * WHOLE as f64 {
        return Err(wrong());
    }
    Ok(thousandths as u64)
}

/// The GPUs (in thousandths) and nodes that a job asks for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AskedGpus {
    /// The total GPUs.
    pub(super) all: Option<u64>,
    /// The GPUs per node.
    pub(super) per_node: Option<u64>,
    pub(super) nodes: Option<u32>,
}

impl AskedGpus {
    /// Returns the number of nodes, and the thousandths of GPUs on each if GPUs are asked for.
    ///
    /// # Errors
    /// Numbers that contradict each other, or too few of them.
    pub(super) fn settled(self) -> Result<(u32, Option<u64>), String> {
        match self {
            AskedGpus { all: None, per_node, nodes: Some(nodes) } => Ok((nodes, per_node)),
            AskedGpus { all: None, .. } => Err("a job without nodes".into()),
            AskedGpus { all: Some(all), per_node: None, nodes: Some(nodes) } => {
                let per_node = all / u64::from(nodes);
                let is_even = all % u64::from(nodes) == 0;
                if nodes > 1 && !(is_even && per_node % WHOLE == 0) {
                    let gpus = said(all);
                    return Err(format!("gpus {gpus} cannot be divided among {nodes} nodes"));
                }
                Ok((nodes, Some(per_node)))
            }
            AskedGpus { all: Some(all), per_node: None, nodes: None } => {
                Err(format!("gpus {} without nodes or gpus_per_node", said(all)))
            }
            AskedGpus { all: Some(all), per_node: Some(per_node), nodes } => {
                let needed = all.checked_div(per_node).filter(|needed| needed * per_node == all);
                let needed = needed.and_then(|needed| u32::try_from(needed).ok());
                match (needed, nodes) {
                    (Some(needed), None) if needed > 0 => Ok((needed, Some(per_node))),
                    (needed, Some(nodes)) if needed == Some(nodes) || all == 0 && per_node == 0 => {
                        Ok((nodes, Some(per_node)))
                    }
                    (_, Some(nodes)) => Err(format!(
                        "gpus {} are not gpus_per_node {} on {nodes} nodes",
                        said(all),
                        said(per_node)
                    )),
                    _ => Err(format!(
                        "gpus {} cannot be divided by gpus_per_node {}",
                        said(all),
                        said(per_node)
                    )),
                }
            }
        }
    }
}

/// Formats a number of GPUs for messages and files: `4`, `0.46`.
pub(super) fn said(thousandths: u64) -> String {
    (thousandths as f64 / WHOLE as f64).to_string()
}

/// Parses types such as `T4` or `V100M16|V100M32`. Returns each once, sorted by name.
///
/// # Errors
/// A text that is not the name of a type.
pub(super) fn types(text: &str) -> Result<Vec<&str>, String> {
    let mut types: Vec<&str> = text.split('|').map(str::trim).collect();
    types.sort_unstable();
    types.dedup();
    for kind in &types {
        topolane_fabric::resources::check_resource(&format!("gpu:{kind}"))?;
        if kind.contains(':') {
            return Err(format!("gpu_type {} is not a type of GPU", shown(text.as_bytes())));
        }
    }
    Ok(types)
}

/// GPU types, any one of which the job can use.
pub(super) type Types = Arc<[String]>;

/// Returns what a slot takes on a node, with GPUs (in thousandths) of the only type in `types`, or of any type. If
/// there are several types, also returns them: the job may use nodes that have one of them.
///
/// # Errors
/// A name that cannot be a resource, or whole GPUs in `counts` together with a part of one.
pub(super) fn share(
    resources: &mut Resources,
    mut counts: Vec<u64>,
    gpus: u64,
    types: &[&str],
) -> Result<(Share, Option<Types>), String> {
    let index = match types {
        [kind] => resources.add(&format!("gpu:{kind}"))?,
        _ => resources.add("gpu")?,
    };
    counts.resize(resources.names().len(), 0);
    let part = u16::try_from(gpus).ok().and_then(|gpus| GpuPart::new(index, gpus));
    if part.is_none() {
        counts[index] = counts[index].max(gpus / WHOLE);
    }
    resources.include_types(&mut counts);
    let whole = resources.index("gpu").map_or(0, |gpu| counts[gpu]);
    if part.is_some() && whole > 0 {
        return Err(format!("{} of a GPU and {whole} whole ones for one job", said(gpus)));
    }
    let several = (types.len() > 1).then(|| types.iter().map(|&kind| kind.to_owned()).collect());
    Ok((Share::Part(Amounts::of(&counts).with_gpu_part(part)), several))
}
