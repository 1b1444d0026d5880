//! RAM managers. A manager is one file here and one line in the list below.

mod foreign;

use crate::ram::{Desk, Destage};
use flashwright_block::registry::{PolicySettings, policies};
use flashwright_block::{Nanos, RequestKind, Seed};
use flashwright_ftl::{Flash, LpnRun, MapCacheView, OutOfSpace, Scheme, Violation, Watch};
use flashwright_nand::Lpn;

/// The parameters that a manager is built with.
#[derive(Clone, Copy, Debug)]
pub struct RamContext {
    /// Pages that the RAM holds, without those that tables take under `ram.charge-metadata`.
    pub pages: u32,
    /// Bytes of data in a page.
    pub page_bytes: u64,
    /// Pages of an erase block: the size of a group.
    pub pages_per_block: u32,
    /// Pages that the drive offers to the host.
    pub logical_pages: u32,
    /// The cached mapping table of the translation layer, if it has one.
    pub map_cache: Option<MapCacheView>,
    /// Array time of a page read.
    pub read: Nanos,
    /// Array time of a page program.
    pub program: Nanos,
    /// Whether the managers' own tables are deducted from the RAM. [`RamManager::METADATA_BYTES`] is deducted already.
    pub charged: bool,
    /// The seed of the run.
    pub seed: Seed,
}

impl RamContext {
    /// Pages that can ever be held at once: no more than the host can name, however large the RAM is.
    #[must_use]
    pub fn pages_held_max(&self) -> u32 {
        self.pages.min(self.logical_pages)
    }

    /// The context with this many bytes of RAM less.
    #[must_use]
    pub fn less(self, bytes: u64) -> Self {
        let pages = u32::try_from(bytes.div_ceil(self.page_bytes)).unwrap_or(u32::MAX);
        Self { pages: self.pages.saturating_sub(pages), ..self }
    }
}

/// The state that a manager may read when it decides.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The translation layer below.
    pub scheme: &'a Scheme,
    /// The flash.
    pub flash: &'a Flash,
}

/// A page that leaves the RAM alone.
#[derive(Clone, Copy, Debug)]
pub struct Leaves {
    /// Its slot.
    pub slot: u32,
    /// The page.
    pub lpn: Lpn,
    /// Whether it is newer than its copy on flash.
    pub dirty: bool,
}

