//! The cheapest jobs that together free a wanted amount: a knapsack cover.

use super::jobs::Jobs;

/// A job that frees something here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Item {
    pub job: usize,
    pub gain: u32,
    pub cost: f64,
    /// Its group, if there is a budget for that.
    pub group: Option<usize>,
    /// How much of the budget it uses up, at least 1.
    pub uses: u32,
}

/// Steps that an exact cover may take; a problem that needs more is bounded by its relaxation.
const STEPS: u64 = 1 << 25;

/// The result of a relaxed cover.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Relaxed {
    /// No cover costs less; infinite if there is none.
    pub cost: f64,
    /// The last item taken: the one that may be taken in part.
    pub last: Option<usize>,
}

/// Puts items with the least cost for what they free first.
pub(super) fn by_ratio(items: &mut [Item]) {
    let ratio = |item: &Item| item.cost / f64::from(item.gain);
    items.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)).then(a.job.cmp(&b.job)));
}

/// The cost of freeing `need` if items could be taken in part. `items` are in the order of [`by_ratio`]; those that `is_open` is false for
/// are passed over.
pub(super) fn relaxed(items: &[Item], need: u32, is_open: impl Fn(usize) -> bool) -> Relaxed {
    let mut found = Relaxed { cost: 0.0, last: None };
    let mut need = need;
    for item in items.iter().filter(|item| is_open(item.job)) {
        if need == 0 {
            break;
        }
        let part = item.gain.min(need);
        found.cost += item.cost * (f64::from(part) / f64::from(item.gain));
        found.last = Some(item.job);
        need -= part;
    }
    if need > 0 { Relaxed { cost: f64::INFINITY, last: None } } else { found }
}

/// What each further part costs if items could be taken in part, and the last item taken for it: the first part is free once
/// `need` is freed, each other after `part` more. They are ascending.
pub(super) fn relaxed_parts(
    items: &[Item],
    need: u32,
    part: u32,
    is_open: impl Fn(usize) -> bool,
) -> Vec<(f64, usize)> {
    let mut parts = Vec::new();
    let (mut need, mut cost) = (need, 0.0);
    for item in items.iter().filter(|item| is_open(item.job)) {
        let mut left = item.gain;
        while left > 0 {
            let taken = left.min(need);
            cost += item.cost * (f64::from(taken) / f64::from(item.gain));
            (left, need) = (left - taken, need - taken);
            if need == 0 {
                parts.push((cost, item.job));
                (need, cost) = (part.max(1), 0.0);
            }
        }
    }
    parts
}

/// The cheapest items that free `need` together, no more of any group than its budget; its cost is infinite if there are
/// none. `None` if that would take too many steps. By dynamic programming over what is still to be freed, as for the knapsack
/// problem, and for groups whose budget may bind also over what is used of it (Kellerer, Pferschy, Pisinger: Knapsack Problems, 2004,
/// 2.3 and 11.1).
pub(super) fn cheapest(
    items: &[Item],
    need: u32,
    budgets: &[u32],
    jobs: usize,
) -> Option<(f64, Jobs)> {
    let width = need as usize + 1;
    let classes = classes(items, budgets);
    let rows = |class: &ItemClass<'_>| class.most.map_or(1, |most| most as usize);
    let steps = classes.iter().map(|class| (class.items.len() * rows(class) * width) as u64);
    if steps.sum::<u64>() > STEPS {
        return None;
    }
    let mut best = vec![f64::INFINITY; width];
    best[0] = 0.0;
    let mut taken = Vec::with_capacity(classes.len());
    for class in &classes {
        taken.push(class.take(&mut best));
    }
    let mut chosen = Jobs::none(jobs);
    let mut left = need as usize;
    if best[left].is_infinite() {
        return Some((f64::INFINITY, chosen));
    }
    for (class, taken) in classes.iter().zip(&taken).rev() {
        let mut row = rows(class) - 1;
        for (index, item) in class.items.iter().enumerate().rev() {
            if taken[(index * rows(class) + row) * width + left] {
                chosen.insert(item.job);
                left = left.saturating_sub(item.gain as usize);
                if class.most.is_some() {
                    let uses = item.uses as usize;
                    if row < uses {
                        break;
                    }
                    row -= uses;
                }
            }
        }
    }
    Some((best[need as usize], chosen))
}

/// Items of one group, or all of those whose number does not matter.
struct ItemClass<'a> {
    items: Vec<&'a Item>,
    /// How much they may use up together, at least 1, if that matters.
    most: Option<u32>,
}

