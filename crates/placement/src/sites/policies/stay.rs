use crate::sites::board::Board;
use crate::sites::policy::SitePolicy;
use crate::sites::worth::Worth;

/// Without a manager: nobody moves, and who arrives fills the sites in their order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stay;

impl SitePolicy for Stay {
    fn name(&self) -> &'static str {
        "stay"
    }

    fn choose(&self, board: &mut Board<'_>, _: &Worth<'_>) {
        for program in 0..board.programs().len() {
            if board.now(program).is_empty() {
                let sites = board.allowed(program);
                let seats = board.filled(program, &sites).unwrap_or_default();
                board.put(program, seats);
            }
        }
    }
}
