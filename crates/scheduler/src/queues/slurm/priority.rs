//! Slurm's multifactor priority, with fair share by its fair tree algorithm.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::InputError;
use topolane_placement::Attributes;

use super::config::{Association, Priority, SlurmConfig};

/// ln 2, rounded as in Slurm's source.
const HALF: f64 = 0.693;
const ROOT: usize = 0;

/// An account or a user.
#[derive(Debug, Clone)]
struct Member {
    parent: usize,
    children: Vec<usize>,
    is_user: bool,
    /// `None` if it has no shares of its own. A user without shares ranks before those who have some.
    shares: Option<f64>,
    /// Usage in processor-seconds, decayed.
    usage: f64,
    /// Shares divided by usage, among its siblings.
    level: f64,
    factor: f64,
}

/// The tree of accounts and users with their usage.
#[derive(Debug, Clone, Default)]
pub(super) struct FairTree {
    members: Vec<Member>,
    of: HashMap<(Arc<str>, Arc<str>), usize>,
    users: u32,
    /// The fraction of usage that remains after one second.
    decay: f64,
}

impl FairTree {
    /// Returns the tree of these associations, without usage.
    ///
    /// # Errors
    /// An association that occurs twice, or a parent that does not exist.
    pub fn of(associations: &[Association], half_life: f64) -> Result<Self, InputError> {
        let root = Member {
            parent: ROOT,
            children: Vec::new(),
            is_user: false,
            shares: Some(1.0),
            usage: 0.0,
            level: 0.0,
            factor: 0.0,
        };
        let decay = if half_life > 0.0 { 1.0 - HALF / half_life } else { 1.0 };
        let mut tree = FairTree { members: vec![root], of: HashMap::new(), users: 0, decay };
        let key = |account: &str, user: &str| (Arc::from(account), Arc::from(user));
        tree.of.insert(key("root", ""), ROOT);
        let is_root = |one: &Association| one.account == "root" && one.user.is_empty();
        for one in associations.iter().filter(|one| !is_root(one)) {
            let place = tree.members.len();
            if tree.of.insert(key(&one.account, &one.user), place).is_some() {
                let message =
                    format!("two associations of account {} and user {:?}", one.account, one.user);
                return Err(InputError::whole(message));
            }
            tree.users += u32::from(!one.user.is_empty());
            let (is_user, shares) = (!one.user.is_empty(), one.shares);
            tree.members.push(Member { is_user, shares, ..tree.members[ROOT].clone() });
        }
        for one in associations.iter().filter(|one| !is_root(one)) {
            let place = tree.of[&key(&one.account, &one.user)];
            let above = match (one.user.is_empty(), one.parent.as_str()) {
                (false, _) => one.account.as_str(),
                (true, "") => "root",
                (true, parent) => parent,
            };
            let Some(&parent) = tree.of.get(&key(above, "")).filter(|&&parent| parent != place)
            else {
                let message = format!("no association of account {above}, above {}", one.account);
                return Err(InputError::whole(message));
            };
            tree.members[place].parent = parent;
            tree.members[parent].children.push(place);
        }
        tree.rank();
        Ok(tree)
    }

    /// The index of the job's user in the tree; `None` if unknown, or if the tree has no users.
    fn place(&self, whose: &Attributes) -> Option<usize> {
        if self.users == 0 {
            return None;
        }
        self.of.get(&(Arc::clone(&whose.account), Arc::clone(&whose.user))).copied()
    }

    /// The fair share factor of the user, 0 to 1: its rank among all users.
    pub fn factor(&self, whose: &Attributes) -> f64 {
        self.place(whose).map_or(0.0, |place| self.members[place].factor)
    }

    /// Adds usage that began `seconds` ago and ends now. Usage in the last second counts in full, earlier usage decays.
    pub fn charge(&mut self, whose: &Attributes, processors: f64, seconds: f64) {
        let usage = processors * seconds * self.decay.powf(seconds);
        let mut at = self.place(whose);
        for _ in 0..64 {
            let Some(place) = at else { return };
            self.members[place].usage += usage;
            at = (place != ROOT).then(|| self.members[place].parent);
        }
    }

    /// Lets all usage so far decay for `seconds` seconds.
    pub fn decay(&mut self, seconds: f64) {
        let left = self.decay.powf(seconds);
        for member in &mut self.members {
            member.usage *= left;
        }
    }

    /// Computes the factor of every user from its rank. Users rank by shares over usage within their account, and
    /// accounts among their siblings.
    pub fn rank(&mut self) {
        let Some(root) = self.members.first() else { return };
        let children = root.children.clone();
        let mut ranks = (self.users, self.users);
        self.rank_siblings(children, &mut ranks, false);
    }

