//! Slurm's hostlist expressions: `cab[1-18,20]`, `rack[0-1]n[01-16],login`.

use std::collections::VecDeque;

use crate::error::{InputError, is_printable, shown};

/// The most names that one expression may produce.
pub(crate) const MOST_NAMES: usize = 1_000_000;
/// The most digits of a number in a range, so that it fits in 64 bits.
const MOST_DIGITS: usize = 18;
/// The most characters of all names together, of a machine or of one expression.
pub(crate) const MOST_LETTERS: usize = 1 << 25;
/// The most characters of a host name.
pub(crate) const LONGEST_NAME: usize = 255;

/// Expands a hostlist expression to its host names, in order. Elements are separated by commas or white space. Numbers
/// are padded to the width of the first number of their range. With several brackets, the last one runs fastest. An
/// empty expression gives no names.
///
/// # Errors
/// An unbalanced bracket, an empty or descending range, a name that continues after its last bracket (Slurm refuses
/// `unit[0-3]rack` too), a control character, a number of more than 18 digits, a name of more than 255 characters, more
/// than a million names, or names of more than 32 MiB together.
pub fn expand(text: &str) -> Result<Vec<String>, InputError> {
    let mut names = Vec::new();
    let mut letters = 0;
    let mut rest = text.trim_start_matches(is_separator);
    while !rest.is_empty() {
        let (element, after) = split_element(rest)?;
        if !element.chars().all(is_printable) {
            return Err(bad(element, "holds a control character"));
        }
        expand_element(element, &mut names, &mut letters)?;
        rest = after.trim_start_matches(is_separator);
    }
    Ok(names)
}

/// Returns the hostlist expression of names, in their order. Consecutive numbers of equal width become a range; only
/// the last number of a name is bracketed. Names with brackets, commas or white space cannot be written as a hostlist
/// and stay as they are.
pub fn compress<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut run: Vec<Numbered> = Vec::new();
    let mut prefix = "";
    for name in names {
        let (stem, digits) = split_number(name);
        if stem != prefix || digits.is_empty() {
            push_run(&mut text, prefix, &mut run);
        }
        prefix = stem;
        match digits.parse() {
            Err(_) => push_element(&mut text, name),
            Ok(number) => match run.last_mut() {
                Some(last) if last.continues_with(number, digits) => last.last = number,
                _ => run.push(Numbered { digits, first: number, last: number }),
            },
        }
    }
    push_run(&mut text, prefix, &mut run);
    text
}

fn is_separator(letter: char) -> bool {
    letter == ',' || letter.is_ascii_whitespace()
}

/// Splits off the first element, up to a separator outside brackets. Returns it and the rest.
fn split_element(text: &str) -> Result<(&str, &str), InputError> {
    let mut open = false;
    for (place, letter) in text.char_indices() {
        match letter {
            '[' if open => return Err(bad(text, "has a bracket inside a bracket")),
            '[' => open = true,
            ']' if open => open = false,
            ']' => return Err(bad(text, "closes a bracket that was not opened")),
            _ if !open && is_separator(letter) => return Ok(text.split_at(place)),
            _ => {}
        }
    }
    if open { Err(bad(text, "does not close its bracket")) } else { Ok((text, "")) }
}

fn bad(text: &str, what: &str) -> InputError {
    InputError::whole(format!("hostlist {} {what}", shown(text)))
}

/// Replaces separators, brackets and quotes in a name, so that every format can hold it.
pub(crate) fn plain(name: &str) -> String {
    let odd = |letter: char| {
        letter.is_whitespace() || letter.is_control() || "[],\"#=\\".contains(letter)
    };
    if name.is_empty() { "_".to_owned() } else { name.replace(odd, "_") }
}

