//! Parses the lines of Slurm's configuration files: comments, continued lines, escapes, `Include`, and pairs `key =
//! value`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::error::{InputError, is_printable, shown};

/// The most files that one text may include, directly or indirectly.
const MOST_INCLUDED: usize = 256;
/// The deepest nesting of `Include`.
const DEEPEST_INCLUDE: usize = 16;

/// The included files. The key is the name after `Include`; the value is a path for messages, and the text.
pub type Included = BTreeMap<String, (String, String)>;

/// The position of a line. The file is set for lines of an included file; the name of the main file is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinePosition {
    pub file: Option<Arc<str>>,
    pub line: usize,
}

impl From<usize> for LinePosition {
    fn from(line: usize) -> Self {
        LinePosition { file: None, line }
    }
}

impl fmt::Display for LinePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            None => write!(f, "line {}", self.line),
            Some(file) => write!(f, "line {} of {file}", self.line),
        }
    }
}

impl LinePosition {
    /// Returns an error at this position.
    pub fn refuse(&self, message: impl Into<String>) -> InputError {
        self.of(InputError::whole(message))
    }

    /// Returns the error with this position.
    pub fn of(&self, error: InputError) -> InputError {
        let error = InputError { line: self.line, ..error };
        match &self.file {
            None => error,
            Some(file) => error.in_file(&**file),
        }
    }
}

/// A line without its comment and escapes, including the lines that continue it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlurmLine {
    pub place: LinePosition,
    pub words: String,
}

/// Returns the non-empty lines of a text. The lines of included files replace their `Include`.
///
/// A `#` after an even number of backslashes begins a comment, even in quotes. An odd number of backslashes at the end
/// of a line continues it. Any other backslash stands for the character after it.
///
/// # Errors
/// With its position: a file that `included` does not have, that includes itself, or whose name is a pattern.
pub(super) fn lines(text: &str, included: &Included) -> Result<Vec<SlurmLine>, InputError> {
    let mut all = Vec::new();
    let mut state = Including { included, count: 0, open: Vec::new() };
    state.add(text, None, &mut all)?;
    Ok(all)
}

/// The names of the files that a text itself includes, with their lines.
pub fn includes(text: &str) -> Vec<(usize, String)> {
    let name = |line: SlurmLine| {
        let name = include_of(&line.words)?.to_owned();
        Some((line.place.line, name))
    };
    joined(text, None).into_iter().filter_map(name).collect()
}

struct Including<'a> {
    included: &'a Included,
    count: usize,
    open: Vec<String>,
}

impl Including<'_> {
    fn add(
        &mut self,
        text: &str,
        file: Option<&Arc<str>>,
        all: &mut Vec<SlurmLine>,
    ) -> Result<(), InputError> {
        for line in joined(text, file) {
            let Some(name) = include_of(&line.words) else {
                all.push(line);
                continue;
            };
            let refuse = |what: &str| line.place.refuse(format!("Include {}: {what}", shown(name)));
            if name.contains('*') || name.contains("%c") {
                return Err(refuse("only the name of one file is read, as by Slurm"));
            }
            let Some((path, content)) = self.included.get(name) else {
                return Err(refuse("the file is not known here; put its lines into this one"));
            };
            self.count += 1;
            if self.open.iter().any(|open| open == name) {
                return Err(refuse("the file includes itself"));
            }
            if self.open.len() == DEEPEST_INCLUDE || self.count > MOST_INCLUDED {
                return Err(refuse("too many files are included"));
            }
            self.open.push(name.to_owned());
            self.add(content, Some(&Arc::from(path.as_str())), all)?;
            self.open.pop();
        }
        Ok(())
    }
}

