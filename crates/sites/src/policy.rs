//! The interface of site policies.

use topolane_fabric::NodeIndex;

use super::Program;
use super::arrangement::Arrangement;
use super::standing::predicted_now;
use super::wan::WanRoutes;
use super::worth::{Judgement, Terms, Worth};
use topolane_placement::Occupancy;

/// A policy that chooses sites for all programs. It is pure: the same question gets the same answer.
pub trait SitePolicy: Send + Sync {
    /// The name under which it is registered.
    fn name(&self) -> &str;

    /// Puts every program of the arrangement where it should run. Running programs must stay placed. New ones are
    /// placed in their order, as far as they fit.
    fn choose(&self, arrangement: &mut Arrangement<'_>, worth: &Worth<'_>);
}

/// Where a program should run.
#[derive(Debug, Clone, PartialEq)]
pub struct MovedProgram {
    /// A node for every guest, in their order; empty for a new program that does not fit now.
    pub nodes: Vec<NodeIndex>,
    /// The gains and costs of the choice.
    pub judgement: Judgement,
}

/// Asks a policy where all programs should run: running ones and, in their order, new ones. Cuts and computing times
/// must be as measured where the programs run now. `occupancy` has all other guests.
pub fn choose_sites(
    policy: &dyn SitePolicy,
    programs: &[Program],
    occupancy: &Occupancy,
    wan: &WanRoutes,
    terms: &Terms,
) -> Vec<MovedProgram> {
    let measured = Arrangement::new(programs, occupancy, wan);
    let each = programs.iter().zip(predicted_now(&measured)).enumerate();
    let undisturbed: Vec<Program> = each
        .map(|(index, (program, lost))| {
            program.undisturbed(lost, measured.slowest(measured.now(index)))
        })
        .collect();
    let mut arrangement = Arrangement::new(&undisturbed, occupancy, wan);
    let worth = Worth::new(&arrangement, terms);
    policy.choose(&mut arrangement, &worth);
    let each = worth.judge(&arrangement).into_iter().enumerate();
    each.map(|(program, judgement)| MovedProgram { nodes: arrangement.nodes(program), judgement })
        .collect()
}
