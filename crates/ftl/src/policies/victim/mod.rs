//! Victim policies: which sealed block to clean. A policy is one file here and one line in the list below.
//!
//! One instance serves one plane and identifies its blocks by their number within the plane. Blocks enter by
//! [`VictimPolicy::sealed`] when their last page is programmed and leave by [`VictimPolicy::removed`]. Ties go to the
//! block sealed first unless a policy states otherwise.

use crate::registry::{PolicySettings, policies};
use crate::{Flash, Listed};
use flashwright_block::Rng;
use flashwright_nand::{BlockId, Condition, Lpn};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod foreign;
mod scored;
mod sep;
#[cfg(test)]
mod tests;

/// The parameters of the plane that a policy is built for.
#[derive(Clone, Debug)]
pub struct VictimContext {
    /// Blocks of the plane.
    pub blocks: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Placement streams, each with a frontier.
    pub streams: u8,
    /// Pages that the drive offers to the host.
    pub logical_pages: u32,
    /// Its own random stream.
    pub rng: Rng,
}

/// The blocks of one plane, read-only.
#[derive(Clone, Copy)]
pub struct PlaneView<'a> {
    flash: &'a Flash,
    first_block: BlockId,
}

impl<'a> PlaneView<'a> {
    pub(crate) fn new(flash: &'a Flash, first_block: BlockId) -> Self {
        Self { flash, first_block }
    }

    /// Valid pages of a block.
    #[inline]
    #[must_use]
    pub fn pages_valid(&self, block: u32) -> u32 {
        self.flash.pages_valid(self.id(block))
    }
    /// Erases of a block.
    #[inline]
    #[must_use]
    pub fn erases(&self, block: u32) -> u32 {
        self.flash.nand().erases(self.id(block))
    }
    /// Remaining erases of a block; none without a limit.
    #[must_use]
    pub fn cycles_left(&self, block: u32) -> Option<u32> {
        self.flash.nand().cycles_left(self.id(block))
    }
    /// The placement stream for which a block was opened.
    #[inline]
    #[must_use]
    pub fn stream_of(&self, block: u32) -> u8 {
        self.flash.stream_of(self.id(block))
    }
    /// The mean of [`PlaneView::cycles_left`] over all blocks of the drive; none without a limit.
    #[must_use]
    pub fn cycles_left_mean(&self) -> Option<f64> {
        let spent = self.flash.counters().total(crate::OpKind::Erase) as f64;
        let blocks = f64::from(self.flash.geometry().blocks());
        self.flash.nand().cycles_mean().map(|cycles| cycles - spent / blocks)
    }
    /// The clock of ages: host page writes so far.
    #[inline]
    #[must_use]
    pub fn now(&self) -> u64 {
        self.flash.host_writes()
    }
    /// The logical pages that the valid pages of a block hold, in page order.
    pub fn owners(&self, block: u32) -> impl Iterator<Item = Lpn> {
        self.flash.valid_pages(self.id(block)).filter_map(|ppn| self.flash.nand().spare(ppn))
    }
    /// The state of a block that is not sealed.
    #[cold]
    fn unsealed_state(&self, block: u32) -> &'static str {
        let nand = self.flash.nand();
        match nand.condition(self.id(block)) {
            Condition::FactoryBad => "bad since the factory",
            Condition::System => "set apart for the journal",
            Condition::Retired => "worn out",
            Condition::Good if nand.next_page(self.id(block)) == 0 => "free",
            Condition::Good => "open",
        }
    }
    fn id(&self, block: u32) -> BlockId {
        BlockId(self.first_block.0 + block)
    }
}

