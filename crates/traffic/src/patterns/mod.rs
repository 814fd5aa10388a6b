//! Traffic patterns by name, with parameters: one file per family, one line each in [`PATTERNS`].

mod allreduce;
mod alltoall;
mod grid;
mod npb;
mod parameter;
mod phase;
mod random;
mod stencil;
mod unstructured;

use std::fmt;
use std::sync::Arc;

use topolane_fabric::{InputError, shown};

use crate::matrix::Traffic;
pub use parameter::{AllowedValues, Parameter};
pub use phase::{Phase, PhaseKind};

/// A function that returns the phases of one iteration of `ranks` ranks, from the values of the parameters in their
/// order and a seed for random draws.
type Build = fn(ranks: u32, values: &[f64], seed: u64) -> Result<Vec<Phase>, InputError>;

/// A registered traffic pattern.
pub struct PatternInfo {
    /// The name of the pattern.
    pub name: &'static str,
    /// What each rank sends in one iteration, in one line, with the source.
    pub summary: &'static str,
    /// The parameters of the pattern.
    pub parameters: &'static [Parameter],
    build: Build,
}

const fn info(
    name: &'static str,
    parameters: &'static [Parameter],
    build: Build,
    summary: &'static str,
) -> PatternInfo {
    PatternInfo { name, summary, parameters, build }
}

/// All traffic patterns.
#[rustfmt::skip]
pub const PATTERNS: &[PatternInfo] = &[
    info("stencil4d", stencil::STENCIL4D, stencil::stencil4d, "both neighbours along every axis of a periodic 4-D grid (SC'18; chatterbug stencil4d)"),
    info("unstructured3d", unstructured::PARAMETERS, unstructured::unstructured3d, "neighbours drawn nearby on a periodic 3-D grid (SC'18; chatterbug unstr-mesh)"),
    info("pairs", random::PAIRS, random::pairs, "random pairs of ranks exchange (SC'18; chatterbug pairs)"),
    info("suba2a", alltoall::SUBA2A, alltoall::suba2a, "all to all within the lines of a 3-D grid (SC'18; chatterbug subcom3d-a2a)"),
    info("ring", stencil::RING, stencil::ring, "to the next rank, around"),
    info("alltoall", alltoall::ALLTOALL, alltoall::alltoall, "every rank to every other"),
    info("allreduce", allreduce::PARAMETERS, allreduce::allreduce, "the messages of an allreduce, as MPICH sends them"),
    info("uniform", random::UNIFORM, random::uniform, "to ranks drawn from all others"),
    info("is", npb::CLASS, npb::is::is, "NPB integer sort: one ranking"),
    info("cg", npb::CLASS, npb::cg::cg, "NPB conjugate gradient: one outer iteration"),
    info("lu", npb::CLASS, npb::lu::lu, "NPB lower-upper Gauss-Seidel: one time step"),
    info("bt", npb::CLASS, npb::bt::bt, "NPB block tridiagonal: one time step"),
    info("mg", npb::CLASS, npb::mg::mg, "NPB multigrid: one V-cycle"),
    info("ep", npb::CLASS, npb::ep::ep, "NPB embarrassingly parallel: the whole run, the same in every class"),
];

/// A pattern with its parameters, or a measured matrix: gives traffic for any number of ranks.
#[derive(Clone)]
pub struct Patterned(PatternSource);

#[derive(Clone)]
enum PatternSource {
    Pattern { info: &'static PatternInfo, values: Vec<f64> },
    Measured { name: String, traffic: Arc<Traffic> },
}

/// Prints the pattern as it can be requested, with all parameters.
impl fmt::Display for Patterned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (info, values) = match &self.0 {
            PatternSource::Pattern { info, values } => (info, values),
            PatternSource::Measured { name, .. } => return f.write_str(name),
        };
        let given = info.parameters.iter().zip(values);
        let named: Vec<_> = given.map(|(p, &v)| format!("{}={}", p.name, p.write(v))).collect();
        write!(f, "{}({})", info.name, named.join(", "))
    }
}

