use crate::queue::{Pass, Queue};
use crate::view::View;

/// Starts every job at its begin time if its nodes are free. No job blocks another. A driver that sets begin times from
/// a log uses it to replay what really happened.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordedStarts;

impl Queue for RecordedStarts {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let mut pass = Pass::default();
        for index in 0..view.waiting.len() {
            if view.is_visible(index)
                && let Err(refusal) = view.place_and_start(index)
            {
                pass.refusal.get_or_insert((view.waiting[index].request.id, refusal));
            }
        }
        pass
    }
}
