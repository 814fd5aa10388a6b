use crate::queue::{Pass, Queue};
use crate::view::View;

/// First come, first served: starts jobs in queue order and stops at the first that cannot start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fcfs;

impl Queue for Fcfs {
    fn name(&self) -> &'static str {
        "fcfs"
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        for index in 0..view.waiting.len() {
            if !view.is_visible(index) {
                continue;
            }
            if let Err(refusal) = view.start_widest(index) {
                let refusal = Some((view.waiting[index].request.id, refusal));
                return Pass { refusal, ..Pass::default() };
            }
        }
        Pass::default()
    }
}