    /// Ranks siblings and everything below them. `ranks` has the rank that ties get, and the rank of the next user
    /// without a tie. `tied`: the parent is tied with its neighbour.
    fn rank_siblings(&mut self, mut siblings: Vec<usize>, ranks: &mut (u32, u32), tied: bool) {
        let all: f64 = siblings.iter().filter_map(|&place| self.members[place].shares).sum();
        for &place in &siblings {
            self.members[place].level = self.level(place, all);
        }
        siblings.sort_by(|&a, &b| {
            let (a, b) = (&self.members[a], &self.members[b]);
            b.level.total_cmp(&a.level).then(b.is_user.cmp(&a.is_user))
        });
        let mut before = None;
        for place in siblings {
            let member = &self.members[place];
            let equal = before.map_or(tied, |level: f64| level.total_cmp(&member.level).is_eq());
            before = Some(member.level);
            if member.is_user {
                if !equal {
                    ranks.0 = ranks.1;
                }
                ranks.1 -= 1;
                self.members[place].factor = f64::from(ranks.0) / f64::from(self.users);
            } else {
                let children = member.children.clone();
                self.rank_siblings(children, ranks, equal);
            }
        }
    }

    fn level(&self, place: usize, all_shares: f64) -> f64 {
        let member = &self.members[place];
        let Some(shares) = member.shares else { return f64::INFINITY };
        if shares <= 0.0 {
            return 0.0;
        }
        let above = self.members[member.parent].usage;
        let used = if above > 0.0 { member.usage / above } else { 0.0 };
        shares / all_shares / used
    }
}

/// The properties of a job that determine its priority.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asks<'a> {
    pub nodes: u32,
    /// `None` if unknown.
    pub processors: Option<u64>,
    pub whose: &'a Attributes,
    /// Seconds since it became eligible.
    pub age: f64,
}

/// The maxima and weights by which the factors of a priority are normalised.
#[derive(Debug, Clone)]
pub(super) struct Factors {
    weights: Priority,
    nodes: f64,
    processors: f64,
    /// The factor of each partition.
    partitions: HashMap<Arc<str>, f64>,
    /// The factor of each QOS.
    qos: HashMap<Arc<str>, f64>,
}

impl Factors {
    pub fn of(config: &SlurmConfig) -> Self {
        Factors {
            weights: config.priority.clone(),
            nodes: f64::from(config.nodes),
            processors: f64::from(config.nodes) * config.processors_per_node as f64,
            partitions: over_the_highest(config.partitions.iter().map(|p| (&*p.name, p.factor))),
            qos: over_the_highest(config.qos.iter().map(|q| (&*q.name, q.priority))),
        }
    }

    /// The priority of a job whose user has this fair share factor: a whole number, at least 1.
    pub fn priority(&self, asks: Asks<'_>, fair_share: f64) -> f64 {
        let weights = &self.weights;
        let named = |factors: &HashMap<Arc<str>, f64>, name| factors.get(name).copied();
        let sum = weights.weight_age * (asks.age / weights.max_age).clamp(0.0, 1.0)
            + weights.weight_fair_share * fair_share
            + weights.weight_job_size * self.size(asks)
            + weights.weight_partition
                * named(&self.partitions, &asks.whose.partition).unwrap_or(0.0)
            + weights.weight_qos * named(&self.qos, &asks.whose.qos).unwrap_or(0.0)
            - asks.whose.nice as f64;
        sum.max(1.0).floor()
    }

    /// The size of a job: the mean of its shares of all nodes and of all processors.
    fn size(&self, asks: Asks<'_>) -> f64 {
        if self.nodes <= 0.0 {
            return 0.0;
        }
        let part = |of: f64| if self.weights.favor_small { 1.0 - of } else { of };
        let nodes = part(f64::from(asks.nodes) / self.nodes);
        let processors = asks.processors.filter(|&count| count > 0 && self.processors > 0.0);
        let size = processors
            .map_or(nodes, |count| f64::midpoint(nodes, part(count as f64 / self.processors)));
        size.clamp(0.0, 1.0)
    }
}

fn over_the_highest<'a>(
    named: impl Iterator<Item = (&'a str, f64)> + Clone,
) -> HashMap<Arc<str>, f64> {
    let highest = named.clone().map(|(_, value)| value).fold(0.0, f64::max);
    let part = |value: f64| if highest > 0.0 { value / highest } else { 0.0 };
    named.map(|(name, value)| (Arc::from(name), part(value))).collect()
}

#[cfg(test)]
#[allow(clippy::float_cmp)]
mod tests {
    use std::collections::HashMap;
    use std::io::Read;
    use std::path::Path;

    use flate2::read::GzDecoder;

    use super::*;

