//! Reads the interconnect file of a Cray XC: every tile of every Aries router.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{MachineOptions, Read};
use crate::check::{MOST_NODES, MOST_SWITCHES};
use crate::description::{DragonflyDescription, SwitchCable};
use crate::error::{InputError, is_printable, shown};
use crate::hostlist::LONGEST_NAME;
use crate::presets::{ELECTRICAL, OPTICAL, dragonfly_of};

/// Processor tiles of a node.
const TILES_OF_NODE: usize = 2;
/// What a line says, for errors.
const LINE: &str = "ROUTERlTILE(GROUP:ROW:COLUMN) green, black, blue or ptile -> the other end, unused or processor";

/// A router: its group, row and column.
type Place = (u32, u32, u32);

/// One end of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Tile<'a> {
    router: &'a str,
    number: &'a str,
}

#[derive(Default)]
struct Routers<'a> {
    places: HashMap<&'a str, Place>,
    names: BTreeMap<Place, &'a str>,
    /// All tiles that a line is about.
    tiles: HashSet<Tile<'a>>,
    /// Processor tiles of each router, and the line of the last.
    processors: HashMap<&'a str, (usize, usize)>,
    /// The other end of each tile, the bandwidth, and the line.
    ends: HashMap<Tile<'a>, (Tile<'a>, f64, usize)>,
}

/// Whether a line is one of this format.
pub(super) fn is_aries(line: &str) -> bool {
    [") green -> ", ") black -> ", ") blue -> ", ") ptile -> "]
        .iter()
        .any(|word| line.contains(word))
}

/// Reads lines of `c0-0c0s0a0l00(0:0:0) green -> c0-0c0s6a0l10(0:0:6)`: a tile of a router with its group, row and
/// column, the kind of the link, and the other end, `unused` or `processor`. Green links join routers of one row, black
/// ones routers of one column, blue ones groups. Each cable is there from both ends. Two processor tiles are a node.
///
/// # Errors
/// With its line: a line of another form; a tile that occurs twice; a router at two places, or two at one; a link whose
/// kind does not fit its ends; a cable that the other end does not confirm; an odd number of processor tiles. No
/// processor tile; too many routers or nodes.
pub(super) fn aries(text: &str, _: &MachineOptions) -> Result<Read, InputError> {
    let mut routers = Routers::default();
    for (row, line) in text.lines().map(str::trim).zip(1..).filter(|(row, _)| !row.is_empty()) {
        routers.add(row).map_err(|message| InputError::at(line, message))?;
        routers.note_line(row, line);
    }
    routers.machine()
}

impl<'a> Routers<'a> {
    /// Adds what a line says. Lines are recorded by [`Routers::note_line`].
    fn add(&mut self, row: &'a str) -> Result<(), String> {
        let refuse = || format!("{} is not {LINE}", shown(row));
        let words: Vec<&str> = row.split_whitespace().collect();
        let [from, kind, "->", to] = words[..] else { return Err(refuse()) };
        let (tile, place) = end(from).ok_or_else(refuse)?;
        self.place(tile.router, place)?;
        if !self.tiles.insert(tile) {
            return Err(format!("tile {} stands on two lines", shown(from)));
        }
        let bandwidth = match kind {
            "ptile" if to == "processor" => {
                self.processors.entry(tile.router).or_default().0 += 1;
                return Ok(());
            }
            "green" | "black" => ELECTRICAL,
            "blue" => OPTICAL,
            _ => return Err(refuse()),
        };
        if to == "unused" {
            return Ok(());
        }
        let (other, there) = end(to).ok_or_else(refuse)?;
        self.place(other.router, there)?;
        let fits = match kind {
            "green" => (place.0, place.1) == (there.0, there.1) && place.2 != there.2,
            "black" => (place.0, place.2) == (there.0, there.2) && place.1 != there.1,
            _ => place.0 != there.0,
        };
        if !fits {
            return Err(format!("a {kind} link cannot join {} and {}", shown(from), shown(to)));
        }
        self.ends.insert(tile, (other, bandwidth, 0));
        Ok(())
    }

    fn note_line(&mut self, row: &'a str, line: usize) {
        if let Some((tile, _)) = row.split_whitespace().next().and_then(end) {
            if let Some(end) = self.ends.get_mut(&tile).filter(|end| end.2 == 0) {
                end.2 = line;
            }
            if let Some(processors) = self.processors.get_mut(tile.router) {
                processors.1 = line;
            }
        }
    }

