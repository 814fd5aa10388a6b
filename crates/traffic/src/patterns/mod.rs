//! Traffic by name: patterns with parameters, one file per family, one line each in [`PATTERNS`].

mod stencil;

use topolane_fabric::InputError;

use crate::matrix::Traffic;

/// One parameter of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it means, with its unit.
    pub summary: &'static str,
    /// Its value where none is given.
    pub default: f64,
}

/// A pattern that can be asked for by name.
pub struct PatternInfo {
    /// Its name.
    pub name: &'static str,
    /// Who sends what to whom, in a line, with the source.
    pub summary: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// The traffic of so many ranks, with the parameters' values in their order and a seed for
    /// what is drawn.
    pub build: fn(ranks: u32, values: &[f64], seed: u64) -> Result<Traffic, InputError>,
}

/// All patterns.
pub const PATTERNS: &[PatternInfo] = &[PatternInfo {
    name: "stencil4d",
    summary: "nearest neighbours on a periodic 4-D grid (SC'18, network study)",
    parameters: &[Parameter {
        name: "bytes",
        summary: "bytes to each neighbour",
        default: 65536.0,
    }],
    build: stencil::stencil4d,
}];

/// A pattern with its parameters: traffic for any number of ranks.
#[derive(Clone)]
pub struct Patterned {
    info: &'static PatternInfo,
    values: Vec<f64>,
}

impl std::fmt::Debug for Patterned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?}", self.info.name, self.values)
    }
}

impl Patterned {
    /// The pattern's name.
    pub fn name(&self) -> &'static str {
        self.info.name
    }

    /// The traffic of so many ranks; the seed matters to patterns that draw.
    ///
    /// # Errors
    /// Parameters that do not go with the number of ranks.
    pub fn traffic(&self, ranks: u32, seed: u64) -> Result<Traffic, InputError> {
        (self.info.build)(ranks, &self.values, seed)
    }
}

/// The pattern that `text` asks for: `name` or `name(parameter=value, ...)`.
///
/// # Errors
/// An unknown pattern or parameter, a value that is not a number.
pub fn pattern(text: &str) -> Result<Patterned, InputError> {
    let refuse = |what: String| InputError::whole(format!("pattern {text:?}: {what}"));
    let (name, arguments) = match text.split_once('(') {
        None => (text.trim(), ""),
        Some((name, rest)) => {
            let inside = rest.trim_end().strip_suffix(')');
            (name.trim(), inside.ok_or_else(|| refuse("the bracket is not closed".to_owned()))?)
        }
    };
    let info = PATTERNS.iter().find(|info| info.name == name).ok_or_else(|| {
        let known: Vec<&str> = PATTERNS.iter().map(|info| info.name).collect();
        refuse(format!("there is none of that name; there are {}", known.join(", ")))
    })?;
    let mut values: Vec<f64> = info.parameters.iter().map(|p| p.default).collect();
    for argument in arguments.split(',').map(str::trim).filter(|a| !a.is_empty()) {
        let (key, value) = argument
            .split_once('=')
            .ok_or_else(|| refuse(format!("{argument:?} is not parameter=value")))?;
        let index = info.parameters.iter().position(|p| p.name == key.trim()).ok_or_else(|| {
            let known: Vec<&str> = info.parameters.iter().map(|p| p.name).collect();
            refuse(format!("no parameter {:?}; there are {}", key.trim(), known.join(", ")))
        })?;
        let value: f64 = value
            .trim()
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())
            .ok_or_else(|| refuse(format!("{:?} is not a number", value.trim())))?;
        values[index] = value;
    }
    Ok(Patterned { info, values })
}
