use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use topolane_placement::{
    HeadRule, Occupancy, Placement, Planned, Policy, Refusal, Request, RoomHelps,
};

use crate::future::{Future, first_where};
use crate::head_answers::HeadAnswers;
use crate::kinds::NO_CLASS;
use crate::promise::HeadPromise;
use crate::queue::{HeadWait, Pass, Queue, Reservation};
use crate::view::{View, Waiting};

/// Which jobs may overtake the head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Overtaking {
    /// Jobs that end before the head's reservation, and jobs next to which the head can still be placed then.
    #[default]
    Harmless,
    /// Jobs that end before the head's reservation.
    EndsBefore,
    /// Jobs that end before the head's reservation, and jobs placed as if the head were already on its reserved nodes.
    AroundReserved,
}

/// EASY backfilling (Lifka 1995; Mu'alem and Feitelson 2001) over any policy.
///
/// Jobs start in order until one, the head, is refused. The head gets the only reservation: the earliest expected
/// completion at which the policy can place it. A job behind it may start if the policy can place it now and it ends by
/// then, or if the head can still be placed then with it running. With a count-only policy that is textbook EASY.
///
/// Where a policy has a [`HeadRule`], the head is placed by that rule, and its reservation is the earliest end at which
/// that rule can place it. If that takes longer than the patience of the rule, the policy itself places the head. The
/// choice is made when a job becomes the head.
///
/// [`Easy::strict`] and [`Easy::pinned`] let fewer jobs overtake the head.
#[derive(Debug, Default)]
pub struct Easy {
    overtaking: Overtaking,
    kept: Option<KeptReservation>,
    refused: RefusedSizes,
    future: Option<Future>,
    promise: Option<HeadPromise>,
    answers: Option<HeadAnswers>,
    head_wait: Option<HeadWait>,
}

/// The head and its reservation, valid until something other than an arrival happens.
#[derive(Debug)]
struct KeptReservation {
    head: u64,
    request: Request,
    refusal: Refusal,
    shadow: Shadow,
    /// Whether the last pass backfilled a job because of its location and not by numbers alone. Then the policy may now
    /// place a job that it refused before, so all are tried again.
    again: bool,
    /// Whether the head waits for a placement by the policy's [`HeadRule`].
    by_head_rule: bool,
}

impl Queue for Easy {
    fn name(&self) -> &'static str {
        match self.overtaking {
            Overtaking::Harmless => "easy",
            Overtaking::EndsBefore => "easy-strict",
            Overtaking::AroundReserved => "easy-pinned",
        }
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let first_untried = match &self.kept {
            Some(kept) if !view.changed => kept.first_untried(view),
            _ => match self.start_in_order(view) {
                Some(head) => head + 1,
                None => return Pass::default(),
            },
        };
        let Easy { kept: Some(kept), refused, future, answers, overtaking, .. } = self else {
            return Pass::default();
        };
        let mut backfill = Backfill {
            overtaking: *overtaking,
            kept,
            refused,
            future,
            answers,
            with_head: None,
            places: BTreeMap::new(),
            left_then: None,
        };
        backfill.run(view, first_untried);
        let reservation = Some(Reservation { id: kept.head, at: kept.shadow.at });
        let refusal = Some((kept.head, kept.refusal.clone()));
        if let Some(promise) = &mut self.promise {
            promise.count_own_starts(view);
        }
        let head_wait = self.head_wait.filter(|wait| wait.id == kept.head);
        Pass { reservation, refusal, head_wait }
    }

    fn set_head_wait(&mut self, wait: HeadWait) {
        self.head_wait = Some(wait);
    }
}

impl Easy {
    /// EASY in which a job overtakes the head only if it ends before the head's reservation.
    pub fn strict() -> Self {
        Easy { overtaking: Overtaking::EndsBefore, ..Easy::default() }
    }

    /// EASY in which the head's reservation names nodes, as flux-sched does in the study of Pollard and others (SC'18).
    /// A job that runs past the reservation is placed as if the head were on these nodes already, next to all running
    /// jobs.
    pub fn pinned() -> Self {
        Easy { overtaking: Overtaking::AroundReserved, ..Easy::default() }
    }

