use std::collections::BTreeSet;
use std::sync::Arc;

use topolane_placement::{Occupancy, Placement, Policy, Refusal, Request};

use crate::queue::{Pass, Queue, Reservation};
use crate::running::Running;
use crate::view::View;

/// EASY backfilling (Lifka 1995; Mu'alem and Feitelson 2001) over any policy.
///
/// Jobs start in order until one, the head, is refused. The head gets the one reservation: the
/// earliest expected completion at which the policy can place it. A job behind it may start if
/// the policy can place it now and it ends by then, or if the head can still be placed then with
/// it running. With a count-only policy that is textbook EASY.
#[derive(Debug, Default)]
pub struct Easy {
    kept: Option<Kept>,
    refused: RefusedSizes,
}

/// The head and its reservation, good until something other than an arrival happens.
#[derive(Debug)]
struct Kept {
    head: u64,
    request: Request,
    refusal: Refusal,
    shadow: Shadow,
    /// Whether the last pass backfilled a job by where it lies and not by numbers alone: with it
    /// there the policy may choose otherwise for one refused before, so all are tried again.
    again: bool,
}

impl Queue for Easy {
    fn name(&self) -> &'static str {
        "easy"
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let first_untried = match &self.kept {
            Some(kept) if !view.changed => kept.first_untried(view),
            _ => match self.start_in_order(view) {
                Some(head) => head + 1,
                None => return Pass::default(),
            },
        };
        let Some(kept) = &mut self.kept else { return Pass::default() };
        backfill(kept, &mut self.refused, view, first_untried);
        Pass {
            reservation: Some(Reservation { id: kept.head, at: kept.shadow.at }),
            refusal: Some((kept.head, kept.refusal.clone())),
        }
    }
}

impl Easy {
    /// Starts jobs in order; returns the index of the first that is refused, now the head.
    fn start_in_order(&mut self, view: &mut View<'_>) -> Option<usize> {
        self.kept = None;
        self.refused.forget();
        for index in 0..view.waiting.len() {
            if !view.is_visible(index) {
                continue;
            }
            if let Err(refusal) = view.start_widest(index) {
                if matches!(refusal, Refusal::WouldShareLinks { .. })
                    && view.start_moving(index, |_, _| true)
                {
                    continue;
                }
                let request = (*view.waiting[index].request).clone();
                let shadow =
                    Shadow::of(&request, view.now, view.running, view.occupancy, view.policy);
                self.kept = Some(Kept { head: request.id, request, refusal, shadow, again: false });
                return Some(index);
            }
        }
        None
    }
}

impl Kept {
    fn first_untried(&self, view: &View<'_>) -> usize {
        if !self.again {
            return view.fresh;
        }
        let head = view.waiting.iter().position(|waiting| waiting.request.id == self.head);
        head.map_or(0, |head| head + 1)
    }
}

/// Jobs behind the head for which others are moved, in one pass at most.
const ATTEMPTS: u32 = 2;

/// Jobs of the queue, from the first one on, among which the one is sought that wastes least.
const COMPARED: usize = 256;

impl Kept {
    /// Backfills a job that is refused for links by moving others, if the head keeps its promise.
    fn make_room(
        &mut self,
        view: &mut View<'_>,
        index: usize,
        in_time: bool,
        attempts: &mut u32,
    ) -> bool {
        if *attempts == 0 {
            return false;
        }
        *attempts -= 1;
        let (head, at) = (&self.request, self.shadow.at);
        let keeps = |view: &View<'_>, placement: &Placement| {
            let mut then = view.occupancy.clone();
            for job in view.running.jobs().iter().take_while(|job| job.expected_end <= at) {
                then.release(&job.placement);
            }
            (in_time || then.claim(placement).is_ok()) && view.policy.can_place(head, &then).is_ok()
        };
        let started = view.start_moving(index, keeps);
        if started {
            self.shadow.at_that_time = AtThatTime::Occupied(None);
        }
        started
    }
}

/// A job that may start, though what it takes others could use.
struct Wasteful {
    index: usize,
    key: Option<Key>,
    in_time: bool,
    waste: f64,
    placement: Arc<Placement>,
}

/// Starts jobs behind the head that do not delay it: in order of the queue those that waste nothing, then of the others
/// the one that wastes least, as long as there are any.
fn backfill(kept: &mut Kept, refused: &mut RefusedSizes, view: &mut View<'_>, first: usize) {
    let running = view.running.jobs().len();
    let mut attempts = ATTEMPTS;
    while let Some(found) = start_those_that_fit(kept, refused, view, first, &mut attempts) {
        let Wasteful { index, key, in_time, placement, .. } = found;
        if !in_time && !kept.shadow.spare(&kept.request, &placement, view) {
            refused.insert(key, false);
            continue;
        }
        if !view.start(index, placement) {
            break;
        }
        refused.forget();
    }
    let by_place = matches!(kept.shadow.at_that_time, AtThatTime::Occupied(_));
    kept.again = by_place && view.running.jobs().len() > running;
}