fn classes<'a>(items: &'a [Item], budgets: &[u32]) -> Vec<ItemClass<'a>> {
    let mut free = ItemClass { items: Vec::new(), most: None };
    let mut bound: Vec<ItemClass<'a>> =
        budgets.iter().map(|&most| ItemClass { items: Vec::new(), most: Some(most) }).collect();
    for item in items {
        match item.group {
            Some(group) => bound[group].items.push(item),
            None => free.items.push(item),
        }
    }
    bound.retain_mut(|class| {
        let uses = class.items.iter().map(|item| item.uses).fold(0, u32::saturating_add);
        let binds = class.most.is_some_and(|most| most < uses);
        if !binds {
            free.items.append(&mut class.items);
        }
        binds && class.most != Some(0)
    });
    if !free.items.is_empty() {
        bound.push(free);
    }
    bound
}

impl ItemClass<'_> {
    /// Takes items where that is cheaper. `best` is the least cost by what is freed. Answers what was taken: by item, what may
    /// be used up less 1, and what was to be freed.
    fn take(&self, best: &mut Vec<f64>) -> Vec<bool> {
        let width = best.len();
        let Some(most) = self.most else {
            let mut taken = vec![false; self.items.len() * width];
            for (item, taken) in self.items.iter().zip(taken.chunks_mut(width)) {
                for need in (1..width).rev() {
                    let cost = best[need.saturating_sub(item.gain as usize)] + item.cost;
                    if cost < best[need] {
                        best[need] = cost;
                        taken[need] = true;
                    }
                }
            }
            return taken;
        };
        let rows = most as usize;
        let mut taken = vec![false; self.items.len() * rows * width];
        // The least costs if at most 0, 1, ... are used up.
        let mut costs = vec![best.clone(); rows + 1];
        for (index, item) in self.items.iter().enumerate() {
            let uses = item.uses as usize;
            for row in (uses.max(1)..=rows).rev() {
                let (fewer, more) = costs.split_at_mut(row);
                let (fewer, more) = (&fewer[row - uses.max(1)], &mut more[0]);
                let taken = &mut taken[(index * rows + row - 1) * width..][..width];
                for need in (1..width).rev() {
                    let cost = fewer[need.saturating_sub(item.gain as usize)] + item.cost;
                    if cost < more[need] {
                        more[need] = cost;
                        taken[need] = true;
                    }
                }
            }
        }
        if let Some(last) = costs.pop() {
            *best = last;
        }
        taken
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // Costs are whole numbers.
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn items() -> impl Strategy<Value = Vec<Item>> {
        let item = (1u32..9, 0u32..40, prop::option::of(0usize..3), 1u32..4);
        prop::collection::vec(item, 1..10).prop_map(|items| {
            let item = |(job, (gain, cost, group, uses))| Item {
                job,
                gain,
                cost: f64::from(cost),
                group,
                uses,
            };
            items.into_iter().enumerate().map(item).collect()
        })
    }

    proptest! {
        /// The cover found is one, keeps to the budgets and costs what the cheapest of all subsets costs; its relaxation costs
        /// no more.
        #[test]
        fn as_all_subsets(
            items in items(),
            need in 0u32..30,
            budgets in prop::collection::vec(0u32..7, 3),
        ) {
            let of = |set: u32| items.iter().filter(move |item| set >> item.job & 1 == 1);
            let keeps = |set: u32| (0..3).all(|group| {
                let of_group = of(set).filter(|item| item.group == Some(group));
                of_group.map(|item| item.uses).sum::<u32>() <= budgets[group]
            });
            let gain = |set: u32| of(set).map(|item| item.gain).sum::<u32>();
            let cost = |set: u32| of(set).map(|item| item.cost).sum::<f64>();
            let covers = (0..1u32 << items.len()).filter(|&set| gain(set) >= need && keeps(set));
            let least = covers.map(cost).fold(f64::INFINITY, f64::min);
            let (found, chosen) = cheapest(&items, need, &budgets, items.len()).unwrap();
            prop_assert_eq!(found, least);
            if found.is_finite() {
                let set = chosen.iter().fold(0, |set, job| set | 1 << job);
                prop_assert!(gain(set) >= need && keeps(set));
                prop_assert!((cost(set) - least).abs() < 1e-9);
            }
            let mut ordered = items.clone();
            by_ratio(&mut ordered);
            prop_assert!(relaxed(&ordered, need, |_| true).cost <= least + 1e-9);
        }
    }
}