impl fmt::Debug for Patterned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Patterned {
    /// Returns a measured matrix with a name. For other numbers of ranks, it gives [`Traffic::folded`].
    pub fn measured(name: impl Into<String>, traffic: Arc<Traffic>) -> Patterned {
        Patterned(PatternSource::Measured { name: name.into(), traffic })
    }

    /// The name of the pattern.
    pub fn name(&self) -> &str {
        match &self.0 {
            PatternSource::Pattern { info, .. } => info.name,
            PatternSource::Measured { name, .. } => name,
        }
    }

    /// The phases of one iteration; together they are its traffic. Empty for a single rank. Only patterns that draw at
    /// random use the seed.
    ///
    /// # Errors
    /// Parameters that do not fit the number of ranks, or more entries than a matrix may have.
    pub fn phases(&self, ranks: u32, seed: u64) -> Result<Vec<Phase>, InputError> {
        // Refuse too many ranks before a pattern computes with them.
        Traffic::new(ranks, [])?;
        if ranks < 2 {
            return Ok(Vec::new());
        }
        let (info, values) = match &self.0 {
            PatternSource::Pattern { info, values } => (info, values),
            PatternSource::Measured { traffic, .. } => {
                let kind = PhaseKind::PointToPoint;
                return Ok(vec![Phase { name: "measured", kind, traffic: traffic.folded(ranks)? }]);
            }
        };
        let phases = (info.build)(ranks, values, seed);
        phases.map_err(|error| InputError::whole(format!("pattern {self}: {}", error.message)))
    }

    /// The traffic of one iteration.
    ///
    /// # Errors
    /// As [`Self::phases`].
    pub fn traffic(&self, ranks: u32, seed: u64) -> Result<Traffic, InputError> {
        let mut phases = self.phases(ranks, seed)?;
        if phases.len() == 1 {
            return Ok(phases.remove(0).traffic);
        }
        Traffic::new(ranks, phases.iter().flat_map(|phase| phase.traffic.entries().iter().copied()))
    }
}

/// Parses a pattern: `name` or `name(parameter=value, ...)`.
///
/// # Errors
/// An unknown pattern or parameter, a parameter that occurs twice, or a value out of its range.
pub fn pattern(text: &str) -> Result<Patterned, InputError> {
    let refuse = |what: String| InputError::whole(format!("pattern {}: {what}", shown(text)));
    let (name, arguments) = match text.split_once('(') {
        None => (text.trim(), ""),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')');
            (name.trim(), inside.ok_or_else(|| refuse("the bracket is not closed".to_owned()))?)
        }
    };
    let info = PATTERNS.iter().find(|info| info.name == name).ok_or_else(|| {
        refuse(format!("there is none of that name; there are {}", names(PATTERNS, |p| p.name)))
    })?;
    let mut given: Vec<Option<&str>> = vec![None; info.parameters.len()];
    for argument in arguments.split(',').map(str::trim).filter(|a| !a.is_empty()) {
        let (key, value) = argument
            .split_once('=')
            .ok_or_else(|| refuse(format!("{} is not parameter=value", shown(argument))))?;
        let key = key.trim();
        let place = info.parameters.iter().position(|p| p.name == key).ok_or_else(|| {
            let known = names(info.parameters, |p| p.name);
            refuse(format!("no parameter {}; there are {known}", shown(key)))
        })?;
        if given[place].replace(value.trim()).is_some() {
            return Err(refuse(format!("{key} is given twice")));
        }
    }
    let values = info.parameters.iter().zip(given);
    let values =
        values.map(|(parameter, given)| parameter.read(given.unwrap_or(parameter.default)));
    let values = values.collect::<Result<_, _>>().map_err(|error| refuse(error.message))?;
    Ok(Patterned(PatternSource::Pattern { info, values }))
}

fn names<T>(list: &[T], name: fn(&T) -> &'static str) -> String {
    list.iter().map(name).collect::<Vec<_>>().join(", ")
}