/// Starts jobs from `first` on that waste nothing, and answers with the one, if any, that wastes least of the others. Once there
/// is one, no further than the first [`COMPARED`] of the queue.
fn start_those_that_fit(
    kept: &mut Kept,
    refused: &mut RefusedSizes,
    view: &mut View<'_>,
    first: usize,
    attempts: &mut u32,
) -> Option<Wasteful> {
    let by_size = view.policy.traits().depends_only_on_size;
    // Then whether the head can be placed beside a job depends on its size alone, also where the policy looks at more to
    // choose its nodes, and where some nodes are out of service.
    let head_counts = view.policy.counts_only(&kept.request)
        && kept.request.is_plain()
        && !view.running.any_sharing()
        && view.occupancy.is_joined();
    let mut idle = view.occupancy.idle_nodes();
    let mut least: Option<Wasteful> = None;
    // Sizes of which one job was compared already: others of that size would waste as much.
    let mut compared: BTreeSet<u32> = BTreeSet::new();
    let mut next = first;
    while next < view.waiting.len() {
        let index = next;
        if index >= COMPARED && least.is_some() {
            break;
        }
        let job = &view.waiting[index];
        next += 1;
        if job.whole && (job.nodes > idle || idle == 0) || job.begin > view.now {
            continue;
        }
        let in_time = view.now + job.walltime <= kept.shadow.at;
        // What is known to be refused is passed over without a look at the request: most of a long queue is.
        let kind_key = job.kind.map(|kind| Key { kind, nodes: job.nodes });
        let key = kind_key.filter(|_| by_size);
        if refused.contains(key, in_time) {
            continue;
        }
        if !in_time && job.whole {
            let spare = if head_counts {
                Some(kept.shadow.spare_by_count(&kept.request, view))
            } else {
                kept.shadow.spare_if_counted()
            };
            if spare.is_some_and(|spare| job.nodes > spare) {
                continue;
            }
        }
        let alike = job.request.is_plain() && job.request.is_like(&kept.request);
        let size = (by_size && alike).then_some(job.nodes);
        let late_size =
            size.or((head_counts && job.whole && job.request.is_plain()).then_some(job.nodes));
        let same_nodes = by_size && !view.policy.draws_by_identity();
        let late_key = kind_key.filter(|_| same_nodes || late_size.is_some());
        let is_refused = !in_time && refused.contains(late_key, false);
        if is_refused || size.is_some_and(|size| compared.contains(&size)) {
            continue;
        }
        if view.has_started(index) {
            continue;
        }
        let started = match view.policy.place(&job.request, view.occupancy) {
            Err(refusal) => {
                refused.insert(key, true);
                let blocked = matches!(refusal, Refusal::WouldShareLinks { .. });
                blocked && kept.make_room(view, index, in_time, attempts)
            }
            Ok(placement) => {
                let waste = view.policy.waste(&job.request, &placement, view.occupancy);
                let placement = Arc::new(placement);
                // One whose refusal is remembered by nothing would be found again and again.
                if waste > 0.0 && late_size.is_some() {
                    compared.extend(size);
                    if least.as_ref().is_none_or(|least| waste < least.waste) {
                        least = Some(Wasteful { index, key: late_key, in_time, waste, placement });
                    }
                    continue;
                }
                let harmless = in_time || kept.shadow.spare(&kept.request, &placement, view);
                if !harmless {
                    refused.insert(late_key, false);
                }
                harmless && view.start(index, placement)
            }
        };
        if started {
            idle = view.occupancy.idle_nodes();
            refused.forget();
            if least.take().is_some() {
                // What was found before is as it was no longer.
                compared.clear();
                next = first;
            }
        }
    }
    least
}

/// What decides about a request under a policy that depends only on sizes.
#[derive(Debug, Clone, Copy)]
struct Key {
    kind: u32,
    nodes: u32,
}

/// Jobs refused since the last start: all of the same kind and size are refused again, since a policy that goes by shape sees
/// the same state.
#[derive(Debug, Default)]
struct RefusedSizes {
    /// The generation in which the size was refused whatever its end, by kind and size.
    any_end: Vec<Vec<u64>>,
    /// The generation in which the size was refused for jobs that outlast the reservation.
    late_end: Vec<Vec<u64>>,
    generation: u64,
}

impl RefusedSizes {
    fn forget(&mut self) {
        self.generation += 1;
    }

    fn contains(&self, key: Option<Key>, in_time: bool) -> bool {
        let is_in = |kinds: &[Vec<u64>], Key { kind, nodes }| {
            let sizes = kinds.get(kind as usize);
            sizes.and_then(|sizes| sizes.get(nodes as usize)) == Some(&self.generation)
        };
        key.is_some_and(|key| is_in(&self.any_end, key) || !in_time && is_in(&self.late_end, key))
    }