/// The lines of one text, with continued lines joined.
fn joined(text: &str, file: Option<&Arc<str>>) -> Vec<SlurmLine> {
    let mut lines: Vec<SlurmLine> = Vec::new();
    let mut continues = false;
    for (index, line) in text.lines().enumerate() {
        let line = without_comment(line);
        let end = line.trim_end();
        let backslashes = end.len() - end.trim_end_matches('\\').len();
        let goes_on = backslashes % 2 == 1;
        let line = if goes_on { &end[..end.len() - 1] } else { line };
        match lines.last_mut() {
            Some(last) if continues => last.words.push_str(line),
            _ => {
                let place = LinePosition { file: file.cloned(), line: index + 1 };
                lines.push(SlurmLine { place, words: line.to_owned() });
            }
        }
        continues = goes_on;
    }
    for line in &mut lines {
        if line.words.contains('\\') {
            line.words = without_escapes(&line.words);
        }
    }
    lines.retain(|line| !line.words.trim().is_empty());
    lines
}

fn without_comment(line: &str) -> &str {
    let mut backslashes = 0;
    for (place, byte) in line.bytes().enumerate() {
        match byte {
            b'#' if backslashes % 2 == 0 => return &line[..place],
            b'\\' => backslashes += 1,
            _ => backslashes = 0,
        }
    }
    line
}

fn without_escapes(line: &str) -> String {
    let mut letters = line.chars();
    let mut plain = String::with_capacity(line.len());
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}

/// The file that a line includes; `None` for other lines. `Include` must be at the very start of its line.
fn include_of(words: &str) -> Option<&str> {
    let (start, rest) = words.split_at_checked("include".len())?;
    let is_include = start.eq_ignore_ascii_case("include") && rest.starts_with(is_blank);
    is_include.then(|| rest.split_ascii_whitespace().next().unwrap_or_default())
}

fn is_blank(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '\u{b}'
}

/// The pairs of a line, in order. Blanks may surround `=`; a value in quotes may contain blanks.
///
/// # Errors
/// Anything that is not such a pair, a key without a value, or a value with a control character or a quote in it.
pub(super) fn pairs(line: &SlurmLine) -> Result<Vec<(String, String)>, InputError> {
    let refuse = |key: &str, what: &str| line.place.refuse(format!("{key} {what}"));
    let mut pairs = Vec::new();
    let mut rest = line.words.trim_matches(is_blank);
    while !rest.is_empty() {
        let end =
            rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || "_.".contains(letter)));
        let (key, after) = rest.split_at(end.unwrap_or(rest.len()));
        let after = after.trim_start_matches(is_blank);
        // Slurm treats `+=` and similar operators here like `=`.
        let signed = after.strip_prefix(['-', '+', '*', '/']).unwrap_or(after);
        let Some(after_sign) = signed.strip_prefix('=').filter(|_| !key.is_empty()) else {
            let word = rest.split(is_blank).next().unwrap_or(rest);
            return Err(line.place.refuse(format!("{} is not of the form key=value", shown(word))));
        };
        let start = after_sign.trim_start_matches(is_blank);
        let (value, after, quoted) = value(start).ok_or_else(|| refuse(key, "has no value"))?;
        if !quoted && start.len() < after_sign.len() && value.contains('=') {
            return Err(refuse(key, &format!("has no value before {}", shown(value))));
        }
        if value.contains('"') {
            return Err(refuse(key, &format!("has a quote inside its value {}", shown(value))));
        }
        if !value.chars().all(is_printable) {
            return Err(refuse(key, &format!("holds a control character: {}", shown(value))));
        }
        pairs.push((key.to_owned(), value.to_owned()));
        rest = after.trim_start_matches(is_blank);
    }
    Ok(pairs)
}

/// The value at the beginning of a text, the rest of the text, and whether the value is in quotes.
fn value(text: &str) -> Option<(&str, &str, bool)> {
    if let Some((inside, after)) = text.strip_prefix('"').and_then(|rest| rest.split_once('"'))
        && (after.is_empty() || after.starts_with(is_blank))
    {
        return Some((inside, after, true));
    }
    let (value, after) = text.split_at(text.find(is_blank).unwrap_or(text.len()));
    (!value.is_empty()).then_some((value, after, false))
}
