//! Licences: counted resources that jobs hold on any node.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use topolane_placement::{Attributes, Request};

use super::config::SlurmConfig;

/// The licences that a job asks for: name and count.
pub(super) type AskedLicenses = [(Arc<str>, u64)];

/// The free licences of each name. Names that the configuration does not have are not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Licenses {
    /// Free licences by name. Negative if jobs elsewhere hold more than there are.
    free: HashMap<Arc<str>, i64>,
    /// Licences that only jobs of a reservation may take, by the names of the reservation and of the licence.
    reserved: HashMap<(Arc<str>, Arc<str>), i64>,
}

impl Licenses {
    /// Returns all licences of a cluster as free.
    pub fn of(config: &SlurmConfig) -> Self {
        let free = config.licenses.iter().map(|(name, &total)| (Arc::from(&**name), count(total)));
        Licenses { free: free.collect(), reserved: HashMap::new() }
    }

    /// Whether the licences that a job asks for are free.
    pub fn suffice(&self, asked: &AskedLicenses) -> bool {
        let is_free = |(name, number): &(Arc<str>, u64)| {
            self.free.get(name).is_none_or(|&free| free >= count(*number))
        };
        asked.iter().all(is_free)
    }

    /// Whether a job's licences are free, inside and outside its reservation.
    pub fn suffice_for(&self, whose: &Attributes) -> bool {
        whose.licenses.iter().all(|(name, asked)| {
            let outside = count(*asked) - self.in_reservation(whose, name).min(count(*asked));
            outside == 0 || self.free.get(name).is_none_or(|&free| free >= outside)
        })
    }

    /// Takes the licences of a job, those of its reservation first.
    pub fn take_for(&mut self, whose: &Attributes) {
        for (name, asked) in &whose.licenses {
            let inside = self.in_reservation(whose, name).min(count(*asked));
            if let Some(left) = self.reserved.get_mut(&key(&whose.reservation, name)) {
                *left -= inside;
            }
            if let Some(free) = self.free.get_mut(name) {
                *free = free.saturating_sub(count(*asked) - inside);
            }
        }
    }

    /// Sets the licences of a reservation aside, as far as they are free.
    pub fn reserve(&mut self, reservation: &Arc<str>, licenses: &AskedLicenses) {
        for (name, number) in licenses {
            if let Some(free) = self.free.get_mut(name) {
                let taken = count(*number).min((*free).max(0));
                *free -= taken;
                *self.reserved.entry(key(reservation, name)).or_default() += taken;
            }
        }
    }

    fn in_reservation(&self, whose: &Attributes, name: &Arc<str>) -> i64 {
        self.reserved.get(&key(&whose.reservation, name)).copied().unwrap_or(0)
    }

    /// Takes licences for a job.
    pub fn take(&mut self, asked: &AskedLicenses) {
        self.change(asked, -1);
    }

    /// Gives the licences of a job back.
    pub fn give_back(&mut self, asked: &AskedLicenses) {
        self.change(asked, 1);
    }

    fn change(&mut self, asked: &AskedLicenses, sign: i64) {
        for (name, number) in asked {
            if let Some(free) = self.free.get_mut(name) {
                *free = free.saturating_add(sign * count(*number));
            }
        }
    }
}

/// The licences that a request asks for.
pub(super) fn of(request: &Request) -> &AskedLicenses {
    request.attributes.as_deref().map_or(&[], |whose| &whose.licenses)
}

/// Converts licences to the form that jobs use.
pub(super) fn named(licenses: &BTreeMap<String, u64>) -> Vec<(Arc<str>, u64)> {
    licenses.iter().map(|(name, &number)| (Arc::from(&**name), number)).collect()
}

/// Whether two jobs ask for licences of the same name.
pub(super) fn meet(one: &AskedLicenses, other: &AskedLicenses) -> bool {
    one.iter().any(|(name, _)| other.iter().any(|(other, _)| name == other))
}

fn key(reservation: &Arc<str>, name: &Arc<str>) -> (Arc<str>, Arc<str>) {
    (Arc::clone(reservation), Arc::clone(name))
}

fn count(licenses: u64) -> i64 {
    i64::try_from(licenses).unwrap_or(i64::MAX)
}
