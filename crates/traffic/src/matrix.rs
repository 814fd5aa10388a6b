//! Traffic matrices: bytes and messages between ranks in one iteration.

use std::ops::RangeInclusive;

use topolane_fabric::{InputError, scramble};

/// What one rank sends to another in one iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrafficEntry {
    /// The sending rank.
    pub from: u32,
    /// The receiving rank.
    pub to: u32,
    /// Bytes per iteration.
    pub bytes: f64,
    /// Messages per iteration.
    pub messages: f64,
}

/// Bytes and messages between the ranks of one job in one iteration: a sparse matrix with one row per sender.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Traffic {
    ranks: u32,
    /// Entries sorted by (from, to), each pair once. No entry from a rank to itself, or without bytes and messages.
    entries: Vec<TrafficEntry>,
    /// The first entry of every sender; then the number of entries.
    first: Vec<u32>,
    /// The bytes of every entry, if all pairs have an entry and all have the same bytes.
    exchanged: Option<f64>,
}

impl Traffic {
    /// The most ranks, and the most entries, of a matrix: all-to-all traffic of 4,096 ranks.
    pub const MOST: usize = 1 << 24;

    /// The range of bytes and messages that are not 0, chosen so that sums and products do not overflow.
    pub const AMOUNTS: RangeInclusive<f64> = 1e-30..=1e30;

    /// Returns the traffic of `ranks` ranks. Entries of the same pair are added up. Entries from a rank to itself, or
    /// without content, are skipped.
    ///
    /// # Errors
    /// More than [`Self::MOST`] ranks or entries; a rank out of range; bytes or messages that are neither 0 nor in
    /// [`Self::AMOUNTS`].
    pub fn new(
        ranks: u32,
        entries: impl IntoIterator<Item = TrafficEntry>,
    ) -> Result<Traffic, InputError> {
        Traffic::check_size("ranks", ranks as usize)?;
        let entries = entries.into_iter();
        let mut kept: Vec<TrafficEntry> =
            Vec::with_capacity(entries.size_hint().0.min(Traffic::MOST));
        for entry in entries {
            entry.check(ranks)?;
            if entry.from != entry.to && (entry.bytes > 0.0 || entry.messages > 0.0) {
                kept.push(entry);
            }
        }
        kept.sort_by_key(|entry| (entry.from, entry.to));
        kept.dedup_by(|next, entry| {
            let same = (next.from, next.to) == (entry.from, entry.to);
            if same {
                entry.bytes += next.bytes;
                entry.messages += next.messages;
            }
            same
        });
        Traffic::check_size("entries", kept.len())?;
        let mut first = vec![0u32; ranks as usize + 1];
        for entry in &kept {
            first[entry.from as usize + 1] += 1;
        }
        for rank in 0..ranks as usize {
            first[rank + 1] += first[rank];
        }
        let exchanged = exchanged(ranks, &kept);
        Ok(Traffic { ranks, entries: kept, first, exchanged })
    }

    fn check_size(what: &str, size: usize) -> Result<(), InputError> {
        if size <= Traffic::MOST {
            return Ok(());
        }
        Err(InputError::whole(format!(
            "{size} {what} are more than the {} that a traffic matrix may have",
            Traffic::MOST
        )))
    }

    /// Returns the traffic of the same program on another number of ranks. With fewer ranks, each takes over
    /// consecutive ranks, as evenly as possible. With more, the last ones are idle.
    ///
    /// # Errors
    /// More than [`Self::MOST`] ranks.
    pub fn folded(&self, ranks: u32) -> Result<Traffic, InputError> {
        let fewer = u64::from(ranks.min(self.ranks));
        let onto = |rank: u32| (u64::from(rank) * fewer / u64::from(self.ranks.max(1))) as u32;
        let entries = self.entries.iter();
        Traffic::new(
            ranks,
            entries.map(|entry| TrafficEntry {
                from: onto(entry.from),
                to: onto(entry.to),
                ..*entry
            }),
        )
    }

    /// Returns a sample of about `most` entries, drawn evenly and scaled to the same total bytes and messages.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Traffic {
        let share = most as f64 / self.entries.len().max(1) as f64;
        if share >= 1.0 {
            return self.clone();
        }
        let limit = (share * u64::MAX as f64) as u64;
        let is_drawn = |entry: &&TrafficEntry| {
            scramble(u64::from(entry.from) << 32 | u64::from(entry.to)) <= limit
        };
        let drawn = self.entries.iter().filter(is_drawn);
        let larger = |entry: &TrafficEntry| {
            let [bytes, messages] = [entry.bytes, entry.messages]
                .map(|amount| (amount / share).min(*Traffic::AMOUNTS.end()));
            TrafficEntry { bytes, messages, ..*entry }
        };
        // A sample has fewer entries, so this cannot fail.
        Traffic::new(self.ranks, drawn.map(larger)).unwrap_or_else(|_| self.clone())
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// All entries, sorted by (from, to); each pair once, no rank to itself.
    pub fn entries(&self) -> &[TrafficEntry] {
        &self.entries
    }

    /// What a rank sends, sorted by receiver.
    pub fn sent_by(&self, rank: u32) -> &[TrafficEntry] {
        let first = |rank: usize| self.first[rank] as usize;
        &self.entries[first(rank as usize)..first(rank as usize + 1)]
    }

    /// The bytes that every rank sends to every other rank; `None` if they differ.
    pub fn exchanged(&self) -> Option<f64> {
        self.exchanged
    }

    /// The total bytes of one iteration.
    pub fn bytes(&self) -> f64 {
        self.entries.iter().map(|entry| entry.bytes).fold(0.0, |sum, bytes| sum + bytes)
    }

    /// The total messages of one iteration.
    pub fn messages(&self) -> f64 {
        self.entries.iter().map(|entry| entry.messages).fold(0.0, |sum, count| sum + count)
    }
}

fn exchanged(ranks: u32, entries: &[TrafficEntry]) -> Option<f64> {
    let bytes = entries.first()?.bytes;
    let pairs = u64::from(ranks) * u64::from(ranks - 1);
    let is_whole = entries.len() as u64 == pairs && bytes > 0.0;
    let is_same = |entry: &TrafficEntry| entry.bytes.to_bits() == bytes.to_bits();
    (is_whole && entries.iter().all(is_same)).then_some(bytes)
}

impl TrafficEntry {
    /// Checks that a matrix of `ranks` ranks can contain the entry.
    pub(crate) fn check(&self, ranks: u32) -> Result<(), InputError> {
        if let Some(rank) = [self.from, self.to].into_iter().find(|&rank| rank >= ranks) {
            return Err(InputError::whole(format!(
                "rank {rank} is not among the {ranks} ranks, which count from 0"
            )));
        }
        for (what, value) in [("bytes", self.bytes), ("messages", self.messages)] {
            if value != 0.0 && !Traffic::AMOUNTS.contains(&value) {
                return Err(InputError::whole(format!(
                    "{what} from rank {} to rank {} must be 0 or from {:e} to {:e}, not {value:?}",
                    self.from,
                    self.to,
                    Traffic::AMOUNTS.start(),
                    Traffic::AMOUNTS.end()
                )));
            }
        }
        Ok(())
    }
}
