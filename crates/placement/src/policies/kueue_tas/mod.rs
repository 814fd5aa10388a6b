//! Kueue's topology-aware scheduling, as of 0.15.2.

mod levels;
mod rule;

use crate::{Choice, FreeSlots, Homes, Level, Occupancy, Policy, Refusal, Request, Traits, Within};
use levels::Levels;
use rule::{Rule, Wanted};

/// Which groups go first: Kueue's feature gates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// The least free for requests without constraint, else those with most room: the default of 0.15.
    #[default]
    Mixed,
    /// Those with most room, and the tightest for what is left: `TASProfileMixed=false`.
    BestFit,
    /// The least free: `TASProfileLeastFreeCapacity=true`.
    LeastFree,
}

/// The rule of Kueue's topology-aware scheduling, rebuilt from what Kueue 0.15.2 does: in one group of the level that the
/// request names ([`Within`]) or of a higher one, in slices if it has segments, in as few groups of each level as a greedy
/// choice finds. A request that names no level is one that prefers a domain, or a leaf.
///
/// Kueue's order of groups is that of their names; here it is that of their indices.
#[derive(Debug, Clone, Copy, Default)]
pub struct KueueTas {
    /// Which groups go first.
    pub profile: Profile,
}

impl KueueTas {
    /// What a request asks for; a refusal if it names levels that the machine has not, or if there are too few slices for it. If
    /// there are enough and it requires no one group, it has a place.
    fn wanted<'a>(
        request: &Request,
        free: &'a FreeSlots<'a>,
    ) -> Result<(Levels<'a>, Wanted), Refusal> {
        let levels = Levels::of(free);
        let never = Refusal::Never { wanted: request.nodes, most: 0 };
        let wanted = wanted(request, &levels).ok_or(never)?;
        let slices = levels.slices(wanted.slice);
        if !wanted.required && slices < wanted.slices() {
            let free = slices * wanted.slice.0;
            return Err(Refusal::NotNow { wanted: request.nodes, free });
        }
        Ok((levels, wanted))
    }

    /// The rule for a request.
    fn rule<'a>(self, request: &Request, free: &'a FreeSlots<'a>) -> Result<Rule<'a>, Refusal> {
        let (levels, wanted) = Self::wanted(request, free)?;
        let least_free = match self.profile {
            Profile::Mixed => wanted.stays,
            Profile::BestFit => false,
            Profile::LeastFree => true,
        };
        Ok(Rule::new(levels, wanted, least_free))
    }
}

/// What a request asks for on a machine; `None` if it names a level that is not there,
/// or one of slices above that of all of it.
fn wanted(request: &Request, levels: &Levels<'_>) -> Option<Wanted> {
    let slots = request.nodes;
    let slice = match request.segment {
        None => (1, 0),
        Some(size) => {
            let level =
                request.segment_level.map_or(Some(levels.of_domains()), |of| levels.number(of));
            (size.clamp(1, slots.max(1)), level?)
        }
    };
    let (level, required) = match request.within {
        Within::Unsaid => (levels.of_domains().max(slice.1), false),
        Within::Anywhere if request.segment.is_some() => (levels.top().max(slice.1), false),
        Within::Anywhere => (0, false),
        Within::Preferred(level) => (levels.number(level)?, false),
        Within::Required(level) => (levels.number(level)?, true),
    };
    let stays = request.within == Within::Anywhere;
    (level >= slice.1).then_some(Wanted { slots, slice, level, stays, required })
}

impl Policy for KueueTas {
    fn name(&self) -> &'static str {
        match self.profile {
            Profile::Mixed => "kueue-tas",
            Profile::BestFit => "kueue-tas-best-fit",
            Profile::LeastFree => "kueue-tas-least-free",
        }
    }

    fn traits(&self) -> Traits {
        Traits { depends_only_on_size: true, ..Traits::NONE }
    }

    fn reads_within(&self) -> bool {
        true
    }

    /// Requests without slices that require no level: those that find no group take several.
    fn counts_only(&self, request: &Request) -> bool {
        request.segment.is_none() && matches!(request.within, Within::Unsaid | Within::Anywhere)
    }

    fn homes(&self, request: &Request, occupancy: &Occupancy) -> Option<Homes> {
        let fabric = occupancy.fabric();
        if let Within::Required(level) = request.within {
            return Homes::of_level(fabric, level, request.nodes);
        }
        let lowest = if fabric.domains() > 0 { Level::Domain } else { Level::Tree(1) };
        let level = request.segment_level.unwrap_or(lowest);
        Homes::of_level(fabric, level, request.segment?.min(request.nodes))
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let nodes = self.rule(request, free)?.nodes();
        nodes.map(Choice::nodes).map_err(|free| Refusal::NotNow { wanted: request.nodes, free })
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<(), Refusal> {
        let (_, wanted) = Self::wanted(request, free)?;
        if !wanted.required {
            return Ok(());
        }
        let fit = self.rule(request, free)?.fit();
        fit.map(drop).map_err(|free| Refusal::NotNow { wanted: request.nodes, free })
    }
}