    /// Starts jobs in order. Returns the index of the first that is refused: the new head.
    fn start_in_order(&mut self, view: &mut View<'_>) -> Option<usize> {
        self.kept = None;
        self.refused.forget_all();
        for index in 0..view.waiting.len() {
            if !view.is_visible(index) {
                continue;
            }
            if let Some(rule) = self.head_rule(index, view) {
                let waits = view.under(rule.policy, |view| self.start_or_promise(index, view));
                let Some((refusal, shadow)) = waits else { continue };
                if self.may_wait(index, &shadow, rule, view) {
                    self.kept = Some(KeptReservation::new(index, refusal, shadow, true, view));
                    return Some(index);
                }
            }
            if let Some((refusal, shadow)) = self.start_or_promise(index, view) {
                self.kept = Some(KeptReservation::new(index, refusal, shadow, false, view));
                return Some(index);
            }
        }
        self.promise = None;
        None
    }

    /// Starts a job, or returns why it is refused and when it will start.
    fn start_or_promise(&mut self, index: usize, view: &mut View<'_>) -> Option<(Refusal, Shadow)> {
        let known = self.known_refusal(index, view);
        let refusal = known.map_or_else(|| view.start_widest(index), Err).err()?;
        let by_links = matches!(refusal, Refusal::WouldShareLinks { .. });
        if by_links && view.start_moving(index, |_, _| true) {
            return None;
        }
        let request = &view.waiting[index].request;
        Some((refusal, Shadow::of(request, view, &mut self.future, &mut self.promise)))
    }

    /// The rule for heads, unless it is decided that the policy itself places this job.
    fn head_rule<'a>(&self, index: usize, view: &View<'a>) -> Option<HeadRule<'a>> {
        let id = view.waiting[index].request.id;
        let decided = self.head_wait.filter(|wait| wait.id == id);
        let is_out = decided.is_some_and(|decided| decided.until.is_none());
        view.policy.for_head().filter(|_| !is_out)
    }

    /// Whether a head that is refused now may wait for a placement by this rule. Remembers the decision.
    fn may_wait(
        &mut self,
        index: usize,
        shadow: &Shadow,
        rule: HeadRule<'_>,
        view: &mut View<'_>,
    ) -> bool {
        let request = &view.waiting[index].request;
        let decided = self.head_wait.filter(|wait| wait.id == request.id);
        let until = decided.and_then(|decided| decided.until).unwrap_or_else(|| {
            // Without a walltime, no wait counts as long.
            let patience = rule.patience * request.walltime;
            let patience = if patience.is_finite() { patience } else { 0.0 };
            let mut until = view.now + patience;
            if shadow.at > until && view.policy.can_place(request, view.occupancy).is_err() {
                until = Shadow::of(request, view, &mut self.future, &mut None).at + patience;
            }
            until
        });
        let waits = shadow.at <= until && shadow.at < f64::INFINITY;
        self.head_wait = Some(HeadWait { id: request.id, until: waits.then_some(shadow.at) });
        if !waits {
            self.promise = None;
        }
        waits
    }

    /// The refusal of a job, if it was the head of the last pass and nothing has changed for it since.
    fn known_refusal(&mut self, index: usize, view: &View<'_>) -> Option<Refusal> {
        let request = &view.waiting[index].request;
        let promise = self.promise.as_mut()?;
        if !promise.follow(request, view, &mut self.future) {
            self.promise = None;
        }
        self.promise.as_ref()?.refusal(request, view)
    }
}

impl KeptReservation {
    fn new(
        index: usize,
        refusal: Refusal,
        shadow: Shadow,
        by_head_rule: bool,
        view: &View<'_>,
    ) -> Self {
        let request = (*view.waiting[index].request).clone();
        KeptReservation { head: request.id, request, refusal, shadow, again: false, by_head_rule }
    }