/// Keeps the tables of the pages in RAM and chooses what to evict.
///
/// The caller makes room before it hands in a page that is not held, so `take_in` never meets a full RAM.
pub trait RamManager: Sized {
    /// The name that users choose it by.
    const NAME: &'static str;
    /// One-line description, with its source.
    const ABOUT: &'static str;
    /// Whether it often evicts what came in last, so that hints of coming pages are worth passing to flash.
    const LETS_GO_NEW: bool = false;
    /// Upper bound on the bytes of the manager's own tables per held page, which `ram.charge-metadata` deducts.
    const METADATA_BYTES: u64;
    /// Settings that it needs under certain schemes: name of the scheme, key and value.
    const NEEDS: &'static [(&'static str, &'static str, &'static str)] = &[];
    /// Its settings.
    type Settings: PolicySettings;

    /// Validation errors of its settings: one line for each problem, with the key and what to change.
    fn problems(settings: &Self::Settings, context: &RamContext) -> Vec<String> {
        let _ = (settings, context);
        Vec::new()
    }
    /// Builds it for empty RAM.
    fn new(settings: &Self::Settings, context: RamContext) -> Self;

    /// The counts that it needs from the translation layer.
    fn watch(&self) -> Watch {
        Watch::default()
    }
    /// Whether pages read from flash are kept as well (a cache), or only written ones (a write buffer).
    fn keeps_reads(&self) -> bool {
        false
    }
    /// Pages that it may hold now.
    fn capacity(&self) -> u32;
    /// Entries of the cached mapping table that it leaves room for; none if it does not share the RAM with the table.
    fn map_entries(&self) -> Option<u32> {
        None
    }
    /// Pages that it holds.
    fn pages(&self) -> u32;
    /// Whether a page is held, and then whether it is newer than its copy on flash. No side effects.
    fn is_dirty(&self, lpn: Lpn) -> Option<bool>;
    /// Warms the CPU cache for a page that the host is about to name.
    #[inline]
    fn expect(&self, lpn: Lpn) {
        let _ = lpn;
    }
    /// The host writes a page: if it is held it is overwritten in place. Returns whether it is.
    fn overwrite(&mut self, lpn: Lpn) -> bool;
    /// A page that is not held is added: written by the host (dirty), or read from flash.
    fn take_in(&mut self, lpn: Lpn, dirty: bool);
    /// The host reads a page. Returns whether it is held.
    fn read(&mut self, lpn: Lpn) -> bool;
    /// Chooses what to evict next, at least one page. It stays until [`RamManager::remove`] or [`RamManager::left`] is
    /// called, because a worn-out flash may refuse it.
    fn choose(&mut self, view: View, out: &mut Destage);
    /// The page that leaves next, where a manager lets go of one page at a time and needs no view for it: what
    /// [`RamManager::choose`] would name, at the cost of no list. It stays until [`RamManager::left_alone`].
    #[inline]
    fn leaves_alone(&self) -> Option<Leaves> {
        None
    }
    /// The page of [`RamManager::leaves_alone`] has left this slot.
    #[inline]
    fn left_alone(&mut self, slot: u32) {
        let _ = slot;
    }
    /// A page leaves: it was trimmed, or written bypassing the RAM. Returns whether it was held.
    fn remove(&mut self, lpn: Lpn) -> bool;
    /// The chosen pages have left.
    fn left(&mut self, out: &Destage) {
        for lpn in out.pages.iter().chain(&out.dropped) {
            self.remove(Lpn(*lpn));
        }
    }
    /// Appends the pages newer than their copies on flash, in ascending order.
    fn dirty_pages(&self, out: &mut Vec<u32>);
    /// A page that stays in RAM was written to flash. Called only for caches, for all pages of `dirty_pages` together.
    fn cleaned(&mut self, lpn: Lpn) {
        let _ = lpn;
    }
    /// The slot that will probably leave after this one, or next if none is given, with a page of it, where that is known at no
    /// cost: a hint to prefetch its map. A slot that was named before may have left or moved since.
    #[inline]
    fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
        let _ = slot;
        None
    }
    /// A request of the host has ended. Returns whether the share of the mapping table has changed.
    #[inline]
    fn request_done(&mut self, kind: RequestKind, run: LpnRun, view: View) -> bool {
        let _ = (kind, run, view);
        false
    }
    /// Figures of this manager alone, by name with the unit last.
    fn figures(&self) -> Vec<(String, f64)> {
        Vec::new()
    }
    /// Sets the counts of [`RamManager::figures`] to zero; the state stays.
    fn reset_figures(&mut self) {}
    /// Compares its tables with each other and appends contradictions.
    fn audit(&self, violations: &mut Vec<Violation>);
}

