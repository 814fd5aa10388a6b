//! Finds the lines of values in a TOML file, for messages.

use toml::Spanned;

use crate::error::{InputError, is_printable, shown};
use crate::hostlist::LONGEST_NAME;

/// The positions at which the lines of a text end.
pub(super) struct TomlLines(Vec<usize>);

impl TomlLines {
    pub(super) fn of(text: &str) -> TomlLines {
        TomlLines(text.match_indices('\n').map(|(place, _)| place).collect())
    }

    /// The line number, from 1, of a byte position in the text.
    pub(super) fn at(&self, place: usize) -> usize {
        self.0.partition_point(|&end| end < place) + 1
    }

    /// Returns a name. Refuses one with control characters.
    pub(super) fn name(&self, name: Spanned<String>) -> Result<String, InputError> {
        let line = self.at(name.span().start);
        let name = name.into_inner();
        if !name.chars().all(is_printable) {
            let message = format!("name {} holds a control character", shown(&name));
            return Err(InputError::at(line, message));
        }
        if name.len() > LONGEST_NAME {
            let message = format!("name {} is longer than {LONGEST_NAME} letters", shown(&name));
            return Err(InputError::at(line, message));
        }
        Ok(name)
    }
}