    /// The policy that places the head.
    fn rule<'a>(&self, view: &View<'a>) -> &'a dyn Policy {
        let rule = view.policy.for_head().filter(|_| self.by_head_rule);
        rule.map_or(view.policy, |rule| rule.policy)
    }

    fn first_untried(&self, view: &View<'_>) -> usize {
        if !self.again {
            return view.fresh;
        }
        let head = view.waiting.iter().position(|waiting| waiting.request.id == self.head);
        head.map_or(0, |head| head + 1)
    }

    /// Whether only the number of nodes of a whole-node job decides if the head still fits while that job runs.
    fn counts_whole(&self, view: &View<'_>) -> bool {
        view.policy.counts_only(&self.request)
            && self.request.is_plain()
            && view.occupancy.is_joined()
    }
}

/// The most jobs behind the head for which a pass moves other jobs.
const ATTEMPTS: u32 = 2;

/// The number of jobs at the front of the queue that are compared for the least waste.
const COMPARED: usize = 256;

/// A job that may start, but wastes capacity that others could use.
struct Wasteful {
    index: usize,
    class: u32,
    in_time: bool,
    planned: Rc<Planned>,
}

/// The jobs behind the head, during one pass.
struct Backfill<'a> {
    overtaking: Overtaking,
    kept: &'a mut KeptReservation,
    refused: &'a mut RefusedSizes,
    future: &'a mut Option<Future>,
    answers: &'a mut Option<HeadAnswers>,
    /// The head on the nodes that are reserved for it and all running jobs, at the same time; `None` until needed.
    with_head: Option<Occupancy>,
    /// By size, where the policy would now place jobs that are like the head; and whether the head counts as placed.
    places: BTreeMap<(u32, bool), Rc<Planned>>,
    /// Nodes that stay idle when the head starts at its reservation; `None` until needed.
    left_then: Option<u32>,
}

