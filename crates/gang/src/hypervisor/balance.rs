//! The run queues of the cores, and the balancing between them.

use super::machine::{FILLER, FIRST, SimulatedMachine};
use super::thread::{ThreadPriority, ThreadState};
use super::time::NEVER;

impl SimulatedMachine {
    /// Puts a thread into a core's queue, behind threads of equal rank.
    pub fn insert(&mut self, core: usize, thread: usize) {
        let rank = self.rank(thread);
        let queue = &self.cores[core].queue;
        let place = queue.iter().position(|&other| self.rank(other) < rank);
        let place = place.unwrap_or(queue.len());
        self.cores[core].queue.insert(place, thread);
        self.threads[thread].core = core;
        self.queued += 1;
        if self.cores[core].queue.len() == 1 {
            // With a queue, ticks matter from now on.
            self.set_alarm(core);
        }
    }

    /// Sorts a queue again.
    pub fn sort(&mut self, core: usize) {
        let mut queue = std::mem::take(&mut self.cores[core].queue);
        queue.sort_by_key(|&thread| std::cmp::Reverse(self.rank(thread)));
        self.cores[core].queue = queue;
    }

    /// Takes the next thread for a core from its own queue or from another's.
    pub fn pick(&mut self, core: usize) -> Option<usize> {
        let best = self.cores[core].queue.first().map_or(0, |&thread| self.rank(thread));
        // A first thread in any queue goes before fillers.
        let mut stolen = if best <= FIRST { self.steal(core, best.max(FIRST - 1)) } else { None };
        if stolen.is_none() && best < FIRST && self.fillers {
            stolen = self.steal(core, best);
        }
        if stolen.is_some() {
            return stolen;
        }
        if self.cores[core].queue.is_empty() {
            self.cores[core].turn = NEVER;
            return None;
        }
        self.queued -= 1;
        Some(self.cores[core].queue.remove(0))
    }

    /// Takes a thread of higher rank than `above` from another core's queue; nearby core numbers are tried first.
    fn steal(&mut self, core: usize, above: u8) -> Option<usize> {
        if self.queued == self.cores[core].queue.len() {
            return None;
        }
        let count = self.cores.len();
        for peer in (1..count).map(|after| (core + after) % count) {
            let it = &self.cores[peer];
            // An idle core is about to take its only waiting thread itself.
            if it.queue.len() < 2 && it.current.is_none() {
                continue;
            }
            let fits = |&thread: &usize| {
                let it = &self.threads[thread];
                self.rank(thread) > above && self.runs[it.job].allows(it.index, core)
            };
            if let Some(place) = it.queue.iter().position(fits) {
                self.queued -= 1;
                return Some(self.cores[peer].queue.remove(place));
            }
        }
        None
    }

    /// Wakes a blocked thread.
    pub fn wake(&mut self, thread: usize) {
        let job = self.threads[thread].job;
        if self.runs[job].class.is_none() {
            self.enter(thread, ThreadState::Stopped);
            return;
        }
        self.enter(thread, ThreadState::Ready);
        if self.threads[thread].priority == ThreadPriority::Under {
            self.threads[thread].priority = ThreadPriority::Boost;
        }
        let core = self.home(thread);
        self.insert(core, thread);
        self.tickle(core, thread);
    }

    /// Finds a core for a thread that entered a queue: its own core if that is idle, otherwise an idle one. Otherwise
    /// its own core if the thread has a higher rank than the running one, which may then continue elsewhere.
    pub fn tickle(&mut self, core: usize, thread: usize) {
        if self.cores[core].current.is_none() {
            self.schedule(core);
            return;
        }
        if let Some(idler) = self.idler(thread) {
            self.schedule(idler);
            return;
        }
        if self.rank(thread) > self.current_rank(core) {
            let displaced = self.cores[core].current;
            self.schedule(core);
            let idler = displaced.and_then(|displaced| self.idler(displaced));
            if let Some(idler) = idler {
                self.schedule(idler);
            }
        }
    }

    /// A core that could run a ready thread at once: an idle one or, for a first thread, one that runs only a filler.
    fn idler(&self, thread: usize) -> Option<usize> {
        let it = &self.threads[thread];
        let run = &self.runs[it.job];
        let gives_way = |core: usize| {
            let first = self.rank(thread) >= FIRST;
            self.current_rank(core) < if first { FIRST } else { FILLER }
        };
        if run.pinned {
            return Some(run.cores[it.index]).filter(|&core| gives_way(core));
        }
        self.idle.first_of_both(&run.allowed).or_else(|| {
            let mut cores = run.cores.iter().copied().filter(|_| self.fillers);
            cores.find(|&core| gives_way(core))
        })
    }

    /// The core whose queue a thread enters: where it was before, or the one with the fewest threads.
    pub fn home(&self, thread: usize) -> usize {
        let it = &self.threads[thread];
        let run = &self.runs[it.job];
        if run.pinned {
            return run.cores[it.index];
        }
        if run.allows(it.index, it.core) {
            return it.core;
        }
        let load = |core: usize| {
            self.cores[core].queue.len() + usize::from(self.cores[core].current.is_some())
        };
        run.cores.iter().copied().min_by_key(|&core| load(core)).unwrap_or(0)
    }
}
