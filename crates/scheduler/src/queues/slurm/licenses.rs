//! Licences: counted things that jobs hold wherever they run.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_placement::Request;

use super::config::SlurmConfig;

/// Licences that a job asks for, by name.
pub(super) type Asked = [(Arc<str>, u64)];

/// How many licences of each name are free. Those that the configuration does not name are not counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Licenses {
    /// Below 0 if jobs were started elsewhere on more than there are.
    free: HashMap<Arc<str>, i64>,
}

impl Licenses {
    /// All licences of a cluster.
    pub fn of(config: &SlurmConfig) -> Self {
        let free = config.licenses.iter().map(|(name, &total)| (Arc::from(&**name), count(total)));
        Licenses { free: free.collect() }
    }

    /// Whether those that a job asks for are free.
    pub fn suffice(&self, asked: &Asked) -> bool {
        let is_free = |(name, number): &(Arc<str>, u64)| {
            self.free.get(name).is_none_or(|&free| free >= count(*number))
        };
        asked.iter().all(is_free)
    }

    /// A job takes its licences.
    pub fn take(&mut self, asked: &Asked) {
        self.change(asked, -1);
    }

    /// A job gives its licences back.
    pub fn give_back(&mut self, asked: &Asked) {
        self.change(asked, 1);
    }

    fn change(&mut self, asked: &Asked, sign: i64) {
        for (name, number) in asked {
            if let Some(free) = self.free.get_mut(name) {
                *free = free.saturating_add(sign * count(*number));
            }
        }
    }
}

/// Those that a request asks for.
pub(super) fn of(request: &Request) -> &Asked {
    request.attributes.as_deref().map_or(&[], |whose| &whose.licenses)
}

/// Whether two jobs ask for licences of one name.
pub(super) fn meet(one: &Asked, other: &Asked) -> bool {
    one.iter().any(|(name, _)| other.iter().any(|(other, _)| name == other))
}

fn count(licenses: u64) -> i64 {
    i64::try_from(licenses).unwrap_or(i64::MAX)
}