    fn insert(&mut self, key: Option<Key>, whatever_its_end: bool) {
        let Some(Key { kind, nodes }) = key else { return };
        let (kind, nodes) = (kind as usize, nodes as usize);
        let kinds = if whatever_its_end { &mut self.any_end } else { &mut self.late_end };
        if kinds.len() <= kind {
            kinds.resize(kind + 1, Vec::new());
        }
        let sizes = &mut kinds[kind];
        if sizes.len() <= nodes {
            sizes.resize(nodes + 1, 0);
        }
        sizes[nodes] = self.generation;
    }
}

/// The machine at the head's reservation.
#[derive(Debug)]
struct Shadow {
    /// When the head starts at the latest, seconds.
    at: f64,
    at_that_time: AtThatTime,
}

#[derive(Debug)]
enum AtThatTime {
    /// Only counts matter: nodes beyond what the head needs.
    Spare(u32),
    /// The occupancy, built when it is first needed.
    Occupied(Option<Box<Occupancy>>),
}

impl Shadow {
    fn of(
        head: &Request,
        now: f64,
        running: &Running,
        occupancy: &mut Occupancy,
        policy: &dyn Policy,
    ) -> Shadow {
        let counting = policy.counts_only(head)
            && head.is_plain()
            && !running.any_sharing()
            && occupancy.is_joined()
            && occupancy.in_service().count() == occupancy.fabric().nodes();
        if counting {
            return Shadow::by_count(head, now, running, occupancy);
        }
        // The answer of a policy that only counts does not depend on traffic.
        let mut then = if policy.counts_only(head) {
            occupancy.what_if_without_network()
        } else {
            occupancy.what_if()
        };
        let mut at = f64::INFINITY;
        for ending in running.ending_together() {
            if ending[0].expected_end == f64::INFINITY {
                break;
            }
            for job in ending {
                then.release(Arc::clone(&job.placement));
            }
            if policy.can_place(head, &then).is_ok() {
                at = ending[0].expected_end.max(now);
                break;
            }
        }
        Shadow { at, at_that_time: AtThatTime::Occupied(None) }
    }

    /// Nodes that end together count together, as in the textbook.
    fn by_count(head: &Request, now: f64, running: &Running, occupancy: &Occupancy) -> Shadow {
        let mut free = occupancy.idle_nodes();
        for ending in running.ending_together() {
            free += ending.iter().map(|job| job.placement.nodes().len() as u32).sum::<u32>();
            if free >= head.nodes {
                let at_that_time = AtThatTime::Spare(free - head.nodes);
                return Shadow { at: ending[0].expected_end.max(now), at_that_time };
            }
        }
        Shadow { at: f64::INFINITY, at_that_time: AtThatTime::Spare(0) }
    }

    /// Nodes beyond what the head needs, where only counts matter.
    fn spare_if_counted(&self) -> Option<u32> {
        match self.at_that_time {
            AtThatTime::Spare(spare) => Some(spare),
            AtThatTime::Occupied(_) => None,
        }
    }

    /// The same under a policy that only counts, also where nodes are out of service.
    fn spare_by_count(&mut self, head: &Request, view: &View<'_>) -> u32 {
        match &mut self.at_that_time {
            AtThatTime::Spare(spare) => *spare,
            AtThatTime::Occupied(state) => {
                occupied(state, self.at, view).idle_nodes().saturating_sub(head.nodes)
            }
        }
    }

    /// Lets a job run past the reservation if the head can still be placed then beside it.
    fn spare(&mut self, head: &Request, placement: &Arc<Placement>, view: &View<'_>) -> bool {
        // Numbers do not tell which nodes a job shares with others.
        if matches!(self.at_that_time, AtThatTime::Spare(_)) && !placement.share().is_whole() {
            self.at_that_time = AtThatTime::Occupied(None);
        }
        match &mut self.at_that_time {
            AtThatTime::Spare(spare) => {
                let left = spare.checked_sub(placement.nodes().len() as u32);
                *spare = left.unwrap_or(*spare);
                left.is_some()
            }
            AtThatTime::Occupied(state) => {
                let then = occupied(state, self.at, view);
                if then.claim(placement).is_err() {
                    return false;
                }
                let harmless = view.policy.can_place(head, then).is_ok();
                if !harmless {
                    then.release(placement);
                }
                harmless
            }
        }
    }
}

/// The occupancy at a reservation, built when it is first needed.
fn occupied<'a>(
    state: &'a mut Option<Box<Occupancy>>,
    at: f64,
    view: &View<'_>,
) -> &'a mut Occupancy {
    state.get_or_insert_with(|| {
        let mut then = Box::new(if view.policy.traits().count_only {
            view.occupancy.without_network()
        } else {
            view.occupancy.clone()
        });
        for job in view.running.jobs().iter().take_while(|job| job.expected_end <= at) {
            then.release(&job.placement);
        }
        then
    })
}
