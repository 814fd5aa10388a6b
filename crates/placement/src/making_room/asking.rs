//! Questions to the policy: would it place the request without these jobs?

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::counts::CountedAmounts;
use super::cover::Cover;
use super::jobs::Jobs;
use super::plan::{RoomPlan, Touchable};
use crate::level::Within;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::request::Request;
use crate::what_if::WhatIf;
use crate::within::place_within;

/// Where the request goes, and the jobs that move.
pub(super) struct RoomPlaces {
    request: Arc<Placement>,
    moved: Vec<(u64, Arc<Placement>)>,
}

/// The policy, and the state in which it is asked.
pub(super) struct Asking<'a> {
    policy: &'a dyn Policy,
    request: &'a Request,
    occupancy: &'a mut Occupancy,
    jobs: &'a [Touchable<'a>],
    cover: &'a Cover<'a>,
    counts: Option<&'a CountedAmounts>,
    /// Whether the request fits without some jobs.
    fits: FxHashMap<Jobs, bool>,
    /// Whether those of them that move fit afterwards.
    works: FxHashMap<Jobs, bool>,
    questions: u32,
    most: u32,
}

impl<'a> Asking<'a> {
    pub fn new(
        policy: &'a dyn Policy,
        request: &'a Request,
        occupancy: &'a mut Occupancy,
        jobs: &'a [Touchable<'a>],
        cover: &'a Cover<'a>,
        counts: Option<&'a CountedAmounts>,
        most: u32,
    ) -> Self {
        let (fits, works) = (FxHashMap::default(), FxHashMap::default());
        Asking { policy, request, occupancy, jobs, cover, counts, fits, works, questions: 0, most }
    }

    pub fn questions(&self) -> u32 {
        self.questions
    }

    /// Whether the policy would place the request without these jobs, wherever those that move then go; `None` if enough was asked.
    pub fn fits(&mut self, gone: &Jobs) -> Option<bool> {
        if !self.cover.may_hold(gone) {
            return Some(false);
        }
        if let Some(&known) = self.fits.get(gone) {
            return Some(known);
        }
        if self.questions >= self.most {
            return None;
        }
        self.questions += 1;
        let request = self.request(gone);
        let fits = if is_asked_itself(self.policy, &request) {
            self.policy.can_place(&request, &self.without(gone)).is_ok()
        } else {
            place_within(self.policy, &request, &self.without(gone)).is_ok()
        };
        self.fits.insert(gone.clone(), fits);
        Some(fits)
    }

    /// Whether the policy would place the request without these jobs, and then those of them that move; `None` if enough was asked.
    pub fn works(&mut self, gone: &Jobs) -> Option<bool> {
        if !gone.iter().any(|job| self.jobs[job].moves) {
            return self.fits(gone);
        }
        if !self.cover.may_hold(gone) {
            return Some(false);
        }
        if let Some(&known) = self.works.get(gone) {
            return Some(known);
        }
        if self.questions >= self.most {
            return None;
        }
        Some(self.place(gone).is_some())
    }

    /// Where the policy would place the request, if that fits without these jobs; `None` if nowhere, or if enough was asked.
    pub fn place_request(&mut self, gone: &Jobs) -> Option<Placement> {
        if self.questions >= self.most {
            return None;
        }
        self.questions += 1;
        place_within(self.policy, &self.request(gone), &self.without(gone)).ok()
    }

    /// Where the policy would place the request without these jobs, and then those of them that move, however much was asked.
    pub fn place(&mut self, gone: &Jobs) -> Option<RoomPlaces> {
        let (policy, jobs) = (self.policy, self.jobs);
        let request = self.request(gone);
        let moving = gone.iter().map(|job| &jobs[job]).filter(|job| job.moves);
        let mut moving: Vec<&Touchable<'_>> = moving.collect();
        moving.sort_by_key(|job| Reverse(job.placement.nodes().len()));
        self.questions = self.questions.saturating_add(1 + moving.len() as u32);
        let mut then = self.without(gone);
        let placed = place_within(policy, &request, &then).ok().map(Arc::new);
        let placed = placed.filter(|placed| then.claim(Arc::clone(placed)).is_ok());
        let mut again = |job: &&Touchable<'_>| {
            let nodes = job.placement.nodes().len() as u32;
            let request = Request { nodes, most: nodes, ..job.request.clone() };
            let placement = Arc::new(place_within(policy, &request, &then).ok()?);
            then.claim(Arc::clone(&placement)).ok()?;
            Some((request.id, placement))
        };
        let moved: Option<Vec<_>> =
            if placed.is_some() { moving.iter().map(&mut again).collect() } else { None };
        drop(then);
        self.fits.insert(gone.clone(), placed.is_some());
        self.works.insert(gone.clone(), moved.is_some());
        let mut moved = moved?;
        moved.sort_by_key(|&(id, _)| id);
        Some(RoomPlaces { request: placed?, moved })
    }

    pub fn plan(&self, gone: &Jobs, least: f64, places: RoomPlaces) -> RoomPlan {
        let requeued = gone.iter().map(|job| &self.jobs[job]).filter(|job| !job.moves);
        RoomPlan {
            requeued: requeued.map(|job| job.request.id).collect(),
            moved: places.moved,
            // The sum of nothing is -0.
            cost: gone.iter().map(|job| self.jobs[job].cost).sum::<f64>() + 0.0,
            least,
            placement: places.request,
            questions: self.questions,
        }
    }

    /// The request, with the slots that there are without these jobs.
    fn request(&self, gone: &Jobs) -> Cow<'a, Request> {
        let Some(counts) = self.counts else { return Cow::Borrowed(self.request) };
        let slots = counts.slots(gone.iter().map(|job| self.jobs[job].place));
        Cow::Owned(Request { slots: Some(slots), ..self.request.clone() })
    }

    /// The state without these jobs.
    fn without(&mut self, gone: &Jobs) -> WhatIf<'_> {
        let mut then = if self.policy.reads_traffic() {
            self.occupancy.what_if()
        } else {
            self.occupancy.what_if_without_network()
        };
        for job in gone.iter() {
            then.release(Arc::clone(self.jobs[job].placement));
        }
        then
    }
}

/// Whether the policy is asked about the request itself. A rule that knows no groups is asked about the free nodes of one
/// group after another, and what it says of the request need not hold for these.
pub fn is_asked_itself(policy: &dyn Policy, request: &Request) -> bool {
    policy.reads_within() || matches!(request.within, Within::Unsaid | Within::Anywhere)
}
