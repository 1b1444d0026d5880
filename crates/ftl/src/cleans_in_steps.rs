//! What a translation layer does beside requests: cleaning in steps.

use crate::{Flash, Ftl, Occasion, Progress};
use flashwright_block::Nanos;
use flashwright_nand::{BlockId, PlaneId};

/// A translation layer that may clean when no write waits for it. Every scheme implements it; by the default methods, which those
/// that merge keep, it has nothing to do.
pub trait CleansInSteps: Ftl {
    /// Makes up to `budget` steps of cleaning that no write waits for: pages copied, pages of a map written, blocks
    /// erased. One call works on one block of one plane and may leave it unfinished: between two calls the host may do
    /// anything. A scheme that may not stop half-way makes more steps. It cleans only victims that gain something.
    fn clean(&mut self, budget: u32, flash: &mut Flash) -> Progress {
        let _ = (budget, flash);
        Progress::Nothing
    }

    /// Performs the cleaning steps that `gc.schedule` requests in a plane on an occasion.
    fn follow_schedule(&mut self, plane: PlaneId, occasion: Occasion, flash: &mut Flash) -> Progress {
        let _ = (plane, occasion, flash);
        Progress::Nothing
    }

    /// Cleans a block so that its data are written again, because reads find too many errors there.
    fn rewrite(&mut self, block: BlockId, flash: &mut Flash) -> Progress {
        let _ = (block, flash);
        Progress::Nothing
    }

    /// Makes up to `budget` steps of folding in a plane that no write waits for: of paused work, else of the oldest full
    /// block of the SLC cache. Where folding lacks free blocks, it cleans. Does nothing once no block is left to fold.
    fn fold(&mut self, plane: PlaneId, budget: u32, flash: &mut Flash) -> Progress {
        let _ = (plane, budget, flash);
        Progress::Nothing
    }

    /// Reports the planes that the host wrote to since the last call: the plane, its pages, and the minimum duration that the
    /// schedule demands of such a write. Reports nothing if the schedule is not consulted.
    fn written_planes(&mut self, note: &mut dyn FnMut(PlaneId, u32, Nanos)) {
        let _ = note;
    }
}