impl Backfill<'_> {
    /// Starts jobs behind the head that do not delay it. Jobs that waste nothing start in queue order; then the job
    /// that wastes least starts, and so on until none is left.
    fn run(&mut self, view: &mut View<'_>, first: usize) {
        let running = view.running.jobs().len();
        let mut attempts = ATTEMPTS;
        while let Some(found) = self.start_those_that_fit(view, first, &mut attempts) {
            let Wasteful { index, class, in_time, planned } = found;
            let Some(placement) = self.harmless(index, &planned, in_time, view) else {
                self.refused.insert(class, false);
                continue;
            };
            if !self.start(index, placement, view) {
                break;
            }
        }
        let by_place = self.kept.shadow.spare.is_none() || self.counts_head(false);
        self.kept.again = by_place && view.running.jobs().len() > running;
        if self.kept.again && self.counts_head(false) {
            // The next pass names the head's nodes again, next to the jobs that have started.
            self.refused.forget();
        }
    }

    /// Starts a job behind the head.
    fn start(&mut self, index: usize, placement: Arc<Placement>, view: &mut View<'_>) -> bool {
        let started = view.start(index, Arc::clone(&placement));
        if started {
            if let Some(with_head) = &mut self.with_head {
                with_head.overlay(&placement);
            }
            self.state_changed();
        }
        started
    }

    /// Clears what is remembered, after a job has started.
    fn state_changed(&mut self) {
        self.refused.forget();
        self.places.clear();
        self.left_then = None;
    }

    /// Whether a job is placed as if the head were on its nodes already.
    fn counts_head(&self, in_time: bool) -> bool {
        !in_time && self.overtaking == Overtaking::AroundReserved
    }

    /// The state in which a job is placed. `None` if the head has no reservation that names nodes, and the job would
    /// run past it.
    fn state<'s>(&'s mut self, in_time: bool, view: &'s View<'_>) -> Option<&'s Occupancy> {
        if !self.counts_head(in_time) {
            return Some(view.occupancy);
        }
        if self.with_head.is_none() {
            let then = self.kept.shadow.then(view, self.future);
            let reserved = self.kept.rule(view).place(&self.kept.request, then.occupancy()).ok()?;
            let mut with_head = view.occupancy.clone();
            with_head.overlay(&reserved);
            self.with_head = Some(with_head);
        }
        self.with_head.as_ref()
    }

    /// Where the policy would place a job now, and the waste. `size` is set if nothing but the job's size matters.
    fn plan(
        &mut self,
        index: usize,
        size: Option<u32>,
        in_time: bool,
        view: &View<'_>,
    ) -> Result<Rc<Planned>, Refusal> {
        let size = size.map(|size| (size, self.counts_head(in_time)));
        if let Some(known) = size.and_then(|size| self.places.get(&size)) {
            return Ok(Rc::clone(known));
        }
        let request = &view.waiting[index].request;
        let none = Refusal::NotNow { wanted: request.nodes, free: 0 };
        let state = self.state(in_time, view).ok_or(none)?;
        let planned = Rc::new(view.policy.plan(request, state)?);
        if let Some(size) = size {
            self.places.insert(size, Rc::clone(&planned));
        }
        Ok(planned)
    }

    /// The placement of a job, unless it delays the head.
    fn harmless(
        &mut self,
        index: usize,
        planned: &Planned,
        in_time: bool,
        view: &View<'_>,
    ) -> Option<Arc<Placement>> {
        if !in_time && self.leaves_too_few(&view.waiting[index], view) {
            return None;
        }
        let request = &view.waiting[index].request;
        let placement = view.policy.carry_out(planned, request, self.state(in_time, view)?);
        (in_time || self.spares(&placement, view)).then_some(placement)
    }

    /// Whether a job that runs past the reservation would leave too few nodes for the head, wherever the job is placed.
    fn leaves_too_few(&mut self, job: &Waiting, view: &View<'_>) -> bool {
        let KeptReservation { request: head, shadow, .. } = &*self.kept;
        if shadow.spare.is_some() || !job.whole || !head.is_plain() {
            return false;
        }
        let left = *self.left_then.get_or_insert_with(|| {
            let then = shadow.then(view, self.future);
            then.occupancy().idle_nodes().saturating_sub(head.nodes)
        });
        left < job.nodes
    }

    /// Whether a job takes more nodes than are left over at the reservation, if counting decides.
    fn exceeds_spare(&mut self, job: &Waiting, counts_whole: bool, view: &View<'_>) -> bool {
        let shadow = &self.kept.shadow;
        let spare = if counts_whole {
            Some(shadow.spare_by_count(&self.kept.request, view, self.future))
        } else {
            shadow.spare
        };
        spare.is_some_and(|spare| job.nodes > spare)
    }

    /// Whether one of these jobs, which run past the reservation, can be placed and wastes something. They are given as
    /// in [`Backfill::plan`].
    fn any_wastes(&mut self, jobs: &[(usize, Option<u32>)], view: &View<'_>) -> bool {
        let mut wastes = |&(index, size)| {
            self.plan(index, size, false, view).is_ok_and(|planned| planned.waste() > 0.0)
        };
        jobs.iter().any(&mut wastes)
    }

    fn remember_refusal(&mut self, request: &Request, class: u32, view: &View<'_>) {
        self.refused.insert(class, true);
        if view.defrag.is_none() && view.policy.room_helps(request) == RoomHelps::Always {
            self.refused.insert_until_room(class);
        }
    }

    /// Whether a job may run past the reservation because the head can still be placed then.
    fn spares(&mut self, placement: &Arc<Placement>, view: &View<'_>) -> bool {
        let counts = placement.share().is_whole() && self.kept.counts_whole(view);
        let rule = self.kept.rule(view);
        let KeptReservation { request: head, shadow, .. } = &mut *self.kept;
        if counts && shadow.spare.is_none() {
            let spare = shadow.spare_by_count(head, view, self.future);
            return placement.nodes().len() as u32 <= spare;
        }
        if let Some(is_spared) = shadow.spares_by_count(placement) {
            return is_spared;
        }
        let mut answers = HeadAnswers::of(self.answers, head, shadow.at, rule, view);
        if let Some(known) = answers.as_ref().and_then(|answers| answers.knows(placement)) {
            return known;
        }
        let mut then = shadow.then(view, self.future).what_if();
        if then.claim(Arc::clone(placement)).is_err() {
            return false;
        }
        match &mut answers {
            Some(answers) => answers.learn(head, placement, rule, &then),
            None => rule.can_place(head, &then).is_ok(),
        }
    }

    /// Backfills a job that is refused for links by moving other jobs, if the head keeps its promise.
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
        let rule = self.kept.rule(view);
        let (head, at) = (&self.kept.request, self.kept.shadow.at);
        let keeps = |view: &View<'_>, placement: &Placement| {
            let mut then = view.occupancy.clone();
            for job in view.running.jobs().iter().take_while(|job| job.expected_end <= at) {
                then.release(&job.placement);
            }
            (in_time || then.claim(placement).is_ok()) && rule.can_place(head, &then).is_ok()
        };
        let started = view.start_moving(index, keeps);
        if started {
            self.kept.shadow.spare = None;
            self.with_head = None;
            self.state_changed();
        }
        started
    }

    /// Starts jobs from index `first` on that waste nothing. Returns the job with the least waste among the others.
    /// Once there is one, it only searches the first [`COMPARED`] jobs of the queue.
    fn start_those_that_fit(
        &mut self,
        view: &mut View<'_>,
        first: usize,
        attempts: &mut u32,
    ) -> Option<Wasteful> {
        let by_size = view.policy.traits().depends_only_on_size;
        let counts_whole = self.kept.counts_whole(view);
        let head_counts = counts_whole && !view.running.any_sharing();
        let mut idle = view.occupancy.idle_nodes();
        let mut least: Option<Wasteful> = None;
        // Sizes already compared: other jobs of the same size would waste as much.
        let mut compared: BTreeSet<(u32, bool)> = BTreeSet::new();
        // Jobs skipped because they would leave too few nodes for the head; their waste is computed only if needed.
        let mut too_large: Vec<(usize, Option<u32>)> = Vec::new();
        let mut next = first;
        while next < view.waiting.len() {
            let index = next;
            if index >= COMPARED {
                if least.is_some() {
                    break;
                }
                too_large.clear();
            }
            // Skip known refusals before looking at the request: they are most of a long queue.
            let class = view.classes[index];
            next += 1;
            if self.refused.contains(class, true) {
                continue;
            }
            let job = &view.waiting[index];
            if job.whole && (job.nodes > idle || idle == 0) {
                self.refused.insert(class, true);
                continue;
            }
            if job.begin > view.now {
                continue;
            }
            let in_time = view.now + job.walltime <= self.kept.shadow.at;
            let sized = if by_size { class } else { NO_CLASS };
            let is_barred = !in_time && self.overtaking == Overtaking::EndsBefore;
            if is_barred || self.refused.contains(sized, in_time) {
                continue;
            }
            if !in_time && job.whole && self.exceeds_spare(job, counts_whole, view) {
                continue;
            }
            let alike = job.request.is_plain() && job.request.is_like(&self.kept.request);
            let size = (by_size && alike).then_some(job.nodes);
            let late_size =
                size.or((head_counts && job.whole && job.request.is_plain()).then_some(job.nodes));
            let same_nodes = by_size && !view.policy.draws_by_identity();
            let late_class = if same_nodes || late_size.is_some() { class } else { NO_CLASS };
            let is_refused = !in_time && self.refused.contains(late_class, false);
            let sort = size.map(|size| (size, self.counts_head(in_time)));
            if is_refused || sort.is_some_and(|sort| compared.contains(&sort)) {
                continue;
            }
            if view.has_started(index) {
                continue;
            }
            let alone = size.filter(|_| same_nodes);
            let counts = late_size.is_some() && view.defrag.is_none();
            if !in_time && counts && self.leaves_too_few(job, view) {
                too_large.push((index, alone));
                continue;
            }
            let mut any_compared = least.is_some();
            let started = match self.plan(index, alone, in_time, view) {
                Err(refusal) => {
                    if self.counts_head(in_time) {
                        self.refused.insert(late_class, false);
                    } else {
                        self.remember_refusal(&view.waiting[index].request, sized, view);
                    }
                    let blocked = matches!(refusal, Refusal::WouldShareLinks { .. });
                    blocked && self.make_room(view, index, in_time, attempts)
                }
                // Without a size, its refusal could not be remembered and it would be found again and again.
                Ok(planned) if planned.waste() > 0.0 && late_size.is_some() => {
                    compared.extend(sort);
                    if least.as_ref().is_none_or(|least| planned.waste() < least.planned.waste()) {
                        least = Some(Wasteful { index, class: late_class, in_time, planned });
                    }
                    continue;
                }
                Ok(planned) => {
                    let placement = self.harmless(index, &planned, in_time, view);
                    if placement.is_none() {
                        self.refused.insert(late_class, false);
                    }
                    placement.is_some_and(|placement| {
                        any_compared = any_compared || self.any_wastes(&too_large, view);
                        self.start(index, placement, view)
                    })
                }
            };
            if started {
                idle = view.occupancy.idle_nodes();
                too_large.clear();
                least = None;
                if any_compared {
                    // A start changes the state, so earlier results no longer hold.
                    compared.clear();
                    next = first;
                }
            }
        }
        least
    }
}

