//! Limits on what jobs of one QOS, account or user may hold together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use topolane_fabric::NodeSet;
use topolane_placement::Attributes;

use super::config::{Association, Limits, SlurmConfig};
use super::licenses::Licenses;

/// Jobs that are counted together: those of a QOS, of an account, or of a user in either, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CountedTogether {
    Qos(Arc<str>),
    QosUser(Arc<str>, Arc<str>),
    QosAccount(Arc<str>, Arc<str>),
    Account(Arc<str>),
    User(Arc<str>, Arc<str>),
}

/// What jobs that are counted together hold.
#[derive(Debug, Clone, Default)]
struct Holding {
    jobs: u64,
    /// The number of these jobs on each node.
    nodes: HashMap<u32, u32>,
}

/// The most jobs and the most nodes; `None` for no limit.
type Most = (Option<u64>, Option<u64>);

/// An account and a user; the user is empty for the account itself.
type AccountAndUser = (Arc<str>, Arc<str>);
/// The limits of an account or user, and the parent account.
type OfOwner = (Limits, Arc<str>);

/// The limits, and what running jobs hold.
#[derive(Debug, Clone, Default)]
pub(super) struct LimitUse {
    qos: HashMap<Arc<str>, Limits>,
    associations: HashMap<AccountAndUser, OfOwner>,
    holdings: HashMap<CountedTogether, Holding>,
    pub licenses: Licenses,
}

impl LimitUse {
    pub fn of(config: &SlurmConfig) -> Self {
        let qos = config.qos.iter().map(|qos| (Arc::from(&*qos.name), qos.limits)).collect();
        let key = |one: &Association| (Arc::from(&*one.account), Arc::from(&*one.user));
        let associations = config
            .associations
            .iter()
            .map(|one| (key(one), (one.limits, Arc::from(&*one.parent))))
            .collect();
        LimitUse { qos, associations, holdings: HashMap::new(), licenses: Licenses::of(config) }
    }

    /// Whether the limits let a job start now on nodes that no running job uses.
    pub fn admits(&self, whose: &Attributes, nodes: u32) -> bool {
        self.admits_new(whose, nodes, |_| u64::from(nodes))
    }

    /// Whether the limits let a job start now on these nodes. A node that counts already counts once.
    pub fn admits_on(&self, whose: &Attributes, nodes: &NodeSet) -> bool {
        self.admits_new(whose, nodes.count(), |holding| {
            nodes.iter().filter(|node| !holding.nodes.contains_key(node)).count() as u64
        })
    }

    fn admits_new(&self, whose: &Attributes, nodes: u32, new: impl Fn(&Holding) -> u64) -> bool {
        let too_wide = self.most_per_job(whose).is_some_and(|most| u64::from(nodes) > most);
        let none = Holding::default();
        !too_wide
            && self.bounds(whose).into_iter().all(|(together, (most_jobs, most_nodes))| {
                let holding = self.holdings.get(&together).unwrap_or(&none);
                most_jobs.is_none_or(|most| holding.jobs < most)
                    && most_nodes
                        .is_none_or(|most| holding.nodes.len() as u64 + new(holding) <= most)
            })
    }

    /// Adds a job that starts.
    pub fn add(&mut self, whose: &Attributes, nodes: &NodeSet) {
        self.licenses.take(&whose.licenses);
        for (together, (_, most_nodes)) in self.bounds(whose) {
            let holding = self.holdings.entry(together).or_default();
            holding.jobs += 1;
            for node in nodes.iter().filter(|_| most_nodes.is_some()) {
                *holding.nodes.entry(node).or_default() += 1;
            }
        }
    }

    /// Removes a job that ends.
    pub fn remove(&mut self, whose: &Attributes, nodes: &NodeSet) {
        self.licenses.give_back(&whose.licenses);
        for (together, _) in self.bounds(whose) {
            let Some(holding) = self.holdings.get_mut(&together) else { continue };
            holding.jobs = holding.jobs.saturating_sub(1);
            for node in nodes.iter() {
                if let Entry::Occupied(mut on) = holding.nodes.entry(node) {
                    *on.get_mut() -= 1;
                    if *on.get() == 0 {
                        on.remove();
                    }
                }
            }
        }
    }

    /// The limits that apply to a job.
    fn bounds(&self, whose: &Attributes) -> Vec<(CountedTogether, Most)> {
        let mut found = Vec::new();
        let mut keep = |together, most: Most| {
            if most != (None, None) {
                found.push((together, most));
            }
        };
        let (user, account) = (&whose.user, &whose.account);
        if let Some(limits) = self.qos.get(&whose.qos) {
            let qos = || Arc::clone(&whose.qos);
            keep(CountedTogether::Qos(qos()), (limits.jobs, limits.nodes));
            let of_user = (limits.jobs_per_user, limits.nodes_per_user);
            keep(CountedTogether::QosUser(qos(), Arc::clone(user)), of_user);
            let of_account = (limits.jobs_per_account, limits.nodes_per_account);
            keep(CountedTogether::QosAccount(qos(), Arc::clone(account)), of_account);
        }
        let of_user = self.up(whose).find_map(|limits| limits.jobs_per_user);
        let own = self.associations.get(&(Arc::clone(account), Arc::clone(user)));
        let own = own.map(|(limits, _)| *limits).unwrap_or_default();
        let least = [own.jobs, of_user].into_iter().flatten().min();
        keep(CountedTogether::User(Arc::clone(account), Arc::clone(user)), (least, own.nodes));
        for (name, limits) in self.accounts(account) {
            keep(CountedTogether::Account(name), (limits.jobs, limits.nodes));
        }
        found
    }

    fn most_per_job(&self, whose: &Attributes) -> Option<u64> {
        let of_qos = self.qos.get(&whose.qos).and_then(|limits| limits.nodes_per_job);
        let of_association = self.up(whose).find_map(|limits| limits.nodes_per_job);
        [of_qos, of_association].into_iter().flatten().min()
    }

    /// The limits of the job's user, then of its accounts, from the nearest up.
    fn up(&self, whose: &Attributes) -> impl Iterator<Item = Limits> + '_ {
        let user = (Arc::clone(&whose.account), Arc::clone(&whose.user));
        let user = self.associations.get(&user).map(|(limits, _)| *limits);
        user.into_iter().chain(self.accounts(&whose.account).into_iter().map(|(_, limits)| limits))
    }

    /// An account and all accounts above it.
    fn accounts(&self, account: &Arc<str>) -> Vec<(Arc<str>, Limits)> {
        let mut found: Vec<(Arc<str>, Limits)> = Vec::new();
        if self.associations.is_empty() {
            return found;
        }
        let mut name = Arc::clone(account);
        while let Some((limits, parent)) = self.associations.get(&(Arc::clone(&name), "".into())) {
            if found.iter().any(|(known, _)| *known == name) {
                break;
            }
            found.push((name, *limits));
            name = if parent.is_empty() { "root".into() } else { Arc::clone(parent) };
        }
        found
    }
}
