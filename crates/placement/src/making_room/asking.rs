//! Questions to the policy: would it place the request without these jobs?

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cover::Cover;
use super::jobs::Jobs;
use super::{RoomPlan, Touchable};
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::request::Request;
use crate::what_if::WhatIf;
use crate::within::{Within, place_within};

/// The policy, and the state in which it is asked.
pub(super) struct Asking<'a> {
    policy: &'a dyn Policy,
    request: &'a Request,
    occupancy: &'a mut Occupancy,
    jobs: &'a [Touchable<'a>],
    cover: &'a Cover<'a>,
    answers: FxHashMap<Jobs, bool>,
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
        most: u32,
    ) -> Self {
        let answers = FxHashMap::default();
        Asking { policy, request, occupancy, jobs, cover, answers, questions: 0, most }
    }

    pub fn questions(&self) -> u32 {
        self.questions
    }

    /// Whether the policy would place the request without these jobs; `None` if enough was asked.
    pub fn fits(&mut self, gone: &Jobs) -> Option<bool> {
        if !self.cover.may_hold(gone) {
            return Some(false);
        }
        if let Some(&known) = self.answers.get(gone) {
            return Some(known);
        }
        if self.questions >= self.most {
            return None;
        }
        self.questions += 1;
        let fits = if self.request.within == Within::Unsaid || self.policy.reads_within() {
            self.policy.can_place(self.request, &self.without(gone)).is_ok()
        } else {
            place_within(self.policy, self.request, &self.without(gone)).is_ok()
        };
        self.answers.insert(gone.clone(), fits);
        Some(fits)
    }

    /// Where the policy would place the request without these jobs; `None` if nowhere, or if enough was asked.
    pub fn place(&mut self, gone: &Jobs) -> Option<Arc<Placement>> {
        if self.questions >= self.most {
            return None;
        }
        self.place_at_last(gone)
    }

    /// The same, however much was asked.
    pub fn place_at_last(&mut self, gone: &Jobs) -> Option<Arc<Placement>> {
        self.questions += 1;
        let placed = place_within(self.policy, self.request, &self.without(gone)).ok();
        self.answers.insert(gone.clone(), placed.is_some());
        placed.map(Arc::new)
    }

    pub fn plan(&self, gone: &Jobs, least: f64, placement: Arc<Placement>) -> RoomPlan {
        RoomPlan {
            requeued: gone.iter().map(|job| self.jobs[job].id).collect(),
            // The sum of nothing is -0.
            cost: gone.iter().map(|job| self.jobs[job].cost).sum::<f64>() + 0.0,
            least,
            placement,
            questions: self.questions,
        }
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