/// Remembers which classes of jobs were refused since the last start. All jobs of a class are refused again as long as
/// the state is the same.
#[derive(Debug, Default)]
struct RefusedSizes {
    /// By class: 1 + the generation in which it was refused regardless of its end.
    any_end: Vec<u64>,
    /// By class: 1 + the generation in which it was refused because it would outlast the reservation.
    late_end: Vec<u64>,
    generation: u64,
    /// By class: 1 + the number of times capacity was freed, when it was refused under a policy that never refuses
    /// because of more free capacity. Valid regardless of its end and of jobs that start.
    until_room: Vec<u64>,
    rooms: u64,
}

impl RefusedSizes {
    /// Called after a job has started: refusals may no longer hold.
    fn forget(&mut self) {
        self.generation += 1;
    }

    /// Called when capacity may have been freed.
    fn forget_all(&mut self) {
        self.generation += 1;
        self.rooms += 1;
    }

    fn contains(&self, class: u32, in_time: bool) -> bool {
        let is_in = |refused: &[u64]| refused.get(class as usize) == Some(&(self.generation + 1));
        is_in(&self.any_end)
            || self.until_room.get(class as usize) == Some(&(self.rooms + 1))
            || !in_time && is_in(&self.late_end)
    }

    fn insert_until_room(&mut self, class: u32) {
        set(&mut self.until_room, class, self.rooms + 1);
    }

