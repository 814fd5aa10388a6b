//! Predicts the time that a program loses to a WAN between its guests.

/// The traffic between two equal halves of a program, per second of a run on one site.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cut {
    /// Messages from the other half for which a rank waits, for the rank with the most: messages that arrive after it
    /// has sent there. A one-way stream of messages is one wait; an exchange is one wait each.
    pub turns: f64,
    /// Bytes, in the direction with more of them.
    pub bytes: f64,
    /// The traffic of the two ranks in different halves of which one sends the other most.
    pub busiest: Pair,
}

/// Traffic from one rank to another over one connection. Consecutive messages without an answer are one burst.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pair {
    /// Bursts per second.
    pub bursts: f64,
    /// Bytes per second.
    pub bytes: f64,
}

/// A route between two sites.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// One-way latency in seconds.
    pub latency: f64,
    /// Bytes per second in each direction that one program may use.
    pub bandwidth: f64,
    /// The most bytes in flight on one connection; `None` if this does not limit it.
    pub window: Option<f64>,
}

impl Pair {
    /// Seconds per second for which the connection's window blocks this pair. A burst larger than the window waits one
    /// round trip for every further window.
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
    /// How much longer a second of the program's run takes, in seconds, if the path lies between its halves. Every turn
    /// waits for the latency; the traffic takes its time at the bandwidth, or as long as the window blocks the busiest
    /// pair. Computing and transfer are assumed not to overlap, and turns to wait one after another, so it is an upper
    /// estimate for ranking programs.
    pub fn loss(&self, path: Path) -> f64 {
        let transfer = self.bytes / path.bandwidth;
        self.turns * path.latency + transfer.max(self.busiest.stopped(path.latency, path.window))
    }

    /// The cut per second of an undisturbed run, from one measured in a run that loses `lost` seconds per second. At
    /// most 20 times the measured values.
    #[must_use]
    pub fn undisturbed(&self, lost: f64) -> Cut {
        self.times(1.0 / (1.0 - lost).max(0.05))
    }

    /// The larger values of two cuts of one program.
    #[must_use]
    pub fn worse(self, other: Cut) -> Cut {
        let busiest =
            if self.busiest.bytes > other.busiest.bytes { self.busiest } else { other.busiest };
        Cut { turns: self.turns.max(other.turns), bytes: self.bytes.max(other.bytes), busiest }
    }

    /// Returns the cut with all rates multiplied.
    #[must_use]
    pub fn times(&self, factor: f64) -> Cut {
        let busiest =
            Pair { bursts: self.busiest.bursts * factor, bytes: self.busiest.bytes * factor };
        Cut { turns: self.turns * factor, bytes: self.bytes * factor, busiest }
    }
}
