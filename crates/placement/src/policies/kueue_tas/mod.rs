//! Kueue's topology-aware scheduling, as of 0.15.2.

mod levels;
mod rule;

use crate::{Choice, FreeSlots, Homes, Level, Occupancy, Policy, Refusal, Request, Traits, Within};
use levels::KueueLevels;
use rule::{KueueRule, Wanted};

/// The order in which groups are tried, set by Kueue's feature gates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KueueProfile {
    /// Requests without constraint take groups with least free capacity first, others those with most: the default of
    /// 0.15.
    #[default]
    Mixed,
    /// Groups with most free capacity first; the tightest group for the rest: `TASProfileMixed=false`.
    BestFit,
    /// Groups with least free capacity first: `TASProfileLeastFreeCapacity=true`.
    LeastFree,
}

/// Kueue's topology-aware scheduling, rebuilt from the behaviour of Kueue 0.15.2. A request goes into one group of the
/// level that it names ([`Within`]) or of a higher level. If it has segments, it goes there in slices. At each level it
/// uses as few groups as a greedy choice finds. A request that names no level prefers a domain, or a leaf on machines
/// without domains.
///
/// Kueue orders equal groups by name; here they are ordered by index.
#[derive(Debug, Clone, Copy, Default)]
pub struct KueueTas {
    /// The order in which groups are tried.
    pub profile: KueueProfile,
}

impl KueueTas {
    /// What a request asks for. Refuses a request that names levels the machine does not have, or for which there are
    /// too few slices. If this succeeds and the request does not require one group, it has a placement.
    fn wanted<'a>(
        request: &Request,
        free: &'a FreeSlots<'a>,
    ) -> Result<(KueueLevels<'a>, Wanted), Refusal> {
        let levels = KueueLevels::of(free);
        let never = Refusal::Never { wanted: request.nodes, most: 0 };
        let wanted = wanted(request, &levels).ok_or(never)?;
        let slices = levels.slices(wanted.slice);
        if !wanted.required && slices < wanted.slices() {
            let free = slices * wanted.slice.0;
            return Err(Refusal::NotNow { wanted: request.nodes, free });
        }
        Ok((levels, wanted))
    }

    /// The rule for one request.
    fn rule<'a>(
        self,
        request: &Request,
        free: &'a FreeSlots<'a>,
    ) -> Result<KueueRule<'a>, Refusal> {
        let (levels, wanted) = Self::wanted(request, free)?;
        let least_free = match self.profile {
            KueueProfile::Mixed => wanted.stays,
            KueueProfile::BestFit => false,
            KueueProfile::LeastFree => true,
        };
        Ok(KueueRule::new(levels, wanted, least_free))
    }
}

/// What a request asks for on a machine; `None` if it names a level that the machine does not have, or a level for
/// slices above its own level.
fn wanted(request: &Request, levels: &KueueLevels<'_>) -> Option<Wanted> {
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
            KueueProfile::Mixed => "kueue-tas",
            KueueProfile::BestFit => "kueue-tas-best-fit",
            KueueProfile::LeastFree => "kueue-tas-least-free",
        }
    }

    fn traits(&self) -> Traits {
        Traits { depends_only_on_size: true, ..Traits::NONE }
    }

    fn reads_within(&self) -> bool {
        true
    }

    /// True for requests without slices that require no level: if no group holds them, they take several.
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