    const BEGIN: f64 = 1_795_737_005.0;
    const CONFIG: &str = r#"{"nodes": 72, "processors_per_node": 16,
        "priority": {"weight_age": 2000, "weight_fair_share": 10000, "weight_job_size": 1000, "weight_partition": 1000,
            "weight_qos": 4000, "max_age": 900, "half_life": 1200, "period": 60},
        "partitions": [{"name": "pbatch", "factor": 1}, {"name": "pdebug", "factor": 10}],
        "qos": [{"name": "normal"}, {"name": "short", "priority": 100}, {"name": "large", "priority": 40}],
        "associations": [{"account": "root", "user": "root", "shares": 1},
            {"account": "biology", "shares": 30}, {"account": "biology", "user": "mail", "shares": 10},
            {"account": "biology", "user": "news", "shares": 10}, {"account": "biology", "user": "uucp", "shares": 10},
            {"account": "physics", "shares": 50}, {"account": "physics", "user": "games", "shares": 10},
            {"account": "physics", "user": "lp", "shares": 10}, {"account": "physics", "user": "man", "shares": 10},
            {"account": "teaching", "shares": 20}, {"account": "teaching", "user": "backup", "shares": 10},
            {"account": "teaching", "user": "proxy", "shares": 10}]}"#;

    fn recorded(file: &str) -> String {
        let records = "../../tests/live/slurm/records-of-a-twin-45-minutes";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(records).join(file);
        let mut text = String::new();
        let zipped = std::fs::File::open(path).unwrap();
        GzDecoder::new(zipped).read_to_string(&mut text).unwrap();
        text
    }

    fn whose(account: &str, user: &str) -> Attributes {
        Attributes { account: account.into(), user: user.into(), ..Attributes::default() }
    }

    /// The start, end, processors and owner of every run in the records.
    fn runs() -> Vec<(f64, f64, f64, Attributes)> {
        let text = recorded("jobs.txt.gz");
        let rows = text.lines().skip(1).map(|line| line.split(';').collect::<Vec<_>>());
        rows.filter_map(|row| {
            let (start, end) = (row[5].parse().ok()?, row[6].parse().ok()?);
            let nodes: f64 = row[11].parse().ok()?;
            Some((start, end, 16.0 * nodes, whose(row[17], row[18])))
        })
        .collect()
    }

    /// With usage computed every minute from the recorded runs, the fair share and size factors equal those that sprio
    /// printed for every waiting job.
    #[test]
    fn fair_share_and_size_are_what_sprio_printed() {
        let config = SlurmConfig::parse(CONFIG).unwrap();
        let mut tree = FairTree::of(&config.associations, 1200.0).unwrap();
        let factors = Factors::of(&config);
        let runs = runs();
        let nodes: HashMap<String, u32> = recorded("jobs.txt.gz")
            .lines()
            .skip(1)
            .map(|line| line.split(';').collect::<Vec<_>>())
            .map(|row| (row[0].to_owned(), row[11].parse().unwrap()))
            .collect();
        let mut last = BEGIN;
        let mut seen = 0;
        let mut sampled = 0.0;
        for line in recorded("sprio.txt.gz").lines() {
            if let Some(time) = line.strip_prefix("# ") {
                sampled = time.parse::<f64>().unwrap();
                while last + 60.0 <= sampled {
                    let next = last + 60.0;
                    let used = |until: f64, start: f64| until - start.max(last);
                    for (start, end, processors, owner) in &runs {
                        if *end > last && *end <= next {
                            tree.charge(owner, *processors, used(*end, *start));
                        }
                    }
                    tree.decay(60.0);
                    for (start, end, processors, owner) in &runs {
                        if *start < next && *end > next {
                            tree.charge(owner, *processors, used(next, *start));
                        }
                    }
                    tree.rank();
                    last = next;
                }
                continue;
            }
            let cells: Vec<&str> = line.split_whitespace().collect();
            let Some(&asked) = nodes.get(cells[0]) else { continue };
            let printed: f64 = cells[8].parse().unwrap();
            let factor = 10_000.0 * tree.factor(&whose(cells[3], cells[2]));
            assert!((factor - printed).abs() <= 1.0, "{sampled}: {line}: {factor}");
            // Slurm counts the processors that were asked for, and all processors of the nodes once backfill has
            // examined the job.
            let printed: f64 = cells[9].parse().unwrap();
            let sizes = [1, 16].map(|each| {
                let processors = Some(u64::from(asked) * each);
                let whose = &Attributes::default();
                1_000.0 * factors.size(Asks { nodes: asked, processors, whose, age: 0.0 })
            });
            assert!(sizes.iter().any(|size| (size - printed).abs() <= 1.0), "{line}: {sizes:?}");
            seen += 1;
        }
        assert!(seen > 4_000, "{seen} samples");
    }

    /// The priority is the sum of its parts, rounded down, as in the first lines that sprio printed.
    #[test]
    fn the_parts_of_a_priority_are_added() {
        let factors = Factors::of(&SlurmConfig::parse(CONFIG).unwrap());
        let priority = |nodes: u32, age, (partition, qos): (&str, &str), nice, fair_share| {
            let whose = Attributes {
                partition: partition.into(),
                qos: qos.into(),
                nice,
                ..Attributes::default()
            };
            let processors = Some(nodes.into());
            factors.priority(Asks { nodes, processors, whose: &whose, age }, fair_share)
        };
        assert_eq!(priority(1, 0.0, ("pbatch", "normal"), 0, 1.0), 10_107.0);
        assert_eq!(priority(16, 0.0, ("pbatch", "large"), 0, 1.0), 11_818.0);
        assert_eq!(priority(1, 0.0, ("pdebug", "normal"), 0, 3.0 / 9.0), 4_340.0);
        assert_eq!(priority(1, 450.0, ("pbatch", "short"), 1000, 0.0), 4_107.0);
        assert_eq!(priority(1, 0.0, ("", ""), 5000, 0.0), 1.0, "at least 1");
    }
}
