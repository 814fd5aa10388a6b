use crate::queue::{Pass, Queue};
use crate::view::View;

/// In order of the queue; the first that cannot start stops the pass.
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
