use super::place_all::{descending, gathered, place_all, quickest};
use crate::arrangement::Arrangement;
use crate::policy::SitePolicy;
use crate::predict::Path;
use crate::worth::Worth;

/// The complete policy of 2007. Programs that communicate a lot go to a single site; then those that compute a lot get
/// the fastest remaining hosts on any site. Within each kind, programs are in the order of the traffic between their
/// halves. The paper gives no threshold. Here a program communicates a lot if being on one site, compared with halves
/// over the worst route, saves it at least as much as the fastest hosts compared with the slowest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Paper;

impl SitePolicy for Paper {
    fn name(&self) -> &'static str {
        "paper"
    }

    fn choose(&self, arrangement: &mut Arrangement<'_>, worth: &Worth<'_>) {
        let programs = arrangement.programs();
        let communicates: Vec<bool> =
            (0..programs.len()).map(|program| communicates(arrangement, program)).collect();
        let mut order = descending(programs.len(), |program| programs[program].cut.bytes);
        order.sort_by_key(|&program| !communicates[program]);
        place_all(arrangement, worth, &order, |arrangement, program| {
            let place = if communicates[program] { gathered } else { quickest };
            place(arrangement, program)
        });
    }
}

fn communicates(arrangement: &Arrangement<'_>, index: usize) -> bool {
    let (program, wan) = (&arrangement.programs()[index], arrangement.wan());
    let sites = arrangement.allowed(index);
    let ways = sites.iter().flat_map(|&a| sites.iter().map(move |&b| (a, b)));
    let over = |(a, b)| {
        let (latency, bandwidth) = (wan.latency(a, b), wan.narrowest(a, b));
        program.cut.loss(Path { latency, bandwidth, window: wan.window() })
    };
    let worst = ways.filter(|(a, b)| a != b).map(over).fold(0.0, f64::max);
    let (slowest, fastest) = arrangement.speeds();
    worst * program.correction.unwrap_or(1.0) >= program.slower(slowest) - program.slower(fastest)
}
