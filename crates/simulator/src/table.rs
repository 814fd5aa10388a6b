//! Tables of columns, and their output as CSV.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

use crate::FORMULA;

/// A table of columns with equal lengths. Columns are checked when a table is read, so code that hands out pointers to
/// them need not check again.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Table {
    columns: Vec<Column>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The name of the column.
    pub name: Cow<'static, str>,
    /// The values of the column.
    pub values: Values,
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Values {
    /// Numbers that identify jobs.
    Ids(Vec<u64>),
    /// Whole numbers.
    Whole(Vec<i64>),
    /// Whole numbers, some of which are missing; these are stored as 0.
    Optional(Vec<i64>, Vec<bool>),
    /// Numbers, and the format to write them in.
    Numbers(Vec<f64>, Written),
    /// Texts; an empty text counts as missing.
    Text(Texts),
}

/// The format of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Written {
    /// Numbers without a fraction if they are whole, otherwise with six decimals.
    Short,
    /// Numbers with this number of decimals.
    Decimals(u8),
    /// Numbers with all their digits.
    Exact,
}

/// Texts, stored one after another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Texts {
    /// The offset of each text; then the end of the last one.
    offsets: Vec<i64>,
    bytes: Vec<u8>,
}

impl Table {
    /// Returns a table of columns, which must have equal lengths.
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        debug_assert!(columns.windows(2).all(|two| two[0].values.len() == two[1].values.len()));
        debug_assert!(columns.iter().all(|column| column.values.is_consistent()));
        Table { columns }
    }

    /// The columns of the table.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Writes the table as CSV, with a header line.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn write_csv(&self, to: &mut impl Write) -> io::Result<()> {
        let names: Vec<&str> = self.columns.iter().map(|column| &*column.name).collect();
        writeln!(to, "{}", names.join(","))?;
        let mut row = Vec::with_capacity(512);
        for index in 0..self.rows() {
            row.clear();
            for column in &self.columns {
                column.values.write(index, &mut row)?;
                row.push(b',');
            }
            row.pop();
            row.push(b'\n');
            to.write_all(&row)?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let columns = Vec::<Column>::deserialize(deserializer)?;
        // Check this first, because only a consistent column has a length.
        if !columns.iter().all(|column| column.values.is_consistent()) {
            return Err(D::Error::custom("a column whose parts do not fit together"));
        }
        if columns.windows(2).any(|two| two[0].values.len() != two[1].values.len()) {
            return Err(D::Error::custom("columns of different lengths"));
        }
        Ok(Table { columns })
    }
}

impl Column {
    pub(crate) fn new(name: &'static str, values: Values) -> Self {
        Column { name: Cow::Borrowed(name), values }
    }

    pub(crate) fn numbers(
        name: &'static str,
        written: Written,
        values: impl Iterator<Item = f64>,
    ) -> Self {
        Column::new(name, Values::Numbers(values.collect(), written))
    }

    pub(crate) fn whole<N: Into<i64>>(name: &'static str, values: impl Iterator<Item = N>) -> Self {
        Column::new(name, Values::Whole(values.map(Into::into).collect()))
    }

    // Offsets of data in memory fit in 63 bits.
    #[allow(clippy::cast_possible_wrap)]
    pub(crate) fn text<T: AsRef<[u8]>>(
        name: &'static str,
        values: impl Iterator<Item = T>,
    ) -> Self {
        let mut texts = Texts { offsets: vec![0], bytes: Vec::new() };
        for text in values {
            texts.bytes.extend_from_slice(text.as_ref());
            texts.offsets.push(texts.bytes.len() as i64);
        }
        Column::new(name, Values::Text(texts))
    }
}

impl Values {
    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Ids(values) => values.len(),
            Values::Whole(values) | Values::Optional(values, _) => values.len(),
            Values::Numbers(values, _) => values.len(),
            Values::Text(texts) => texts.offsets.len() - 1,
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the parts of a column match: a flag for every optional number, and valid UTF-8 texts without gaps.
    fn is_consistent(&self) -> bool {
        match self {
            Values::Ids(_) | Values::Whole(_) | Values::Numbers(..) => true,
            Values::Optional(values, present) => values.len() == present.len(),
            Values::Text(Texts { offsets, bytes }) => {
                let Ok(text) = std::str::from_utf8(bytes) else { return false };
                offsets.first() == Some(&0)
                    && offsets.is_sorted()
                    && offsets.last().is_some_and(|&end| usize::try_from(end) == Ok(text.len()))
                    && offsets.iter().all(|&offset| text.is_char_boundary(offset as usize))
            }
        }
    }

    /// For each value, whether it is present; `None` if all are.
    pub fn present(&self) -> Option<Vec<bool>> {
        match self {
            Values::Ids(_) | Values::Whole(_) | Values::Numbers(..) => None,
            Values::Optional(_, present) => Some(present.clone()),
            Values::Text(texts) => {
                Some(texts.offsets.windows(2).map(|ends| ends[0] < ends[1]).collect())
            }
        }
    }

    fn write(&self, index: usize, row: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Values::Ids(values) => write!(row, "{}", values[index]),
            Values::Whole(values) => write!(row, "{}", values[index]),
            Values::Optional(values, present) if present[index] => write!(row, "{}", values[index]),
            Values::Optional(..) => Ok(()),
            Values::Numbers(values, written) => written.write(values[index], row),
            Values::Text(texts) => {
                quote(texts.get(index), row);
                Ok(())
            }
        }
    }
}

impl Written {
    fn write(self, value: f64, row: &mut Vec<u8>) -> io::Result<()> {
        match self {
            // Writing it as an integer is also faster.
            Written::Short if value.fract() == 0.0 && value.abs() < 1e15 => {
                write!(row, "{}", value as i64)
            }
            Written::Short => write!(row, "{value:.6}"),
            Written::Decimals(decimals) => write!(row, "{value:.*}", usize::from(decimals)),
            Written::Exact => write!(row, "{value}"),
        }
    }
}

impl Texts {
    /// The offset of each text; then the end of the last one.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// All texts, in UTF-8.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

/// Writes a text as a CSV field, in quotes if necessary. A text that a spreadsheet would treat as a formula gets an
/// apostrophe in front.
fn quote(text: &[u8], row: &mut Vec<u8>) {
    let guard = text.first().is_some_and(|&first| FORMULA.contains(&char::from(first)));
    if !text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        row.extend(guard.then_some(b'\''));
        row.extend_from_slice(text);
        return;
    }
    row.push(b'"');
    row.extend(guard.then_some(b'\''));
    for &byte in text {
        if byte == b'"' {
            row.push(b'"');
        }
        row.push(byte);
    }
    row.push(b'"');
}
