//! The rules of each format for names, and the one place where names are made to obey them.

use std::collections::{HashMap, HashSet};

use crate::error::{is_printable, shown};
use crate::fabric::Fabric;

/// What a format permits in a name. A name that breaks the rules is replaced, and a note says so.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameLimits {
    /// The most bytes of a name.
    longest: usize,
    allows: fn(char) -> bool,
    /// The replacement for a character that is not allowed.
    instead: char,
    /// The most digits at the end of a name.
    digits: usize,
    /// Whether a name must begin and end with a letter or digit; and whether it must be in lower case.
    ends: bool,
    small: bool,
    /// A name with a special meaning, in lower case.
    reserved: &'static str,
}

/// Whether a hostlist can contain the character: separators and brackets would end a name. Quotes, `#`, `=` and `\`
/// have a meaning in the surrounding files.
fn in_hostlist(letter: char) -> bool {
    !letter.is_whitespace() && is_printable(letter) && !"[],\"#=\\".contains(letter)
}

fn in_slurm(letter: char) -> bool {
    in_hostlist(letter) && !"{}()'%".contains(letter)
}

fn in_label(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._-".contains(letter)
}

fn in_dns(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || ".-".contains(letter)
}

const PLAIN: NameLimits = NameLimits {
    longest: usize::MAX,
    allows: in_hostlist,
    instead: '_',
    digits: usize::MAX,
    ends: false,
    small: false,
    reserved: "",
};

impl NameLimits {
    /// Names that are only shown by Topolane.
    pub const SHOWN: NameLimits = PLAIN;
    /// Names in hostlists of our own machine file: 255 characters.
    pub const TOML: NameLimits = NameLimits { longest: 255, ..PLAIN };
    /// Other names in our own machine file.
    pub const TEXT: NameLimits = NameLimits { longest: 255, allows: is_printable, ..PLAIN };
    /// Nodes, switches and blocks of Slurm: 64 characters (`HOST_NAME_MAX`). A number at the end overflows Slurm's
    /// hostlist from 20 digits on, and ours from 19. `ALL` stands for all nodes, and `{...}` for a function.
    pub const SLURM: NameLimits =
        NameLimits { longest: 64, allows: in_slurm, digits: 18, reserved: "all", ..PLAIN };
    /// The description of an `InfiniBand` node: 64 bytes including a final zero.
    pub const INFINIBAND: NameLimits = NameLimits { longest: 63, ..PLAIN };
    /// The value of a Kubernetes label.
    pub const LABEL: NameLimits = NameLimits { longest: 63, allows: in_label, ends: true, ..PLAIN };
    /// The name of a Kubernetes node, which is also the value of its hostname label: a DNS name.
    pub const KUBERNETES: NameLimits =
        NameLimits { longest: 63, allows: in_dns, instead: '-', ends: true, small: true, ..PLAIN };

    /// Returns the name as the format permits it, shortened to leave `room` bytes.
    fn fit(&self, name: &str, room: usize) -> String {
        let letter = |letter: char| {
            let letter = if self.small { letter.to_ascii_lowercase() } else { letter };
            if (self.allows)(letter) { letter } else { self.instead }
        };
        let mut own: String = name.chars().map(letter).collect();
        let most = self.longest.saturating_sub(room);
        let digits = own.len() - own.trim_end_matches(|l: char| l.is_ascii_digit()).len();
        if digits > self.digits || own.eq_ignore_ascii_case(self.reserved) {
            own.push(self.instead);
        }
        if own.len() > most {
            let kept = (0..=most).rev().find(|&end| own.is_char_boundary(end)).unwrap_or(0);
            own.truncate(kept);
            let cut = own.len() - own.trim_end_matches(|l: char| l.is_ascii_digit()).len();
            if cut > self.digits {
                own.pop();
                own.push(self.instead);
            }
        }
        if self.ends {
            let odd = |letter: char| !letter.is_ascii_alphanumeric();
            return match own.trim_matches(odd) {
                "" => "x".to_owned(),
                inside => inside.to_owned(),
            };
        }
        if own.is_empty() { "_".to_owned() } else { own }
    }
}

/// The names in a text, unique among things of one kind, and a list of those that were changed.
#[derive(Debug)]
pub(super) struct Names {
    limits: NameLimits,
    taken: HashSet<String>,
    /// The next number to append to a name that is taken.
    next: HashMap<String, usize>,
    /// For each changed name: the kind of thing, the name in the machine, the name in the text.
    renamed: Vec<(&'static str, String, String)>,
}

impl Names {
    /// Returns an empty list for names with these limits.
    pub fn new(limits: NameLimits) -> Self {
        Names { limits, taken: HashSet::new(), next: HashMap::new(), renamed: Vec::new() }
    }

    /// Starts another kind of thing, which may reuse the names.
    pub fn begin(&mut self, limits: NameLimits) {
        self.limits = limits;
        self.taken.clear();
        self.next.clear();
    }

    /// Returns `name` as the limits permit it. If it is taken, puts `site` before it; if that is taken too, appends a
    /// number.
    pub fn unique(&mut self, what: &'static str, name: &str, site: &str) -> String {
        let mut free = self.limits.fit(name, 0);
        if self.taken.contains(&free) {
            free = self.limits.fit(&format!("{site}-{name}"), 0);
        }
        if self.taken.contains(&free) {
            // In a long name, the number replaces the last characters.
            let stem = self.limits.fit(&format!("{site}-{name}"), 1 + NUMBER);
            let next = self.next.entry(stem.clone()).or_insert(2);
            while self.taken.contains(&free) {
                free = format!("{stem}-{next}");
                *next += 1;
            }
        }
        self.taken.insert(free.clone());
        if free != name {
            self.renamed.push((what, name.to_owned(), free.clone()));
        }
        free
    }

    /// Takes over the changed names of another list.
    pub fn add(&mut self, others: Names) {
        self.renamed.extend(others.renamed);
    }

    /// The names of all nodes, in node order.
    pub fn nodes(&mut self, fabric: &Fabric) -> Vec<String> {
        (0..fabric.nodes())
            .map(|node| self.unique("node", fabric.node_name(node), "node"))
            .collect()
    }

    /// A sentence for each kind of thing with changed names, with an example and the reason.
    pub fn notes(&self, format: &str) -> Vec<String> {
        let mut notes = Vec::new();
        for what in ["machine", "site", "node", "switch", "domain"] {
            let mut renamed = self.renamed.iter().filter(|(of, ..)| *of == what);
            let Some((_, name, written)) = renamed.next() else { continue };
            let others = match renamed.count() {
                0 => String::new(),
                1 => format!(", and 1 other {what} has another name too"),
                count => format!(", and {count} others of its kind have other names too"),
            };
            notes.push(format!(
                "{what} {} is written as {}{others}: {format} does not take every name, and each only once",
                shown(name),
                shown(written)
            ));
        }
        notes
    }
}

/// The number of digits reserved for a number after a name.
const NUMBER: usize = 7;
