//! What a program loses to a WAN inside it.

/// What crosses the cut of a program into two equal halves, a second of a run on one site.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cut {
    /// Messages from the other half that the rank with the most of them waits for: those that come after
    /// it has sent there. A stream of messages one way is one wait, an exchange is one each.
    pub turns: f64,
    /// Bytes across, in the direction with more of them.
    pub bytes: f64,
    /// Of the two ranks across the cut of whom one sends the other most.
    pub busiest: Pair,
}

/// One rank to another: one connection. Messages that follow each other without an answer are one burst.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pair {
    /// Bursts a second.
    pub bursts: f64,
    /// Bytes a second.
    pub bytes: f64,
}

/// A way between two sites.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Seconds, one way.
    pub latency: f64,
    /// Bytes a second in each direction, of what one program may have of it.
    pub bandwidth: f64,
    /// Bytes that one connection may have under way; `None` where that does not limit it.
    pub window: Option<f64>,
}

impl Pair {
    /// Seconds that a connection's window stops this pair, each second: a burst that does not fit the
    /// window waits a round trip for every further part of it.
    pub fn stopped(&self, latency: f64, window: Option<f64>) -> f64 {
        let Some(window) = window else { return 0.0 };
        if self.bursts <= 0.0 || window <= 0.0 {
            return 0.0;
        }
        let parts = (self.bytes / self.bursts / window).ceil();
        self.bursts * (parts - 1.0).max(0.0) * 2.0 * latency
    }
}

impl Cut {
    /// The seconds that a second of the program's run on one site takes longer where the path lies between its
    /// halves: every turn waits for the latency; what crosses takes its time at the bandwidth, or
    /// as long as the window stops the busiest pair. Compute and transfer are taken as not overlapping,
    /// and turns as waiting one after another: an upper estimate, made to order programs.
    pub fn loss(&self, path: Path) -> f64 {
        let transfer = self.bytes / path.bandwidth;
        self.turns * path.latency + transfer.max(self.busiest.stopped(path.latency, path.window))
    }

    /// The cut a second of a run on one site, from what was measured a second of a run that loses `lost`
    /// seconds of each: no part of the undisturbed one. At most 20 times what was measured.
    #[must_use]
    pub fn undisturbed(&self, lost: f64) -> Cut {
        self.times(1.0 / (1.0 - lost).max(0.05))
    }

    /// Of two cuts of one program what costs more.
    #[must_use]
    pub fn worse(self, other: Cut) -> Cut {
        let busiest =
            if self.busiest.bytes > other.busiest.bytes { self.busiest } else { other.busiest };
        Cut { turns: self.turns.max(other.turns), bytes: self.bytes.max(other.bytes), busiest }
    }

    /// All rates multiplied.
    #[must_use]
    pub fn times(&self, factor: f64) -> Cut {
        let busiest =
            Pair { bursts: self.busiest.bursts * factor, bytes: self.busiest.bytes * factor };
        Cut { turns: self.turns * factor, bytes: self.bytes * factor, busiest }
    }
}
