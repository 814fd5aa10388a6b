//! Reads Matrix Market coordinate and array files, such as `scipy.io.mmwrite` writes.

use topolane_fabric::{InputError, shown};

use super::refuse;
use crate::matrix::{Traffic, TrafficEntry};

const BANNER: &str = "%%MatrixMarket";

/// Whether the text begins like a Matrix Market file.
pub(super) fn is_one(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').starts_with(BANNER)
}

/// Reads a square matrix of bytes (Boisvert, Pozo & Remington 1996, NISTIR 5935). Row i sends to column j, one message
/// per entry. It may be `coordinate` or `array`; `real`, `integer` or `pattern` (1 byte per entry); `general` or
/// `symmetric`.
///
/// # Errors
/// By line: another kind of matrix, one that is not square, a line of another form, fewer or more entries than
/// announced, and whatever [`Traffic::new`] refuses.
pub fn matrix_market(text: &str) -> Result<Traffic, InputError> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let (_, banner) = lines.next().unwrap_or_default();
    let kind = MatrixKind::named(banner.trim_start_matches('\u{feff}'))
        .map_err(|error| InputError::at(1, error.message))?;
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('%'));
    let (line, size) = lines.next().ok_or_else(|| refuse("the line with the size is missing"))?;
    let (ranks, count) = kind.size(size).map_err(|error| InputError::at(line, error.message))?;
    let mut places = kind.places(ranks);
    let mut entries = Vec::new();
    let mut found = 0;
    for (line, text) in lines {
        let here = |error: InputError| InputError::at(line, error.message);
        found += 1;
        if found > count {
            return Err(here(refuse(format!("more entries than the {count} announced"))));
        }
        let entry = kind.entry(text, places.next()).map_err(here)?;
        entry.check(ranks).map_err(here)?;
        entries.push(entry);
        if kind.symmetric && entry.from != entry.to {
            entries.push(TrafficEntry { from: entry.to, to: entry.from, ..entry });
        }
    }
    if found < count {
        return Err(refuse(format!("{found} entries, but {count} announced")));
    }
    Traffic::new(ranks, entries)
}

/// The kind of matrix, from the first line.
#[derive(Debug, Clone, Copy)]
struct MatrixKind {
    coordinate: bool,
    pattern: bool,
    symmetric: bool,
}

impl MatrixKind {
    fn named(banner: &str) -> Result<MatrixKind, InputError> {
        let words: Vec<String> = banner.split_whitespace().map(str::to_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let [_, "matrix", format, field, symmetry] = words[..] else {
            return Err(refuse(format!(
                "{} does not name a matrix, a format, a field and a symmetry",
                shown(banner)
            )));
        };
        let known = ["coordinate", "array"].contains(&format)
            && ["real", "double", "integer", "pattern"].contains(&field)
            && ["general", "symmetric"].contains(&symmetry)
            && (format, field) != ("array", "pattern");
        if !known {
            return Err(refuse(format!(
                "a {format} {field} {symmetry} matrix is no matrix of bytes"
            )));
        }
        Ok(MatrixKind {
            coordinate: format == "coordinate",
            pattern: field == "pattern",
            symmetric: symmetry == "symmetric",
        })
    }

    /// The number of ranks, and of entries in the file.
    fn size(self, line: &str) -> Result<(u32, usize), InputError> {
        let numbers: Option<Vec<usize>> = line.split_whitespace().map(|w| w.parse().ok()).collect();
        let (rows, columns, entries) = match (self.coordinate, numbers.as_deref()) {
            (true, Some(&[rows, columns, entries])) => (rows, columns, Some(entries)),
            (false, Some(&[rows, columns])) => (rows, columns, None),
            _ => return Err(refuse(format!("{} is not the size of such a matrix", shown(line)))),
        };
        if rows != columns || rows > Traffic::MOST {
            return Err(refuse(format!(
                "{rows} x {columns}: a traffic matrix is square, of up to {} ranks",
                Traffic::MOST
            )));
        }
        let stored = if self.symmetric { rows * (rows + 1) / 2 } else { rows * rows };
        Ok((rows as u32, entries.unwrap_or(stored)))
    }

    /// The row and column of each value of an array: column by column, starting at the diagonal if symmetric.
    fn places(self, ranks: u32) -> impl Iterator<Item = (u32, u32)> {
        let first = move |column| if self.symmetric { column } else { 0 };
        (0..ranks).flat_map(move |column| (first(column)..ranks).map(move |row| (row, column)))
    }

    fn entry(self, line: &str, place: Option<(u32, u32)>) -> Result<TrafficEntry, InputError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (row, column, value) = match (&words[..], self.coordinate, self.pattern) {
            ([row, column, value], true, false) => (rank(row)?, rank(column)?, *value),
            ([row, column], true, true) => (rank(row)?, rank(column)?, "1"),
            ([value], false, _) => {
                let (row, column) = place.unwrap_or_default();
                (row, column, *value)
            }
            _ => return Err(refuse(format!("{} is not an entry of such a matrix", shown(line)))),
        };
        let bytes: f64 =
            value.parse().map_err(|_| refuse(format!("{} is not a number", shown(value))))?;
        // An explicit zero is not a message.
        let messages = f64::from(u8::from(bytes != 0.0));
        Ok(TrafficEntry { from: row, to: column, bytes, messages })
    }
}

/// Parses a row or column, which are numbered from 1.
fn rank(text: &str) -> Result<u32, InputError> {
    let number: Option<u32> = text.parse().ok();
    let number = number.and_then(|number| number.checked_sub(1));
    number.ok_or_else(|| refuse(format!("{} is not a row or column, counted from 1", shown(text))))
}