    fn insert(&mut self, class: u32, whatever_its_end: bool) {
        let refused = if whatever_its_end { &mut self.any_end } else { &mut self.late_end };
        set(refused, class, self.generation + 1);
    }
}

fn set(refused: &mut Vec<u64>, class: u32, to: u64) {
    if class == NO_CLASS {
        return;
    }
    if refused.len() <= class as usize {
        refused.resize(class as usize + 1, 0);
    }
    refused[class as usize] = to;
}

/// The head's reservation.
#[derive(Debug)]
struct Shadow {
    /// The latest start of the head, in seconds.
    at: f64,
    /// If only counts matter: nodes beyond what the head needs at that time. Otherwise `None`: the state at that time
    /// decides.
    spare: Option<u32>,
}

impl Shadow {
    fn of(
        head: &Request,
        view: &mut View<'_>,
        future: &mut Option<Future>,
        promise: &mut Option<HeadPromise>,
    ) -> Shadow {
        let counting = view.policy.counts_only(head)
            && head.is_plain()
            && !view.running.any_sharing()
            && view.occupancy.is_joined()
            && view.occupancy.in_service().count() == view.occupancy.fabric().nodes();
        if counting {
            return Shadow::by_count(head, view);
        }
        let helps = if view.policy.counts_only(head) {
            RoomHelps::Always
        } else {
            view.policy.room_helps(head)
        };
        let at = match helps {
            RoomHelps::Unknown => Shadow::one_by_one(head, view),
            RoomHelps::Always => Shadow::from_last(head, view, future, promise),
            RoomHelps::Mostly => Shadow::by_halves(head, view, future),
        };
        Shadow { at, spare: None }
    }

    /// Computes the reservation by counting. As in the textbook, nodes that become free at the same time count
    /// together.
    fn by_count(head: &Request, view: &View<'_>) -> Shadow {
        let mut free = view.occupancy.idle_nodes();
        for ending in view.running.ending_together() {
            free += ending.iter().map(|job| job.placement.nodes().len() as u32).sum::<u32>();
            if free >= head.nodes {
                let at = ending[0].expected_end.max(view.now);
                return Shadow { at, spare: Some(free - head.nodes) };
            }
        }
        Shadow { at: f64::INFINITY, spare: Some(0) }
    }

