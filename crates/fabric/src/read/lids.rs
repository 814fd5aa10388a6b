//! Local identifiers (LIDs): the addresses that a subnet manager gives to hosts and switches.

/// The LIDs of one port: `2^lmc` consecutive ones from a base.
#[derive(Clone, Copy)]
pub(super) struct Lids {
    pub base: u16,
    pub count: u16,
}

/// The highest LID of a single receiver; higher ones are multicast.
pub(super) const HIGHEST: u16 = 0xbfff;

impl Lids {
    /// Parses `... lid 13 lmc 0`; `None` if there is no LID, or none was assigned yet (0).
    pub(super) fn parse(text: &str) -> Option<Lids> {
        let mut words = text.split_ascii_whitespace();
        words.find(|word| *word == "lid")?;
        let base = words.next()?.parse().ok().filter(|base| (1..=HIGHEST).contains(base))?;
        let lmc = match (words.next(), words.next()) {
            (Some("lmc"), Some(lmc)) => lmc.parse::<u8>().ok().filter(|lmc| *lmc < 8)?,
            _ => 0,
        };
        Some(Lids { base, count: 1 << lmc })
    }

    pub(super) fn all(self) -> impl Iterator<Item = u16> {
        (self.base..=HIGHEST).take(usize::from(self.count))
    }
}
