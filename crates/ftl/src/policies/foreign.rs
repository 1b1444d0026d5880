//! Policies from outside, on no list: values that a user hands over when a drive is built, such as one written in Python.
//!
//! A list's policy is known when the simulator is compiled and is called for each page; a foreign one is a boxed object
//! that is asked only where there is something to decide, over tables that the seam keeps for it. What it answers is
//! checked. If it fails or answers what can't be done, the reason is put into the drive's [`FaultCell`], and from then on
//! it is not asked again: cleaning finds no victim, placement answers the first stream. Whoever built the drive looks into
//! the cell and ends the run. Foreign policies are not saved.

use super::placement::MakePlacement;
use super::victim::MakeVictim;
use std::sync::{Arc, OnceLock};

/// Foreign policies for a translation layer, each in place of the one that the settings name.
#[derive(Default)]
pub struct Foreign {
    /// Which block is cleaned.
    pub victim: Option<Box<dyn MakeVictim>>,
    /// Which frontier a page goes to.
    pub placement: Option<Box<dyn MakePlacement>>,
    /// Where they say why they can't go on.
    pub fault: FaultCell,
}

/// Why a foreign policy could not go on; the first reason stays. All policies of a drive share one.
#[derive(Clone, Debug, Default)]
pub struct FaultCell(Arc<OnceLock<String>>);

impl FaultCell {
    /// Puts down a reason, unless one is there.
    #[cold]
    pub fn set(&self, what: String) {
        self.0.get_or_init(|| what);
    }
    /// The reason, if there is one.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