    /// The first end at which the policy can place the head, by trying one end after another.
    fn one_by_one(head: &Request, view: &mut View<'_>) -> f64 {
        let mut then = view.occupancy.what_if();
        for ending in view.running.ending_together() {
            if ending[0].expected_end == f64::INFINITY {
                break;
            }
            for job in ending {
                then.release(Arc::clone(&job.placement));
            }
            if view.policy.can_place(head, &then).is_ok() {
                return ending[0].expected_end.max(view.now);
            }
        }
        f64::INFINITY
    }

    /// The first end at which the policy can place the head, if more free capacity always helps. Then a binary search
    /// suffices, and known answers are reused. It starts at the time of the last reservation.
    fn from_last(
        head: &Request,
        view: &View<'_>,
        future: &mut Option<Future>,
        promise: &mut Option<HeadPromise>,
    ) -> f64 {
        let ends = ends(view);
        let future = Future::of(future, view);
        let last = ends.partition_point(|&end| end.max(view.now) <= future.until());
        let known = promise.as_ref().map(|promise| promise.bounds(ends, view.now));
        let bounds = known.unwrap_or((0, ends.len()));
        let first = first_where(ends.len(), bounds, last.saturating_sub(1), |index| {
            future.go_to(ends[index].max(view.now), view.running);
            view.policy.can_place(head, future.occupancy()).is_ok()
        });
        let at = first.map_or(f64::INFINITY, |first| ends[first].max(view.now));
        let refused_before = match first {
            Some(0) => f64::NEG_INFINITY,
            Some(first) => ends[first],
            None => at,
        };
        *promise = HeadPromise::new(head, at, refused_before, view);
        at
    }

    /// The first end at which the policy can place the head, if more free capacity nearly always helps. The binary
    /// search starts at the first end, because the starting point may change the answer.
    fn by_halves(head: &Request, view: &View<'_>, future: &mut Option<Future>) -> f64 {
        let ends = ends(view);
        let future = Future::of(future, view);
        let first = first_where(ends.len(), (0, ends.len()), 0, |index| {
            future.go_to(ends[index].max(view.now), view.running);
            view.policy.can_place(head, future.occupancy()).is_ok()
        });
        first.map_or(f64::INFINITY, |first| ends[first].max(view.now))
    }

    /// Nodes beyond what the head needs, under a policy that only counts. Takes nodes out of service into account.
    fn spare_by_count(&self, head: &Request, view: &View<'_>, future: &mut Option<Future>) -> u32 {
        self.spare.unwrap_or_else(|| {
            self.then(view, future).occupancy().idle_nodes().saturating_sub(head.nodes)
        })
    }

    /// Whether a job may run past the reservation by counting alone; `None` if counting does not decide. Subtracts the
    /// job's nodes if it may.
    fn spares_by_count(&mut self, placement: &Placement) -> Option<bool> {
        // Counting cannot tell which nodes a job shares with others.
        self.spare = self.spare.filter(|_| placement.share().is_whole());
        let spare = self.spare.as_mut()?;
        let left = spare.checked_sub(placement.nodes().len() as u32);
        *spare = left.unwrap_or(*spare);
        Some(left.is_some())
    }

    /// The state at the time of the reservation.
    fn then<'a>(&self, view: &View<'_>, future: &'a mut Option<Future>) -> &'a mut Future {
        let future = Future::of(future, view);
        future.go_to(self.at, view.running);
        future
    }
}

/// The times at which running jobs are expected to end, ascending. Jobs that should have ended before count as ending
/// now: of the times up to now, only the last is included.
fn ends<'a>(view: &'a View<'_>) -> &'a [f64] {
    let ends = view.running.times();
    let ends = &ends[..ends.partition_point(|&end| end < f64::INFINITY)];
    let overdue = ends.partition_point(|&end| end <= view.now);
    &ends[overdue.saturating_sub(1)..]
}
