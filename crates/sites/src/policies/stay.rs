use crate::arrangement::Arrangement;
use crate::policy::SitePolicy;
use crate::worth::Worth;

/// The baseline without a manager: no program moves, and new ones fill the sites in order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stay;

impl SitePolicy for Stay {
    fn name(&self) -> &'static str {
        "stay"
    }

    fn choose(&self, arrangement: &mut Arrangement<'_>, _: &Worth<'_>) {
        for program in 0..arrangement.programs().len() {
            if arrangement.now(program).is_empty() {
                let sites = arrangement.allowed(program);
                let seats = arrangement.filled(program, &sites, 0.0).unwrap_or_default();
                arrangement.put(program, seats);
            }
        }
    }
}
