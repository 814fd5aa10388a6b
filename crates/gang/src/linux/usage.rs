//! Reads what the threads of a job did from /proc/TID/schedstat.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::Vacant;
use std::fs::File;
use std::ops::{Add, Sub};
use std::os::unix::fs::FileExt;

use super::processes::Number;

/// Nanoseconds on a core, and nanoseconds ready without one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreTimes {
    /// Time on a core.
    pub ran: u64,
    /// Time ready for a core. Estimates of it may decrease.
    pub ready: i64,
}

impl Add for CoreTimes {
    type Output = CoreTimes;
    fn add(self, other: CoreTimes) -> CoreTimes {
        CoreTimes { ran: self.ran + other.ran, ready: self.ready + other.ready }
    }
}

impl Sub for CoreTimes {
    type Output = CoreTimes;
    fn sub(self, other: CoreTimes) -> CoreTimes {
        CoreTimes { ran: self.ran.saturating_sub(other.ran), ready: self.ready - other.ready }
    }
}

/// The counters of a job's threads. Their files stay open; counts of ended threads are kept.
#[derive(Debug, Default)]
pub struct Counters {
    threads: BTreeMap<Number, (File, CoreTimes)>,
    ended: CoreTimes,
    /// The counts before the job was taken.
    before: CoreTimes,
}

impl Counters {
    /// Starts counting; what these threads have done so far does not count.
    pub fn new(threads: &[Number]) -> Self {
        let mut counters = Counters::default();
        counters.before = counters.read(threads);
        counters
    }

    /// What all threads have done since the start. `threads` are the job's current threads.
    pub fn read(&mut self, threads: &[Number]) -> CoreTimes {
        for &thread in threads {
            if let Vacant(place) = self.threads.entry(thread)
                && let Ok(file) = File::open(format!("/proc/{thread}/schedstat"))
            {
                place.insert((file, CoreTimes::default()));
            }
        }
        let mut sum = CoreTimes::default();
        let ended = &mut self.ended;
        self.threads.retain(|_, (file, last)| {
            let now = counts(file);
            match now {
                Some(now) => {
                    *last = now;
                    sum = sum + now;
                }
                None => *ended = *ended + *last,
            }
            now.is_some()
        });
        sum + self.ended - self.before
    }
}

/// Parses "ran ready slices", see Documentation/scheduler/sched-stats.rst.
fn counts(file: &File) -> Option<CoreTimes> {
    let mut text = [0; 64];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let mut fields = text.split_ascii_whitespace();
    Some(CoreTimes { ran: fields.next()?.parse().ok()?, ready: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{TryRecvError, channel};

    use super::*;
    use crate::linux::clock::now;

    /// The time of a spinning thread is counted, never exceeds the elapsed time, and remains counted after the thread
    /// ends.
    #[test]
    fn what_a_thread_did_is_counted_also_when_it_ended() {
        let (sender, receiver) = channel();
        let (stop, stopped) = channel::<()>();
        let spinner = std::thread::spawn(move || {
            sender.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            while stopped.try_recv() == Err(TryRecvError::Empty) {}
        });
        let itself = receiver.recv().unwrap();
        let thread = itself.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let began = now();
        let mut counters = Counters::new(&[thread]);
        let mut seen = CoreTimes::default();
        while seen.ran < 20_000_000 {
            assert!(now() < began + 30_000_000_000, "{seen:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
            seen = counters.read(&[thread]);
            // Waiting time from before the first reading arrives in one piece, so only the running time is checked.
            assert!(seen.ran <= now() - began, "{seen:?}");
        }
        drop(stop);
        spinner.join().unwrap();
        let after = counters.read(&[]);
        assert!(after.ran >= seen.ran && after.ready >= seen.ready, "{after:?} {seen:?}");
    }
}
