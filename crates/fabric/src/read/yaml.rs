//! Parses YAML (and JSON, which is part of it) to values with line numbers.

use std::collections::HashSet;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use crate::error::{InputError, is_printable, shown};

/// The longest text that is parsed.
const LONGEST_TEXT: usize = 256 << 20;
/// The most values of a text, because each takes several times the memory of its text.
const MOST_VALUES: usize = 8 << 20;
/// The deepest nesting.
const DEEPEST: usize = 64;

/// A value and the line on which it starts, from 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub line: usize,
    pub kind: ValueKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueKind {
    /// An empty value or `null`.
    Null,
    Text(String),
    List(Vec<Value>),
    /// Entries in the order of the text; no key occurs twice.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// The value of a key; `None` if this is not a map, or if the key is absent or null.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let ValueKind::Map(entries) = &self.kind else { return None };
        let found = entries.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value).filter(|value| value.kind != ValueKind::Null)
    }

    /// The text of a value; `what` describes it in errors.
    pub fn text(&self, what: &str) -> Result<&str, InputError> {
        match &self.kind {
            ValueKind::Text(text) if text.chars().all(is_printable) => Ok(text),
            ValueKind::Text(text) => {
                Err(self.refuse(format!("{what} holds a control character: {}", shown(text))))
            }
            _ => Err(self.wants(what, "a text")),
        }
    }

    /// The items of a list; empty for null.
    pub fn list(&self, what: &str) -> Result<&[Value], InputError> {
        match &self.kind {
            ValueKind::List(items) => Ok(items),
            ValueKind::Null => Ok(&[]),
            _ => Err(self.wants(what, "a list")),
        }
    }

    /// The entries of a map; empty for null.
    pub fn map(&self, what: &str) -> Result<&[(String, Value)], InputError> {
        match &self.kind {
            ValueKind::Map(entries) => Ok(entries),
            ValueKind::Null => Ok(&[]),
            _ => Err(self.wants(what, "a map")),
        }
    }

    /// The value as a boolean, as YAML 1.1 and 1.2 write it.
    pub fn truth(&self, what: &str) -> Result<bool, InputError> {
        match self.text(what)?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(true),
            "false" | "no" | "off" => Ok(false),
            other => Err(self.refuse(format!("{what} is {}, not true or false", shown(other)))),
        }
    }

    /// Refuses keys of a map other than the known ones.
    pub fn only_keys(&self, what: &str, known: &[&str]) -> Result<(), InputError> {
        let entries = self.map(what)?;
        match entries.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            Some((key, value)) => Err(value.refuse(format!(
                "unknown key {} of {what} (known are {})",
                shown(key),
                known.join(", ")
            ))),
            None => Ok(()),
        }
    }

    pub fn refuse(&self, message: String) -> InputError {
        InputError::at(self.line, message)
    }

    fn wants(&self, what: &str, wanted: &str) -> InputError {
        let is = match &self.kind {
            ValueKind::Null => "nothing",
            ValueKind::Text(_) => "a text",
            ValueKind::List(_) => "a list",
            ValueKind::Map(_) => "a map",
        };
        self.refuse(format!("{what} is {is}, not {wanted}"))
    }
}

/// Parses the documents of a text. Values of the keys in `skipped` are dropped at any depth.
///
/// # Errors
/// With its line: invalid YAML, an alias, a key that occurs twice or is not a text, or a text that is too long, too
/// deep or has too many values.
pub(super) fn documents(text: &str, skipped: &[&str]) -> Result<Vec<Value>, InputError> {
    if text.len() > LONGEST_TEXT {
        let message = format!("{} bytes of YAML are more than {LONGEST_TEXT}", text.len());
        return Err(InputError::whole(message));
    }
    let mut builder = ValueBuilder { skipped, documents: Vec::new(), open: Vec::new(), values: 0 };
    let mut parser: Parser<StrInput> = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| not_yaml(&error))?;
        builder.add(event, span)?;
    }
    Ok(builder.documents)
}

fn not_yaml(error: &ScanError) -> InputError {
    let what = error.info();
    InputError::at(error.marker().line(), format!("neither YAML nor JSON: {what}"))
}

/// A list or map that is not closed yet.
struct Open {
    value: Value,
    /// The key of a map whose value comes next.
    key: Option<String>,
    /// The keys of a map with many entries.
    many: HashSet<String>,
}

/// A map with at least this number of keys keeps them in a set.
const MANY: usize = 16;

impl Open {
    /// The line of an earlier entry with this key; 0 if its value was skipped.
    fn repeated(&mut self, name: &str) -> Option<usize> {
        let ValueKind::Map(entries) = &self.value.kind else { return None };
        if entries.len() >= MANY {
            if self.many.is_empty() {
                self.many.extend(entries.iter().map(|(name, _)| name.clone()));
            }
            if self.many.insert(name.to_owned()) {
                return None;
            }
        }
        entries.iter().find(|(known, _)| known == name).map(|(_, value)| value.line)
    }
}

struct ValueBuilder<'a> {
    skipped: &'a [&'a str],
    documents: Vec<Value>,
    open: Vec<Open>,
    values: usize,
}

impl ValueBuilder<'_> {
    fn add(&mut self, event: Event, span: Span) -> Result<(), InputError> {
        let line = span.start.line();
        match event {
            Event::Alias(_) => {
                Err(InputError::at(line, "an alias (*name) stands here; aliases are not read"))
            }
            Event::Scalar(text, style, ..) => {
                let is_null = style == ScalarStyle::Plain
                    && matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL");
                let kind =
                    if is_null { ValueKind::Null } else { ValueKind::Text(text.into_owned()) };
                self.put(Value { line, kind })
            }
            Event::SequenceStart(..) => {
                self.start(Value { line, kind: ValueKind::List(Vec::new()) })
            }
            Event::MappingStart(..) => self.start(Value { line, kind: ValueKind::Map(Vec::new()) }),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.put(open.value),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn start(&mut self, value: Value) -> Result<(), InputError> {
        if self.open.len() >= DEEPEST {
            return Err(value.refuse(format!("more than {DEEPEST} lists and maps in each other")));
        }
        self.open.push(Open { value, key: None, many: HashSet::new() });
        Ok(())
    }

    /// Puts a complete value into the list or map that contains it.
    fn put(&mut self, value: Value) -> Result<(), InputError> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(value.refuse(format!("more than {MOST_VALUES} values")));
        }
        let Some(open) = self.open.last_mut() else {
            if value.kind != ValueKind::Null {
                self.documents.push(value);
            }
            return Ok(());
        };
        match (&mut open.value.kind, open.key.take()) {
            (ValueKind::List(items), _) => items.push(value),
            (ValueKind::Map(entries), Some(name)) if !self.skipped.contains(&name.as_str()) => {
                entries.push((name, value));
            }
            (ValueKind::Map(_), None) => {
                // The value is a key of a map.
                let line = value.line;
                let ValueKind::Text(name) = value.kind else {
                    return Err(InputError::at(line, "a key is not a text"));
                };
                if let Some(first) = open.repeated(&name) {
                    let message = format!("key {} stands on line {first} already", shown(&name));
                    return Err(InputError::at(line, message));
                }
                open.key = Some(name);
            }
            _ => {}
        }
        Ok(())
    }
}