/// Appends the names of one element such as `rack[0-1]n[01-16]` and adds up their letters.
fn expand_element(
    element: &str,
    names: &mut Vec<String>,
    letters: &mut usize,
) -> Result<(), InputError> {
    let first = names.len();
    let mut stems = VecDeque::from([String::new()]);
    let mut rest = element;
    // Several brackets multiply the names, so count them before building any.
    let mut longest = 0;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((ranges, after)) = after.split_once(']') else { break };
        let ranges = ranges
            .split(',')
            .map(|range| Range::parse(range).ok_or_else(|| bad_range(range, element)))
            .collect::<Result<Vec<_>, _>>()?;
        let count = ranges.iter().map(Range::len).fold(0, u64::saturating_add);
        let count = count.saturating_mul(stems.len() as u64);
        if count > (MOST_NAMES - names.len()) as u64 {
            return Err(too_many(element));
        }
        longest += before.len() + ranges.iter().map(Range::digits).max().unwrap_or(0);
        check_letters(element, longest, *letters + count as usize * longest.min(LONGEST_NAME))?;
        for _ in 0..stems.len() {
            let Some(stem) = stems.pop_front() else { break };
            for range in &ranges {
                for number in range.first..=range.last {
                    stems.push_back(format!("{stem}{before}{number:0width$}", width = range.width));
                }
            }
        }
        rest = after;
    }
    if !(rest.is_empty() || rest == element) {
        return Err(bad(element, "goes on after its last bracket"));
    }
    check_letters(element, longest + rest.len(), *letters)?;
    names.extend(stems.into_iter().map(|stem| stem + rest));
    *letters += names[first..].iter().map(String::len).sum::<usize>();
    if names.len() > MOST_NAMES { Err(too_many(element)) } else { Ok(()) }
}

/// Refuses an element if its longest name is too long, or if all names together become too long.
fn check_letters(element: &str, longest: usize, letters: usize) -> Result<(), InputError> {
    if longest > LONGEST_NAME {
        return Err(bad(element, &format!("has a name of more than {LONGEST_NAME} letters")));
    }
    if letters > MOST_LETTERS {
        return Err(bad(element, &format!("makes names of more than {MOST_LETTERS} letters")));
    }
    Ok(())
}

fn bad_range(range: &str, element: &str) -> InputError {
    let range = shown(range);
    bad(element, &format!("has {range} where an ascending range such as 1-18 should stand"))
}

fn too_many(element: &str) -> InputError {
    bad(element, &format!("stands for more than {MOST_NAMES} names"))
}

/// The numbers `first..=last`, padded to at least `width` digits.
struct Range {
    first: u64,
    last: u64,
    width: usize,
}

impl Range {
    fn parse(text: &str) -> Option<Range> {
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        let number = |digits: &str| {
            let sound = digits.len() <= MOST_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
            if sound { digits.parse::<u64>().ok() } else { None }
        };
        let (first, last) = (number(low)?, number(high)?);
        (first <= last).then_some(Range { first, last, width: low.len() })
    }

    fn len(&self) -> u64 {
        self.last - self.first + 1
    }

    /// The number of digits of its longest number.
    fn digits(&self) -> usize {
        self.width.max(self.last.checked_ilog10().map_or(1, |log| log as usize + 1))
    }
}

/// A run of consecutive numbers; `digits` is the first one as it was written.
struct Numbered<'a> {
    digits: &'a str,
    first: u64,
    last: u64,
}

impl Numbered<'_> {
    fn continues_with(&self, number: u64, digits: &str) -> bool {
        number == self.last + 1 && format!("{number:0width$}", width = self.digits.len()) == digits
    }
}

/// Splits a name into its stem and its last digits. No digits if they are too many for a number.
fn split_number(name: &str) -> (&str, &str) {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let digits = &name[stem.len()..];
    if digits.len() > MOST_DIGITS { (name, "") } else { (stem, digits) }
}

fn push_element(text: &mut String, element: &str) {
    if !text.is_empty() {
        text.push(',');
    }
    text.push_str(element);
}

fn push_run(text: &mut String, prefix: &str, run: &mut Vec<Numbered>) {
    let ranges: Vec<String> = run
        .drain(..)
        .map(|part| {
            let width = part.digits.len();
            match part.last - part.first {
                0 => part.digits.to_owned(),
                _ => format!("{}-{:0width$}", part.digits, part.last),
            }
        })
        .collect();
    match ranges.as_slice() {
        [] => {}
        [one] if !one.contains('-') => push_element(text, &format!("{prefix}{one}")),
        _ => push_element(text, &format!("{prefix}[{}]", ranges.join(","))),
    }
}
