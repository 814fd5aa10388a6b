//! HyperX of any size.

use super::QDR;
use super::torus::{MOST_ON_ROUTER, grid_of};
use crate::description::{Description, HyperXDescription, WiringDescription};
use crate::error::{InputError, shown};
use crate::wiring::check_hyperx;

/// Parses `hyperx(size=AxB, nodes=N, cables=PxQ)`. The groups above the switches have one place in the first dimension.
pub(super) fn from_arguments(name: &str, arguments: &str) -> Result<Description, InputError> {
    let refuse = |what: String| Err(InputError::whole(format!("machine {name}: {what}")));
    let (mut dimensions, mut cables, mut nodes) = (Vec::new(), None, 1);
    for argument in arguments.split(',').map(str::trim).filter(|each| !each.is_empty()) {
        let (key, text) = argument.split_once('=').unwrap_or((argument, ""));
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let numbers = || text.split('x').map(number).collect::<Option<Vec<u32>>>();
        match key.trim() {
            "size" => match numbers() {
                Some(sizes) => dimensions = sizes,
                None => return refuse(format!("{} is not such as size=8x8", shown(argument))),
            },
            "cables" => {
                cables = numbers();
                if cables.is_none() {
                    let words = "cables=2, or cables=1x2 for each dimension";
                    return refuse(format!("{} is not such as {words}", shown(argument)));
                }
            }
            "nodes" => match number(text).filter(|count| (1..=MOST_ON_ROUTER).contains(count)) {
                Some(count) => nodes = count,
                None => {
                    return refuse(format!(
                        "{} is not 1 to {MOST_ON_ROUTER} nodes on a switch",
                        shown(argument)
                    ));
                }
            },
            _ => {
                return refuse(format!(
                    "{} is none of size=AxB, nodes=N, cables=PxQ",
                    shown(argument)
                ));
            }
        }
    }
    let cables = match cables {
        None => vec![1; dimensions.len()],
        Some(one) if one.len() == 1 => vec![one[0]; dimensions.len()],
        Some(each) => each,
    };
    let bandwidth = vec![QDR; dimensions.len()];
    let hyperx =
        HyperXDescription { dimensions, cables, bandwidth, ..HyperXDescription::default() };
    if let Err(error) = check_hyperx(&hyperx) {
        return refuse(error.to_string());
    }
    let switches: u64 = hyperx.dimensions.iter().map(|&size| u64::from(size)).product();
    if switches * u64::from(nodes) > 1 << 20 {
        return refuse("that is more than 1,048,576 nodes".to_owned());
    }
    // Of one dimension, all switches are one group.
    let groups = if hyperx.dimensions.len() > 1 { hyperx.dimensions[0] } else { 1 };
    let children = [nodes, switches as u32 / groups, groups];
    Ok(grid_of(name, "hyperx", children, QDR, WiringDescription::HyperX(hyperx)))
}
