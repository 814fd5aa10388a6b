//! Reads the table `[torus]` of our own format.

use serde::Deserialize;
use toml::Spanned;

use super::assemble::at_line;
use super::per_level::PerLevel;
use super::toml_lines::TomlLines;
use crate::description::TorusDescription;
use crate::error::InputError;
use crate::hostlist::expand;
use crate::presets::QDR;
use crate::wiring::check_torus;

/// The grid of routers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TorusTable {
    dimensions: Vec<u32>,
    wrap: Option<Vec<bool>>,
    #[serde(default)]
    cube: Vec<u32>,
    routers: Option<String>,
    bandwidth: Option<PerLevel>,
}

/// Returns the wiring. What depends on the nodes is left to [`Fabric::build`](crate::Fabric::build).
///
/// # Errors
/// With its line: a hostlist that is none; dimensions, or a cube, that a torus cannot have; a bandwidth that is not above
/// 0.
pub(super) fn wiring(
    lines: &TomlLines,
    table: Spanned<TorusTable>,
) -> Result<TorusDescription, InputError> {
    let line = lines.at(table.span().start);
    let TorusTable { dimensions, wrap, cube, routers, bandwidth } = table.into_inner();
    let routers = routers.map(|names| expand(&names)).transpose();
    let count = dimensions.len();
    let wiring = TorusDescription {
        wrap: wrap.unwrap_or_else(|| vec![true; count]),
        bandwidth: bandwidth.map_or_else(|| vec![QDR; count], |given| given.of_each(count)),
        routers: routers.map_err(|error| at_line(error, line))?.unwrap_or_default(),
        dimensions,
        cube,
    };
    check_torus(&wiring).map_err(|error| at_line(error, line))?;
    Ok(wiring)
}