/// Chooses victims among the sealed blocks of one plane.
pub trait VictimPolicy: Sized {
    /// The name that users choose it by.
    const NAME: &'static str;
    /// One-line description, with its source.
    const ABOUT: &'static str;
    /// Whether it always chooses a block with the fewest valid pages, so that a fully valid victim means that no block
    /// has an invalid page.
    const PICKS_FEWEST: bool = false;
    /// Settings for drives of a few blocks, where the defaults are for larger ones; tests of all policies use them.
    const SMALL: &'static [&'static str] = &[];
    /// Its settings.
    type Settings: PolicySettings;

    /// Builds it for one plane.
    fn new(settings: &Self::Settings, context: VictimContext) -> Self;
    /// The validation error of its settings for such a plane, if any: the setting's name, what was found and what is
    /// expected.
    fn problem(settings: &Self::Settings, context: &VictimContext) -> Option<String> {
        let _ = (settings, context);
        None
    }
    /// A block was filled and may be cleaned from now on.
    fn sealed(&mut self, block: u32, view: PlaneView);
    /// A page of a block became invalid; `pages_valid` are left. The block may be open: then the policy ignores it.
    #[inline(always)]
    fn invalidated(&mut self, block: u32, pages_valid: u32, view: PlaneView) {
        let _ = (block, pages_valid, view);
    }
    /// A block is being cleaned or retired, and is no longer a candidate.
    fn removed(&mut self, block: u32);
    /// Chooses the next victim; changes nothing but its own generator. None if no block is sealed.
    fn pick(&mut self, view: PlaneView) -> Option<u32>;
    /// The block that the next pick will probably choose, if that is known at no cost; only a hint.
    #[inline]
    fn likely_next(&self) -> Option<u32> {
        None
    }
    /// The number of blocks it knows; the audit compares this with the sealed blocks.
    fn candidates(&self) -> u32;
    /// Reference model: the victim that a search through all sealed blocks finds; none where the choice is random.
    #[cfg(test)]
    fn search(settings: &Self::Settings, history: &mut tests::History, view: PlaneView) -> Option<u32> {
        let _ = (settings, history, view);
        None
    }
}

/// Value of `gc.victim`: the name of a policy, or `"default"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VictimChoice {
    /// The policy that the translation layer's own source uses.
    #[default]
    Default,
    /// This one.
    Named(VictimName),
}

impl VictimChoice {
    const SCHEMES: &'static str = "default";

    /// The catalogue entry of `"default"`.
    #[must_use]
    pub fn listed_default() -> Listed {
        let about = "the policy of the translation layer's own source; greedy if it names none";
        Listed { key: "gc.victim", name: Self::SCHEMES, about }
    }
}

impl From<VictimName> for VictimChoice {
    fn from(name: VictimName) -> Self {
        Self::Named(name)
    }
}

impl Serialize for VictimChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Default => serializer.serialize_str(Self::SCHEMES),
            Self::Named(name) => serializer.serialize_str(name.listed().name),
        }
    }
}

flashwright_block::registry::text_schema!(VictimChoice, { "type": "string", "enum": VictimChoice::NAMES });

impl<'de> Deserialize<'de> for VictimChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == Self::SCHEMES {
            return Ok(Self::Default);
        }
        let named = VictimName::ALL.iter().find(|name| name.listed().name == text);
        named.map(|name| Self::Named(*name)).ok_or_else(|| serde::de::Error::unknown_variant(&text, Self::NAMES))
    }
}

