//! What a site policy is, and how it is asked.

use topolane_fabric::NodeIndex;

use super::Program;
use super::arrangement::Arrangement;
use super::standing::predicted_now;
use super::wan::Wan;
use super::worth::{Judgement, Terms, Worth};
use topolane_placement::Occupancy;

/// A rule that chooses sites for all programs. Pure: the same question gets the same answer.
pub trait SitePolicy: Send + Sync {
    /// The name it is registered under.
    fn name(&self) -> &str;

    /// Puts every program of the arrangement where it is to run. Those that run now stay on the arrangement; those that arrive
    /// are placed in their order, as far as they fit.
    fn choose(&self, arrangement: &mut Arrangement<'_>, worth: &Worth<'_>);
}

/// Where a program is to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// A node for every guest, in their order; empty for a program that arrives and does not fit now.
    pub nodes: Vec<NodeIndex>,
    /// What that brings.
    pub judgement: Judgement,
}

/// Asks a policy where all programs are to run, those that run and, in their order, those that arrive.
/// The cuts and the computing are as measured where the programs run now; the occupancy is of everybody else.
pub fn choose_sites(
    policy: &dyn SitePolicy,
    programs: &[Program],
    occupancy: &Occupancy,
    wan: &Wan,
    terms: &Terms,
) -> Vec<Moved> {
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
    each.map(|(program, judgement)| Moved { nodes: arrangement.nodes(program), judgement })
        .collect()
}
