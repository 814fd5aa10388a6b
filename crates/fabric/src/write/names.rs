//! What each format permits in a name, and names that keep to it: every name is checked here, once.

use std::collections::{HashMap, HashSet};

use crate::error::{is_printable, shown};
use crate::fabric::Fabric;

/// What a format permits in a name. A name that does not keep to it is written as another one, and a note says so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The most bytes.
    longest: usize,
    allows: fn(char) -> bool,
    /// What is written for a letter that is not allowed.
    instead: char,
    /// The most digits at its end.
    digits: usize,
    /// Whether it begins and ends with a letter or a digit, and in small letters throughout.
    ends: bool,
    small: bool,
    /// A name that means something else, in small letters.
    reserved: &'static str,
}

/// A name of a hostlist: separators and brackets would end it. Quotes, `#`, `=` and `\` mean something in the files around it.
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

const PLAIN: Limits = Limits {
    longest: usize::MAX,
    allows: in_hostlist,
    instead: '_',
    digits: usize::MAX,
    ends: false,
    small: false,
    reserved: "",
};

impl Limits {
    /// Names that only Topolane shows.
    pub const SHOWN: Limits = PLAIN;
    /// Our own machine file, whose hostlists take names of 255 letters.
    pub const TOML: Limits = Limits { longest: 255, ..PLAIN };
    /// Names in our own machine file that stand in no hostlist.
    pub const TEXT: Limits = Limits { longest: 255, allows: is_printable, ..PLAIN };
    /// Nodes, switches and blocks of Slurm: 64 letters (`HOST_NAME_MAX`); a number at the end overflows its hostlist from 20
    /// digits on, and ours from 19; `ALL` stands for all nodes, and `{...}` for a function.
    pub const SLURM: Limits =
        Limits { longest: 64, allows: in_slurm, digits: 18, reserved: "all", ..PLAIN };
    /// The description of an `InfiniBand` node: 64 bytes with a zero at the end.
    pub const INFINIBAND: Limits = Limits { longest: 63, ..PLAIN };
    /// A value of a label of Kubernetes.
    pub const LABEL: Limits = Limits { longest: 63, allows: in_label, ends: true, ..PLAIN };
    /// The name of a node of Kubernetes, which is also the value of its label for the host: a DNS name.
    pub const KUBERNETES: Limits =
        Limits { longest: 63, allows: in_dns, instead: '-', ends: true, small: true, ..PLAIN };

    /// The name as the format permits it, with `room` bytes to spare.
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

/// The names that a text gives, each once among those of its kind, and which of them are others than those of the machine.
#[derive(Debug)]
pub(super) struct Names {
    limits: Limits,
    taken: HashSet<String>,
    /// The next number behind a name that is taken.
    next: HashMap<String, usize>,
    /// What is named, its name in the machine, and its name in the text.
    renamed: Vec<(&'static str, String, String)>,
}

impl Names {
    /// For names of these limits.
    pub fn new(limits: Limits) -> Self {
        Names { limits, taken: HashSet::new(), next: HashMap::new(), renamed: Vec::new() }
    }

    /// Names of other things follow, which may have the same names.
    pub fn begin(&mut self, limits: Limits) {
        self.limits = limits;
        self.taken.clear();
        self.next.clear();
    }

    /// `name` as the limits permit it; where it is taken, with `site` before it, and where that is taken too, a number behind.
    pub fn unique(&mut self, what: &'static str, name: &str, site: &str) -> String {
        let mut free = self.limits.fit(name, 0);
        if self.taken.contains(&free) {
            free = self.limits.fit(&format!("{site}-{name}"), 0);
        }
        if self.taken.contains(&free) {
            // The number takes the place of the last letters of a long name.
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

    /// Takes over which names others have given.
    pub fn add(&mut self, others: Names) {
        self.renamed.extend(others.renamed);
    }

    /// The names of all nodes, by number.
    pub fn nodes(&mut self, fabric: &Fabric) -> Vec<String> {
        (0..fabric.nodes())
            .map(|node| self.unique("node", fabric.node_name(node), "node"))
            .collect()
    }

    /// A sentence for the names that are others than in the machine, and why, one of each kind of thing.
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

/// Digits of the largest number behind a name.
const NUMBER: usize = 7;
