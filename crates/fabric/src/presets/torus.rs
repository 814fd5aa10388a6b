//! Tori: any size, and two published machines.

use super::{QDR, node_of_kind_0, regular_group};
use crate::description::Cabling;
use crate::description::{
    Children, Description, Group, SiteDescription, TorusDescription, WiringDescription,
};
use crate::error::{InputError, shown};
use crate::node_kind::NodeKind;
use crate::wiring::check_torus;

/// Bandwidth of the cables of a Gemini router in the first and third dimension, and in the second, which has half as
/// many links (Cray's description of the network, 2010), in bytes per second; assumed.
const GEMINI: [f64; 3] = [9.4e9, 4.7e9, 9.4e9];
/// Bandwidth of a link between TPU v4 chips (Jouppi et al. 2023): 50 GB/s, in bytes per second.
const TPU_V4: f64 = 5e10;
/// The most nodes on a router.
pub(super) const MOST_ON_ROUTER: u32 = 256;

/// Returns Titan's torus: 25 x 16 x 24 Gemini routers of two nodes. 18,688 of its 19,200 places were compute nodes; that
/// the last routers are those without is assumed.
pub(super) fn titan() -> Description {
    let torus = TorusDescription {
        dimensions: vec![25, 16, 24],
        wrap: vec![true; 3],
        bandwidth: GEMINI.to_vec(),
        ..TorusDescription::default()
    };
    let mut machine = torus_of("titan", torus, 2, GEMINI[0]);
    if let Children::Groups(planes) = &mut machine.sites[0].root.children {
        let names = |plane: &Group| match &plane.children {
            Children::Groups(routers) => routers.iter().map(|router| router.name.clone()).collect(),
            Children::Nodes(_) => Vec::new(),
        };
        let routers: Vec<String> = planes.iter().flat_map(names).collect();
        if let Some(Group { children: Children::Groups(last), .. }) = planes.last_mut() {
            last.truncate(last.len() - 256);
        }
        if let WiringDescription::Torus(torus) = &mut machine.wiring {
            torus.routers = routers;
        }
    }
    machine
}

/// Returns a pod of TPU v4: 64 cubes of 4 x 4 x 4 chips, whose faces 48 optical switches join (Jouppi et al. 2023). A
/// node is a chip.
pub(super) fn tpu_v4() -> Description {
    let torus = TorusDescription {
        dimensions: vec![16; 3],
        wrap: vec![true; 3],
        cube: vec![4; 3],
        bandwidth: vec![TPU_V4; 3],
        ..TorusDescription::default()
    };
    torus_of("tpu-v4", torus, 1, TPU_V4)
}

/// Parses `torus(size=AxBxC, nodes=N, cube=PxQxR)`.
pub(super) fn from_arguments(name: &str, arguments: &str) -> Result<Description, InputError> {
    let refuse = |what: String| Err(InputError::whole(format!("machine {name}: {what}")));
    let mut torus = TorusDescription::default();
    let mut nodes = 1;
    for argument in arguments.split(',').map(str::trim).filter(|each| !each.is_empty()) {
        let (key, text) = argument.split_once('=').unwrap_or((argument, ""));
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let numbers = || text.split('x').map(number).collect::<Option<Vec<u32>>>();
        match key.trim() {
            "size" => {
                for size in text.split('x').map(str::trim) {
                    let (size, wrap) =
                        size.strip_suffix('m').map_or((size, true), |size| (size, false));
                    let Some(size) = number(size) else {
                        return refuse(format!(
                            "{} is not such as size=8x8x4, or 8mx8x4 for a dimension without wrap",
                            shown(argument)
                        ));
                    };
                    torus.dimensions.push(size);
                    torus.wrap.push(wrap);
                }
            }
            "cube" => match numbers() {
                Some(cube) => torus.cube = cube,
                None => return refuse(format!("{} is not such as cube=4x4x4", shown(argument))),
            },
            "nodes" => match number(text).filter(|count| (1..=MOST_ON_ROUTER).contains(count)) {
                Some(count) => nodes = count,
                None => {
                    return refuse(format!(
                        "{} is not 1 to {MOST_ON_ROUTER} nodes on a router",
                        shown(argument)
                    ));
                }
            },
            _ => {
                return refuse(format!(
                    "{} is none of size=AxBxC, nodes=N, cube=PxQxR",
                    shown(argument)
                ));
            }
        }
    }
    torus.bandwidth = vec![QDR; torus.dimensions.len()];
    if let Err(error) = check_torus(&torus) {
        return refuse(error.to_string());
    }
    let routers: u64 = torus.dimensions.iter().map(|&size| u64::from(size)).product();
    if routers * u64::from(nodes) > 1 << 20 {
        return refuse("that is more than 1,048,576 nodes".to_owned());
    }
    Ok(torus_of(name, torus, nodes, QDR))
}

/// Returns the machine of a torus with `nodes` on each router. The groups above the routers are planes of the first
/// dimension, or cubes.
fn torus_of(name: &str, torus: TorusDescription, nodes: u32, to_nodes: f64) -> Description {
    let all: u32 = torus.dimensions.iter().product();
    let inner: u32 = match &*torus.cube {
        [] => torus.dimensions.iter().skip(1).product(),
        cube => cube.iter().product(),
    };
    let children = [nodes, inner, all / inner.max(1)];
    grid_of(name, "torus", children, to_nodes, WiringDescription::Torus(torus))
}

/// Returns the machine of a grid of switches: `children` are the nodes on a switch, the switches of a group and the groups.
pub(super) fn grid_of(
    name: &str,
    root: &str,
    children: [u32; 3],
    to_nodes: f64,
    wiring: WiringDescription,
) -> Description {
    let stem = name.split('(').next().unwrap_or(name);
    let mut names = (1..).map(|number: u64| node_of_kind_0(format!("{stem}{number}")));
    let root = regular_group(root, &children, 3, &mut [0; 4], &mut names);
    Description {
        name: name.to_owned(),
        sites: vec![SiteDescription {
            root,
            cabling: vec![Cabling::new(1, 1, to_nodes); 3],
            missing: Vec::new(),
        }],
        kinds: vec![NodeKind { nic_bandwidth: to_nodes, ..NodeKind::default() }],
        wiring,
        ..Description::default()
    }
}
