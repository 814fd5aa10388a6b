//! The traffic matrix: bytes and messages between ranks in one iteration.

use std::ops::RangeInclusive;

use topolane_fabric::{InputError, scramble};

/// What one rank sends another in one iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Bytes in one iteration.
    pub bytes: f64,
    /// Messages in one iteration.
    pub messages: f64,
}

/// Bytes and messages between the ranks of one job in one iteration: sparse, rows by sender.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Traffic {
    ranks: u32,
    /// By (from, to), each pair once, no rank to itself, none without bytes and messages.
    entries: Vec<Entry>,
    /// First entry of every sender, and their number at the end.
    first: Vec<u32>,
    /// Bytes of every entry, if there is one for each pair and all have the same.
    exchanged: Option<f64>,
}

impl Traffic {
    /// The most ranks, and the most entries, that a matrix may have: 4,096 ranks all to all.
    pub const MOST: usize = 1 << 24;

    /// What bytes and messages may be other than 0: sums, shares and times of them are then numbers.
    pub const AMOUNTS: RangeInclusive<f64> = 1e-30..=1e30;

    /// The traffic of `ranks` ranks. Entries of one pair are added up; what a rank sends itself,
    /// or sends nothing of, is skipped.
    ///
    /// # Errors
    /// More than [`Self::MOST`] ranks or entries; a rank out of range; bytes or messages that are
    /// neither 0 nor among [`Self::AMOUNTS`].
    pub fn new(
        ranks: u32,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<Traffic, InputError> {
        Traffic::check_size("ranks", ranks as usize)?;
        let entries = entries.into_iter();
        let mut kept: Vec<Entry> = Vec::with_capacity(entries.size_hint().0.min(Traffic::MOST));
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

    /// The same program on another number of ranks: fewer take over ranks that follow each other, as evenly as
    /// can be; of more the last are idle.
    ///
    /// # Errors
    /// More than [`Self::MOST`] ranks.
    pub fn folded(&self, ranks: u32) -> Result<Traffic, InputError> {
        let fewer = u64::from(ranks.min(self.ranks));
        let onto = |rank: u32| (u64::from(rank) * fewer / u64::from(self.ranks.max(1))) as u32;
        let entries = self.entries.iter();
        Traffic::new(
            ranks,
            entries.map(|entry| Entry { from: onto(entry.from), to: onto(entry.to), ..*entry }),
        )
    }

    /// About as many entries as `most`, drawn evenly, with the bytes and messages of the others on them.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Traffic {
        let share = most as f64 / self.entries.len().max(1) as f64;
        if share >= 1.0 {
            return self.clone();
        }
        let limit = (share * u64::MAX as f64) as u64;
        let is_drawn =
            |entry: &&Entry| scramble(u64::from(entry.from) << 32 | u64::from(entry.to)) <= limit;
        let drawn = self.entries.iter().filter(is_drawn);
        let larger = |entry: &Entry| {
            let [bytes, messages] = [entry.bytes, entry.messages]
                .map(|amount| (amount / share).min(*Traffic::AMOUNTS.end()));
            Entry { bytes, messages, ..*entry }
        };
        // Fewer entries than before, so none is refused.
        Traffic::new(self.ranks, drawn.map(larger)).unwrap_or_else(|_| self.clone())
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// All entries by (from, to); each pair once, no rank to itself.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What a rank sends, by receiver.
    pub fn sent_by(&self, rank: u32) -> &[Entry] {
        let first = |rank: usize| self.first[rank] as usize;
        &self.entries[first(rank as usize)..first(rank as usize + 1)]
    }

    /// The bytes that every rank sends each other rank, if that is the same for all.
    pub fn exchanged(&self) -> Option<f64> {
        self.exchanged
    }

    /// Bytes of one iteration.
    pub fn bytes(&self) -> f64 {
        self.entries.iter().map(|entry| entry.bytes).fold(0.0, |sum, bytes| sum + bytes)
    }

    /// Messages of one iteration.
    pub fn messages(&self) -> f64 {
        self.entries.iter().map(|entry| entry.messages).fold(0.0, |sum, count| sum + count)
    }
}

fn exchanged(ranks: u32, entries: &[Entry]) -> Option<f64> {
    let bytes = entries.first()?.bytes;
    let pairs = u64::from(ranks) * u64::from(ranks - 1);
    let is_whole = entries.len() as u64 == pairs && bytes > 0.0;
    let is_same = |entry: &Entry| entry.bytes.to_bits() == bytes.to_bits();
    (is_whole && entries.iter().all(is_same)).then_some(bytes)
}

impl Entry {
    /// Refuses what no matrix of `ranks` ranks can hold.
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