macro_rules! victims {
    ($($module:ident :: $policy:ident),+ $(,)?) => {
        policies! {
            key: "gc.victim", trait: VictimPolicy, names: VictimName, settings: VictimSettings, running: Victim,
            context: VictimContext, foreign: ForeignVictim;
            $($module::$policy),+
        }

        impl VictimChoice {
            /// The accepted values.
            const NAMES: &[&str] = &[$($policy::NAME,)+ VictimChoice::SCHEMES];
        }

        impl VictimName {
            /// See [`VictimPolicy::SMALL`].
            #[must_use]
            pub fn small(self) -> &'static [&'static str] {
                match self { $(VictimName::$policy => $policy::SMALL,)+ }
            }
            /// See [`VictimPolicy::problem`]; with the key of the policy's table.
            #[must_use]
            pub fn problem(self, settings: &VictimSettings, context: &VictimContext) -> Option<String> {
                match self {
                    $(VictimName::$policy => $policy::problem(&settings.$module, context)
                        .map(|problem| format!("gc.{}.{problem}", $policy::NAME)),)+
                }
            }
            #[cfg(test)]
            fn search(self, settings: &VictimSettings, history: &mut tests::History, view: PlaneView) -> Option<u32> {
                match self { $(VictimName::$policy => $policy::search(&settings.$module, history, view),)+ }
            }
        }

        impl Victim {
            /// See [`VictimPolicy::sealed`].
            #[inline]
            pub fn sealed(&mut self, block: u32, view: PlaneView) {
                match self {
                    $(Victim::$policy(policy) => policy.sealed(block, view),)+
                    Victim::Foreign(policy) => policy.sealed(block, view),
                }
            }
            /// See [`VictimPolicy::invalidated`].
            ///
            /// Greedy's is inlined, the others' are not; DFTL's has a function of its own, which saves no registers for theirs.
            #[inline(always)]
            pub fn invalidated(&mut self, block: u32, pages_valid: u32, view: PlaneView) {
                if let Victim::Greedy(policy) = self {
                    policy.invalidated(block, pages_valid, view);
                } else if let Victim::CostBenefit(policy) = self {
                    policy.invalidated_called(block, pages_valid, view);
                } else {
                    self.invalidated_called(block, pages_valid, view);
                }
            }
            #[inline(never)]
            fn invalidated_called(&mut self, block: u32, pages_valid: u32, view: PlaneView) {
                match self {
                    $(Victim::$policy(policy) => policy.invalidated(block, pages_valid, view),)+
                    Victim::Foreign(policy) => policy.invalidated(block, pages_valid, view),
                }
            }
            /// See [`VictimPolicy::removed`].
            pub fn removed(&mut self, block: u32) {
                match self {
                    $(Victim::$policy(policy) => policy.removed(block),)+
                    Victim::Foreign(policy) => policy.removed(block),
                }
            }
            /// See [`VictimPolicy::pick`].
            #[inline]
            pub fn pick(&mut self, view: PlaneView) -> Option<u32> {
                match self {
                    $(Victim::$policy(policy) => policy.pick(view),)+
                    Victim::Foreign(policy) => policy.pick(view),
                }
            }
            /// See [`VictimPolicy::likely_next`].
            #[inline]
            #[must_use]
            pub fn likely_next(&self) -> Option<u32> {
                match self {
                    $(Victim::$policy(policy) => policy.likely_next(),)+
                    Victim::Foreign(_) => None,
                }
            }
            /// See [`VictimPolicy::PICKS_FEWEST`].
            #[must_use]
            pub fn picks_fewest(&self) -> bool {
                match self {
                    $(Victim::$policy(_) => $policy::PICKS_FEWEST,)+
                    Victim::Foreign(_) => false,
                }
            }
            /// See [`VictimPolicy::candidates`].
            #[must_use]
            pub fn candidates(&self) -> u32 {
                match self {
                    $(Victim::$policy(policy) => policy.candidates(),)+
                    Victim::Foreign(policy) => policy.candidates(),
                }
            }
        }
    };
}

victims! {
    greedy::Greedy,
    fifo::Fifo,
    random::Random,
    cost_benefit::CostBenefit,
    windowed_greedy::WindowedGreedy,
    d_choices::DChoices,
    cat::Cat,
    age_threshold::AgeThreshold,
    partition_fifo::PartitionFifo,
    container_marking::ContainerMarking,
}

pub use age_threshold::AgeThresholdSettings;
pub use cat::CatSettings;
pub use container_marking::{ContainerMarkingSettings, Rotate, Window};
pub use d_choices::DChoicesSettings;
pub use foreign::{Choosing, ForeignVictim, MakeVictim, PickVictim, SealedBlocks};
pub use random::RandomSettings;
pub use scored::{BlockKinds, Reads, ScoreBlocks};
pub use windowed_greedy::WindowedGreedySettings;

/// The validation error of a window or a number of choices larger than a plane.
fn blocks_problem(name: &str, found: u32, context: &VictimContext) -> Option<String> {
    (found == 0 || found > context.blocks)
        .then(|| format!("{name}: found {found}, expected 1 to {}, the blocks of a plane", context.blocks))
}
