//! What the code that carries out a manager's decisions asks of it for a page: of a manager known by type, so that all its answers
//! are compiled into one function, or of any.

use crate::Destage;
use crate::managers::{Leaves, Manager, RamManager, View};
use flashwright_nand::Lpn;

/// See [`RamManager`] for each function.
pub(crate) trait AtWork {
    fn capacity(&self) -> u32;
    fn pages(&self) -> u32;
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)>;
    fn overwrite(&mut self, lpn: Lpn) -> bool;
    fn take_in(&mut self, lpn: Lpn, dirty: bool);
    fn leaves_alone(&self) -> Option<Leaves>;
    fn left_alone(&mut self, slot: u32);
    fn choose(&mut self, view: View, out: &mut Destage);
    fn left(&mut self, out: &Destage);
}

macro_rules! at_work {
    ($of:ident) => {
        #[inline(always)]
        fn capacity(&self) -> u32 {
            $of::capacity(self)
        }
        #[inline(always)]
        fn pages(&self) -> u32 {
            $of::pages(self)
        }
        #[inline(always)]
        fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
            $of::leaves_after(self, slot)
        }
        #[inline(always)]
        fn overwrite(&mut self, lpn: Lpn) -> bool {
            $of::overwrite(self, lpn)
        }
        #[inline(always)]
        fn take_in(&mut self, lpn: Lpn, dirty: bool) {
            $of::take_in(self, lpn, dirty);
        }
        #[inline(always)]
        fn choose(&mut self, view: View, out: &mut Destage) {
            $of::choose(self, view, out);
        }
        #[inline(always)]
        fn left(&mut self, out: &Destage) {
            $of::left(self, out);
        }
    };
}

impl<M: RamManager> AtWork for M {
    at_work!(RamManager);
    #[inline(always)]
    fn leaves_alone(&self) -> Option<Leaves> {
        RamManager::leaves_alone(self)
    }
    #[inline(always)]
    fn left_alone(&mut self, slot: u32) {
        RamManager::left_alone(self, slot);
    }
}

impl AtWork for Manager {
    at_work!(Manager);
    /// Every manager can name what leaves by [`RamManager::choose`].
    #[inline(always)]
    fn leaves_alone(&self) -> Option<Leaves> {
        None
    }
    #[inline(always)]
    fn left_alone(&mut self, _: u32) {}
}