macro_rules! managers {
    ($($module:ident :: $manager:ident),+ $(,)?) => {
        policies! {
            key: "ram.manager", trait: RamManager, names: ManagerName, settings: ManagerSettings, running: Manager,
            context: RamContext, foreign: ForeignManager;
            $($module::$manager),+
        }

        impl ManagerName {
            /// See [`RamManager::problems`].
            #[must_use]
            pub fn problems(self, settings: &ManagerSettings, context: &RamContext) -> Vec<String> {
                match self { $(ManagerName::$manager => $manager::problems(&settings.$module, context),)+ }
            }
            /// See [`RamManager::NEEDS`].
            #[must_use]
            pub fn needs(self) -> &'static [(&'static str, &'static str, &'static str)] {
                match self { $(ManagerName::$manager => $manager::NEEDS,)+ }
            }
            /// See [`RamManager::METADATA_BYTES`].
            #[must_use]
            pub fn metadata_bytes(self) -> u64 {
                match self { $(ManagerName::$manager => $manager::METADATA_BYTES,)+ }
            }
        }

        impl Manager {
            /// See [`RamManager::keeps_reads`].
            #[inline(always)]
            #[must_use]
            pub fn keeps_reads(&self) -> bool {
                match self {
                    $(Manager::$manager(manager) => manager.keeps_reads(),)+
                    Manager::Foreign(manager) => manager.keeps_reads(),
                }
            }
            /// Whether pages of a request come in; only a policy from outside says no.
            #[inline(always)]
            pub fn admits(&mut self, run: LpnRun, is_write: bool) -> bool {
                match self {
                    Manager::Foreign(manager) => manager.admits(run, is_write),
                    _ => true,
                }
            }
            /// See [`RamManager::LETS_GO_NEW`].
            #[inline(always)]
            #[must_use]
            pub fn lets_go_new(&self) -> bool {
                match self {
                    $(Manager::$manager(_) => $manager::LETS_GO_NEW,)+
                    Manager::Foreign(_) => true,
                }
            }
            /// See [`RamManager::watch`].
            #[must_use]
            pub fn watch(&self) -> Watch {
                match self {
                    $(Manager::$manager(manager) => manager.watch(),)+
                    Manager::Foreign(_) => Watch::default(),
                }
            }
            /// See [`RamManager::capacity`].
            #[inline(always)]
            #[must_use]
            pub fn capacity(&self) -> u32 {
                match self {
                    $(Manager::$manager(manager) => manager.capacity(),)+
                    Manager::Foreign(manager) => manager.capacity(),
                }
            }
            /// See [`RamManager::map_entries`].
            #[inline(always)]
            #[must_use]
            pub fn map_entries(&self) -> Option<u32> {
                match self {
                    $(Manager::$manager(manager) => manager.map_entries(),)+
                    Manager::Foreign(_) => None,
                }
            }
            /// See [`RamManager::pages`].
            #[inline(always)]
            #[must_use]
            pub fn pages(&self) -> u32 {
                match self {
                    $(Manager::$manager(manager) => manager.pages(),)+
                    Manager::Foreign(manager) => manager.pages(),
                }
            }
            /// See [`RamManager::is_dirty`].
            #[inline(always)]
            #[must_use]
            pub fn is_dirty(&self, lpn: Lpn) -> Option<bool> {
                match self {
                    $(Manager::$manager(manager) => manager.is_dirty(lpn),)+
                    Manager::Foreign(manager) => manager.is_dirty(lpn),
                }
            }
            /// See [`RamManager::expect`].
            #[inline(always)]
            pub fn expect(&self, lpn: Lpn) {
                match self {
                    $(Manager::$manager(manager) => manager.expect(lpn),)+
                    Manager::Foreign(_) => {},
                }
            }
            /// See [`RamManager::leaves_after`].
            #[inline(always)]
            #[must_use]
            pub fn leaves_after(&self, slot: Option<u32>) -> Option<(u32, Lpn)> {
                match self {
                    $(Manager::$manager(manager) => manager.leaves_after(slot),)+
                    Manager::Foreign(_) => None,
                }
            }
            /// See [`RamManager::dirty_pages`].
            #[inline(always)]
            pub fn dirty_pages(&self, out: &mut Vec<u32>) {
                match self {
                    $(Manager::$manager(manager) => manager.dirty_pages(out),)+
                    Manager::Foreign(manager) => manager.dirty_pages(out),
                }
            }
            /// See [`RamManager::figures`].
            #[inline(always)]
            #[must_use]
            pub fn figures(&self) -> Vec<(String, f64)> {
                match self {
                    $(Manager::$manager(manager) => manager.figures(),)+
                    Manager::Foreign(_) => Vec::new(),
                }
            }
            /// See [`RamManager::audit`].
            #[inline(always)]
            pub fn audit(&self, violations: &mut Vec<Violation>) {
                match self {
                    $(Manager::$manager(manager) => manager.audit(violations),)+
                    Manager::Foreign(manager) => manager.audit(violations),
                }
            }
            /// See [`RamManager::overwrite`].
            #[inline(always)]
            pub fn overwrite(&mut self, lpn: Lpn) -> bool {
                match self {
                    $(Manager::$manager(manager) => manager.overwrite(lpn),)+
                    Manager::Foreign(manager) => manager.overwrite(lpn),
                }
            }
            /// See [`Desk::write_page`].
            #[inline(always)]
            pub(crate) fn write_page(
                &mut self,
                desk: &mut Desk,
                lpn: Lpn,
                scheme: &mut Scheme,
                flash: &mut Flash,
            ) -> Result<(), OutOfSpace> {
                match self {
                    $(Manager::$manager(manager) => desk.write_page(manager, lpn, scheme, flash),)+
                    Manager::Foreign(_) => desk.write_page(self, lpn, scheme, flash),
                }
            }
            /// See [`RamManager::take_in`].
            #[inline(always)]
            pub fn take_in(&mut self, lpn: Lpn, dirty: bool) {
                match self {
                    $(Manager::$manager(manager) => manager.take_in(lpn, dirty),)+
                    Manager::Foreign(manager) => manager.take_in(lpn, dirty),
                }
            }
            /// See [`RamManager::read`].
            #[inline(always)]
            pub fn read(&mut self, lpn: Lpn) -> bool {
                match self {
                    $(Manager::$manager(manager) => manager.read(lpn),)+
                    Manager::Foreign(manager) => manager.read(lpn),
                }
            }
            /// See [`RamManager::choose`].
            #[inline(always)]
            pub fn choose(&mut self, view: View, out: &mut Destage) {
                match self {
                    $(Manager::$manager(manager) => manager.choose(view, out),)+
                    Manager::Foreign(manager) => manager.choose(view, out),
                }
            }
            /// See [`RamManager::remove`].
            #[inline(always)]
            pub fn remove(&mut self, lpn: Lpn) -> bool {
                match self {
                    $(Manager::$manager(manager) => manager.remove(lpn),)+
                    Manager::Foreign(manager) => manager.remove(lpn),
                }
            }
            /// See [`RamManager::left`].
            #[inline(always)]
            pub fn left(&mut self, out: &Destage) {
                match self {
                    $(Manager::$manager(manager) => manager.left(out),)+
                    Manager::Foreign(manager) => manager.left(out),
                }
            }
            /// See [`RamManager::cleaned`].
            #[inline(always)]
            pub fn cleaned(&mut self, lpn: Lpn) {
                match self {
                    $(Manager::$manager(manager) => manager.cleaned(lpn),)+
                    Manager::Foreign(manager) => manager.cleaned(lpn),
                }
            }
            /// See [`RamManager::request_done`].
            #[inline(always)]
            pub fn request_done(&mut self, kind: RequestKind, run: LpnRun, view: View) -> bool {
                match self {
                    $(Manager::$manager(manager) => manager.request_done(kind, run, view),)+
                    Manager::Foreign(_) => false,
                }
            }
            /// See [`RamManager::reset_figures`].
            #[inline(always)]
            pub fn reset_figures(&mut self) {
                match self {
                    $(Manager::$manager(manager) => manager.reset_figures(),)+
                    Manager::Foreign(_) => {},
                }
            }
        }
    };
}

pub use ap::ApSettings;
pub use foreign::{BufferRules, ChooseLeaving, ForeignManager, HeldGroups, MakeManager};
pub use gc_arm::{BlockDestage, GcArmSettings, Randomness, Tie};
pub use pud_lru::BlockUpdates;

managers! {
    fifo::Fifo,
    lru::Lru,
    cflru::Cflru,
    fab::Fab,
    bplru::Bplru,
    pud_lru::PudLru,
    ap::Ap,
    gc_arm::GcArm,
}
