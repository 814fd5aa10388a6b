//! Reads the table `[hyperx]` of our own format.

use serde::Deserialize;
use toml::Spanned;

use super::assemble::at_line;
use super::per_level::PerLevel;
use super::toml_lines::TomlLines;
use crate::description::HyperXDescription;
use crate::error::InputError;
use crate::hostlist::expand;
use crate::presets::QDR;
use crate::wiring::check_hyperx;

/// The grid of switches.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct HyperXTable {
    dimensions: Vec<u32>,
    cables: Option<Vec<u32>>,
    switches: Option<String>,
    bandwidth: Option<PerLevel>,
}

/// Returns the wiring. What depends on the nodes is left to [`Fabric::build`](crate::Fabric::build).
///
/// # Errors
/// With its line: a hostlist that is none; dimensions, cables or a bandwidth that a HyperX cannot have.
pub(super) fn wiring(
    lines: &TomlLines,
    table: Spanned<HyperXTable>,
) -> Result<HyperXDescription, InputError> {
    let line = lines.at(table.span().start);
    let HyperXTable { dimensions, cables, switches, bandwidth } = table.into_inner();
    let switches = switches.map(|names| expand(&names)).transpose();
    let count = dimensions.len();
    let wiring = HyperXDescription {
        cables: cables.unwrap_or_else(|| vec![1; count]),
        bandwidth: bandwidth.map_or_else(|| vec![QDR; count], |given| given.of_each(count)),
        switches: switches.map_err(|error| at_line(error, line))?.unwrap_or_default(),
        dimensions,
    };
    check_hyperx(&wiring).map_err(|error| at_line(error, line))?;
    Ok(wiring)
}
