//! Reads the table `[dragonfly]` of our own format.

use serde::Deserialize;
use toml::Spanned;

use super::assemble::at_line;
use super::toml_lines::TomlLines;
use crate::check::positive;
use crate::description::{Detours, DragonflyDescription, SwitchCable};
use crate::error::InputError;
use crate::hostlist::expand;
use crate::wiring::check_group;

/// The switches of each group, and the cables between switches.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct DragonflyTable {
    groups: Vec<Spanned<String>>,
    detours: Option<f64>,
    share: Option<f64>,
    #[serde(default)]
    cables: Vec<Spanned<CableTable>>,
}

/// Cables of one bandwidth: two switches, counted over all groups from 0, and the number of parallel cables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CableTable {
    bandwidth: f64,
    between: Vec<[u32; 3]>,
}

/// Returns the wiring. What no dragonfly can be is left to [`Fabric::build`](crate::Fabric::build).
///
/// # Errors
/// With its line: a hostlist that is none; a group of too many switches, or too many groups; a cable of a switch that is not there, from a switch to itself, or without a
/// count; a bandwidth that is not above 0; detours without a share, or a share without detours.
pub(super) fn wiring(
    lines: &TomlLines,
    table: Spanned<DragonflyTable>,
) -> Result<DragonflyDescription, InputError> {
    let line = lines.at(table.span().start);
    let DragonflyTable { groups, cables, detours, share } = table.into_inner();
    let detours = match (detours, share) {
        (None, None) => None,
        (Some(part), Some(share)) => Some(Detours { part, share }),
        _ => {
            return Err(InputError::at(line, "[dragonfly] has both detours and share, or neither"));
        }
    };
    let mut wiring = DragonflyDescription { detours, ..DragonflyDescription::default() };
    for group in groups {
        let line = lines.at(group.span().start);
        let names = expand(group.get_ref()).map_err(|error| at_line(error, line))?;
        // Hostlists are short for many names, so this must not wait for all groups.
        check_group(wiring.groups.len(), &names).map_err(|error| at_line(error, line))?;
        wiring.groups.push(names);
    }
    let switches = wiring.groups.iter().map(Vec::len).sum::<usize>() as u64;
    for cables in cables {
        let line = lines.at(cables.span().start);
        let CableTable { bandwidth, between } = cables.into_inner();
        if !positive(bandwidth) {
            let message = format!("bandwidth of cables must be above 0, not {bandwidth} B/s");
            return Err(InputError::at(line, message));
        }
        for [a, b, count] in between {
            if u64::from(a.max(b)) >= switches || a == b || count == 0 {
                let message = format!(
                    "[{a}, {b}, {count}] is not two of the {switches} switches, from 0, and a number of cables"
                );
                return Err(InputError::at(line, message));
            }
            wiring.cables.push(SwitchCable { between: (a, b), count, bandwidth });
        }
    }
    Ok(wiring)
}
