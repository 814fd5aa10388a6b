//! One clear sentence for input that cannot be used.

use std::fmt;

/// Bad input: where it was found and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The file, or the option, that holds the bad value; empty if unknown.
    pub source: String,
    /// Line number, from 1; 0 if the whole input is meant.
    pub line: usize,
    /// What is wrong, naming the value.
    pub message: String,
}

impl InputError {
    /// An error at `line` (from 1, or 0 for the whole input) of the text being read.
    pub fn at(line: usize, message: impl Into<String>) -> Self {
        InputError { source: String::new(), line, message: message.into() }
    }

    /// An error of the whole input.
    pub fn whole(message: impl Into<String>) -> Self {
        InputError::at(0, message)
    }

    /// The same error, naming the file it stands in.
    #[must_use]
    pub fn in_file(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.source.as_str(), self.line) {
            ("", 0) => write!(f, "{}", self.message),
            ("", line) => write!(f, "line {line}: {}", self.message),
            (source, 0) => write!(f, "{source}: {}", self.message),
            (source, line) => write!(f, "{source}:{line}: {}", self.message),
        }
    }
}

impl std::error::Error for InputError {}
