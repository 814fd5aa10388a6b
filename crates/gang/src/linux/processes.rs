//! Reads processes and threads from /proc.

use std::collections::BTreeSet;
use std::fs;

/// The number of a process or a thread.
pub type Number = i32;

/// The needed fields of /proc/PID/stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The parent process.
    pub parent: Number,
    /// Whether the process has ended and waits for its parent to collect it.
    pub ended: bool,
    /// When the process began, in clock ticks since boot. Together with its number it identifies the process.
    pub began: u64,
}

/// Reads the fields of a process or thread; `None` if it does not exist.
pub fn stat(number: Number) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{number}/stat")).ok()?)
}

/// Parses the fields. The command name, in parentheses, may contain anything, so fields are counted from its end.
fn parse(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        ended: matches!(*fields.first()?, "Z" | "X"),
        began: fields.get(19)?.parse().ok()?,
    })
}

/// Whether a process or thread exists and has not ended.
pub fn lives(number: Number) -> bool {
    stat(number).is_some_and(|stat| !stat.ended)
}

/// The process of a thread.
pub fn process_of(thread: Number) -> Option<Number> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// The numbers that are names in a directory of /proc.
fn numbers(directory: &str) -> Vec<Number> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// The threads of a process.
pub fn threads(process: Number) -> Vec<Number> {
    numbers(&format!("/proc/{process}/task"))
}

/// The living processes among `roots` and all their descendants.
pub fn tree(roots: impl IntoIterator<Item = Number>) -> BTreeSet<Number> {
    let mut found = BTreeSet::new();
    let mut open: Vec<Number> = roots.into_iter().filter(|&root| lives(root)).collect();
    while let Some(process) = open.pop() {
        if found.insert(process) {
            open.extend(children(process).into_iter().filter(|&child| lives(child)));
        }
    }
    found
}

fn children(process: Number) -> Vec<Number> {
    let of = |thread: Number| {
        fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).unwrap_or_default()
    };
    let texts = threads(process).into_iter().map(of);
    texts.flat_map(|text| read(&text)).collect()
}

/// The numbers in a text.
pub fn read(text: &str) -> Vec<Number> {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command name may contain anything, including parentheses and blanks.
    #[test]
    fn a_name_does_not_hide_the_fields() {
        let text = "7 (a) S (b) Z 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        assert_eq!(parse(text), Some(Stat { parent: 3, ended: true, began: 4711 }));
        assert_eq!(parse("7 (a"), None);
    }

    /// This test is in the tree of its own process, together with a child that has not ended.
    #[test]
    fn a_tree_has_children_that_live() {
        let me = Number::try_from(std::process::id()).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let number = Number::try_from(child.id()).unwrap();
        assert!(tree([me]).is_superset(&BTreeSet::from([me, number])));
        child.kill().unwrap();
        while lives(number) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!tree([me]).contains(&number), "it is a zombie until waited for");
        child.wait().unwrap();
    }
}
