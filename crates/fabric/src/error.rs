//! Errors for bad input, each a single sentence.

use std::borrow::Cow;
use std::fmt;

/// A fault in the input: where it is, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The file or option with the bad value; empty if unknown.
    pub source: String,
    /// The line number, from 1; 0 for the whole input.
    pub line: usize,
    /// What is wrong, including the bad value.
    pub message: String,
}

impl InputError {
    /// Returns an error at `line` (from 1, or 0 for the whole input) of the text being read.
    pub fn at(line: usize, message: impl Into<String>) -> Self {
        InputError { source: String::new(), line, message: sentence(message.into()) }
    }

    /// Returns an error of the whole input.
    pub fn whole(message: impl Into<String>) -> Self {
        InputError::at(0, message)
    }

    /// Returns the error with the name of its file. An error that already has one keeps it, because an included file
    /// names itself.
    #[must_use]
    pub fn in_file(mut self, source: impl Into<String>) -> Self {
        if self.source.is_empty() {
            self.source = printable(&source.into()).into_owned();
        }
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

/// The most characters of a long value that an error shows.
const SHOWN: usize = 60;
/// The longest word that a message shows in full: host names and most paths are shorter.
const LONGEST_WORD: usize = 256;
/// The longest message, in characters.
const LONGEST: usize = 1000;

/// Returns a value in quotes, as errors show it: control characters escaped, cut to 60 characters.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => format!("{text:?}"),
        Some((end, _)) => {
            let start = format!("{}...", &text[..end]);
            format!("{start:?} ({} characters)", text.chars().count())
        }
    }
}

/// Whether a character is safe to show on a terminal: neither a control character nor one that changes the direction of
/// text.
pub fn is_printable(letter: char) -> bool {
    let turns = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !(letter.is_control() || turns || matches!(letter, '\u{2028}' | '\u{2029}'))
}

/// Returns the text with unsafe characters escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if is_printable(letter) {
            escaped.push(letter);
        } else {
            escaped.extend(letter.escape_default());
        }
    }
    Cow::Owned(escaped)
}

/// Returns a message on one line of limited length, whatever values it contains.
fn sentence(message: String) -> String {
    let mut message = match printable(&message) {
        Cow::Borrowed(_) => message,
        Cow::Owned(escaped) => escaped,
    };
    if message.len() <= LONGEST_WORD {
        return message;
    }
    if message.split(' ').any(|word| word.chars().nth(LONGEST_WORD).is_some()) {
        message = message.split(' ').map(cut_word).collect::<Vec<_>>().join(" ");
    }
    match message.char_indices().nth(LONGEST) {
        None => message,
        Some((end, _)) => {
            format!("{}... ({} characters)", &message[..end], message.chars().count())
        }
    }
}

fn cut_word(word: &str) -> Cow<'_, str> {
    match (word.char_indices().nth(SHOWN), word.chars().nth(LONGEST_WORD)) {
        (Some((end, _)), Some(_)) => {
            Cow::Owned(format!("{}... ({} characters)", &word[..end], word.chars().count()))
        }
        _ => Cow::Borrowed(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_printable_line_of_bounded_length() {
        let error = InputError::at(3, "name \u{1b}[31m\nred").in_file("a\u{1b}b");
        assert_eq!(error.to_string(), "a\\u{1b}b:3: name \\u{1b}[31m\\nred");
        let long = "x".repeat(3000);
        let error = InputError::whole(format!("node {long} is not there"));
        let start = "x".repeat(60);
        assert_eq!(error.message, format!("node {start}... (3000 characters) is not there"));
        assert_eq!(shown(&long), format!("\"{start}...\" (3000 characters)"));
        assert!(InputError::whole("ab ".repeat(3000)).message.len() < 1100);
        assert_eq!(InputError::whole("é\"'\\").message, "é\"'\\");
    }
}