    fn place(&mut self, router: &'a str, place: Place) -> Result<(), String> {
        let name = |(group, row, column): Place| format!("({group}:{row}:{column})");
        if let Some(&other) = self.places.get(router) {
            if other == place {
                return Ok(());
            }
            let (one, other) = (name(other), name(place));
            return Err(format!("router {} is at {one} and at {other}", shown(router)));
        }
        if self.places.len() as u64 >= MOST_SWITCHES {
            return Err(format!("there are more than {MOST_SWITCHES} routers"));
        }
        self.places.insert(router, place);
        match self.names.insert(place, router) {
            Some(other) => {
                let at = name(place);
                Err(format!("routers {} and {} are both at {at}", shown(other), shown(router)))
            }
            None => Ok(()),
        }
    }

    fn machine(&self) -> Result<Read, InputError> {
        let mut groups: Vec<Vec<String>> = Vec::new();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut nodes: Vec<Vec<String>> = Vec::new();
        let mut total = 0;
        let mut last = None;
        for (&(group, ..), &router) in &self.names {
            if last != Some(group) {
                groups.push(Vec::new());
                last = Some(group);
            }
            numbers.insert(router, numbers.len() as u32);
            let (tiles, line) = self.processors.get(router).copied().unwrap_or_default();
            if tiles % TILES_OF_NODE != 0 {
                let router = shown(router);
                let message =
                    format!("router {router} has {tiles} processor tiles, but a node has two");
                return Err(InputError::at(line, message));
            }
            total += tiles / TILES_OF_NODE;
            let stem = router.strip_suffix("a0").unwrap_or(router);
            nodes.push((0..tiles / TILES_OF_NODE).map(|node| format!("{stem}n{node}")).collect());
            if let Some(group) = groups.last_mut() {
                group.push(router.to_owned());
            }
        }
        if total == 0 || total > MOST_NODES {
            let message = format!(
                "there are {total} nodes (pairs of processor tiles), not 1 to {MOST_NODES}"
            );
            return Err(InputError::whole(message));
        }
        let leads_back = |(tile, end): &(&Tile<'a>, &(Tile<'a>, f64, usize))| {
            self.ends.get(&end.0).map(|end| end.0) == Some(**tile)
        };
        let astray = self.ends.iter().filter(|end| !leads_back(end)).min_by_key(|(_, end)| end.2);
        if let Some((tile, &(other, _, line))) = astray {
            let message = format!(
                "router {} tile {} leads to router {} tile {}, which does not lead back",
                shown(tile.router),
                shown(tile.number),
                shown(other.router),
                shown(other.number)
            );
            return Err(InputError::at(line, message));
        }
        let mut counts: BTreeMap<(u32, u32), (u32, f64)> = BTreeMap::new();
        for (tile, &(other, bandwidth, _)) in &self.ends {
            let (a, b) = (numbers[tile.router], numbers[other.router]);
            if a < b {
                counts.entry((a, b)).or_insert((0, bandwidth)).0 += 1;
            }
        }
        let cables = counts.into_iter();
        let cables = cables
            .map(|(between, (count, bandwidth))| SwitchCable { between, count, bandwidth })
            .collect();
        let wiring = DragonflyDescription { groups, cables, detours: None };
        let mut nodes = nodes.into_iter();
        let description =
            dragonfly_of(super::UNNAMED, wiring, ELECTRICAL, || nodes.next().unwrap_or_default());
        let note =
            "two processor tiles of a router are taken as a node; their nodes are numbered from 0";
        Ok(Read::with_notes(description, vec![note.to_owned()]))
    }
}

/// Parses `c0-0c0s0a0l00(0:0:0)`.
fn end(word: &str) -> Option<(Tile<'_>, Place)> {
    let (tile, place) = word.strip_suffix(')')?.split_once('(')?;
    let (router, number) = tile.rsplit_once('l')?;
    let is_name =
        !router.is_empty() && router.len() < LONGEST_NAME && router.chars().all(is_printable);
    let mut numbers = place.split(':').map(|number| number.parse().ok());
    let place = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_tile = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let holds = is_name && is_tile && numbers.next().is_none();
    holds.then_some((Tile { router, number }, place))
}
