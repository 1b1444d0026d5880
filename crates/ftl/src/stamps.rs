//! Verifies that no data are lost: every page carries a stamp, every read is checked.

use crate::Violation;
use flashwright_nand::{Lpn, Ppn};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Stamps of the host's last write to each logical page, and of the content of each flash page.
///
/// A stamp is the number of the host page write that made it, from 1; 0 stands for "never written or trimmed".
/// Numbers wrap after 2^32 page writes, which leaves a chance of one in four billion that a stale page looks right.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stamps {
    latest: Vec<u32>,
    on_flash: Vec<u32>,
    /// The stamp in RAM by logical page, 0 for none; empty until RAM takes a page.
    in_ram: Vec<u32>,
    /// Pages of the host's current write that neither RAM nor flash has taken yet, with the stamp of their old content.
    #[serde(skip)]
    under_way: VecDeque<(Lpn, u32)>,
    last: u32,
    delivered: u64,
    violations: Vec<Violation>,
    violations_count: u64,
}

/// Number of violations kept with their text; later ones are only counted.
const KEPT: usize = 20;

impl Stamps {
    pub(crate) fn new(logical_pages: u32, physical_pages: u32) -> Self {
        Self {
            latest: vec![0; logical_pages as usize],
            on_flash: vec![0; physical_pages as usize],
            in_ram: Vec::new(),
            under_way: VecDeque::new(),
            last: 0,
            delivered: 0,
            violations: Vec::new(),
            violations_count: 0,
        }
    }

    /// The host writes `lpn`: until RAM or flash takes the page, it is in transfer.
    pub(crate) fn host_writes(&mut self, lpn: Lpn) {
        self.last = self.last.wrapping_add(1).max(1);
        let before = std::mem::replace(&mut self.latest[lpn.index()], self.last);
        self.under_way.push_back((lpn, before));
    }

    /// The page is no longer in transfer; returns the stamp of its old content if it was.
    fn take(&mut self, lpn: Lpn) -> Option<u32> {
        let at = match self.under_way.front() {
            None => return None,
            Some((first, _)) if *first == lpn => 0, // pages are programmed in order as a rule
            Some(_) => self.under_way.iter().position(|(other, _)| *other == lpn)?,
        };
        self.under_way.remove(at).map(|(_, before)| before)
    }

    /// The old content of a page in transfer is dropped before the new content is stored.
    pub(crate) fn old_content_dropped(&mut self, lpn: Lpn) {
        if let Some((_, before)) = self.under_way.iter_mut().find(|(other, _)| *other == lpn) {
            *before = 0;
        }
    }

    pub(crate) fn host_trims(&mut self, lpn: Lpn) {
        self.latest[lpn.index()] = 0;
    }

    /// A page in transfer goes to flash without RAM, any other leaves RAM; returns which. Pages beyond the logical
    /// space hold the scheme's own tables and no host data.
    pub(crate) fn programmed(&mut self, ppn: Ppn, lpn: Lpn) -> bool {
        let past_ram = self.take(lpn).is_some();
        let in_ram = self.in_ram.get(lpn.index()).copied().filter(|stamp| *stamp != 0 && !past_ram);
        self.on_flash[ppn.index()] = in_ram.or_else(|| self.latest.get(lpn.index()).copied()).unwrap_or(0);
        past_ram
    }

    pub(crate) fn ram_takes(&mut self, lpn: Lpn) {
        self.take(lpn);
        self.in_ram.resize(self.latest.len(), 0);
        self.in_ram[lpn.index()] = self.latest[lpn.index()];
    }

    pub(crate) fn ram_loads(&mut self, lpn: Lpn, from: Ppn) {
        self.in_ram.resize(self.latest.len(), 0);
        self.in_ram[lpn.index()] = self.on_flash[from.index()];
    }

    pub(crate) fn ram_lets_go(&mut self, lpn: Lpn) {
        if let Some(stamp) = self.in_ram.get_mut(lpn.index()) {
            *stamp = 0;
        }
    }

    /// A host read of `lpn` was answered from RAM.
    pub(crate) fn delivers_from_ram(&mut self, lpn: Lpn) {
        self.delivered += 1;
        let (found, expected) = (self.in_ram.get(lpn.index()).copied().unwrap_or(0), self.latest[lpn.index()]);
        if found != expected || found == 0 {
            self.report(format!(
                "lpn {} read from RAM gave write number {found}, but the last one was {expected}",
                lpn.0
            ));
        }
    }

    pub(crate) fn copied(&mut self, from: Ppn, to: Ppn) {
        self.on_flash[to.index()] = self.on_flash[from.index()];
    }

    /// A host read of `lpn` was answered from `ppn`, whose spare area names `owner`.
    pub(crate) fn delivers(&mut self, lpn: Lpn, ppn: Ppn, owner: Option<Lpn>, valid: bool) {
        self.delivered += 1;
        let (found, expected) = (self.on_flash[ppn.index()], self.latest[lpn.index()]);
        if owner != Some(lpn) {
            self.report(format!("lpn {} was read from ppn {}, whose spare area names {owner:?}", lpn.0, ppn.0));
        } else if found != expected {
            self.report(format!(
                "lpn {} read from ppn {} gave write number {found}, but the last one was {expected}",
                lpn.0, ppn.0
            ));
        } else if !valid {
            self.report(format!("lpn {} was read from ppn {}, which is marked invalid", lpn.0, ppn.0));
        }
    }

    /// A host read of `lpn` was answered with "never written".
    pub(crate) fn delivers_nothing(&mut self, lpn: Lpn) {
        self.delivered += 1;
        let expected = self.latest[lpn.index()];
        if expected != 0 {
            self.report(format!("lpn {} read as never written, but write number {expected} went there", lpn.0));
        }
    }

    /// A write failed. If `lpn` was handled before the failure, RAM or flash holds the new data, else the old: from now
    /// on the held data count as the content.
    pub(crate) fn accept(&mut self, lpn: Lpn, held_in: Option<Ppn>) {
        let expected = self.take(lpn).unwrap_or(self.latest[lpn.index()]);
        let in_ram = self.in_ram.get(lpn.index()).copied().filter(|stamp| *stamp != 0);
        let found = in_ram.unwrap_or_else(|| held_in.map_or(0, |ppn| self.on_flash[ppn.index()]));
        if found != expected {
            self.report(format!("a failed write left lpn {} with write number {found}, expected {expected}", lpn.0));
        }
        self.latest[lpn.index()] = found;
    }

    /// Pages answered so far, to check that none was left out.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Number of violations, and the text of the first of them.
    #[must_use]
    pub fn violations(&self) -> (u64, &[Violation]) {
        (self.violations_count, &self.violations)
    }

    /// Whether `lpn` holds data as far as the host knows.
    #[must_use]
    pub fn is_written(&self, lpn: Lpn) -> bool {
        self.latest[lpn.index()] != 0
    }

    /// Whether RAM holds the newest data of `lpn`.
    #[must_use]
    pub fn is_newest_in_ram(&self, lpn: Lpn) -> bool {
        self.is_written(lpn) && self.in_ram.get(lpn.index()) == self.latest.get(lpn.index())
    }

    /// The stamp of the content of a flash page.
    pub(crate) fn on_flash(&self, ppn: Ppn) -> u32 {
        self.on_flash[ppn.index()]
    }

    /// The stamp of what the host last wrote to `lpn`; 0 if it was never written, or trimmed.
    #[must_use]
    pub fn latest(&self, lpn: Lpn) -> u32 {
        self.latest[lpn.index()]
    }

    /// Power was lost: what was in RAM is gone, and the host no longer expects anything.
    pub(crate) fn forget(&mut self) {
        self.on_flash.fill(0);
        self.latest.fill(0);
        self.in_ram = Vec::new();
        self.under_way.clear();
    }

    /// A page with this stamp was found after a loss of power.
    pub(crate) fn found(&mut self, ppn: Ppn, stamp: u32) {
        self.on_flash[ppn.index()] = stamp;
    }

    /// From now on the host expects of `lpn` what `ppn` holds.
    pub(crate) fn expects(&mut self, lpn: Lpn, ppn: Ppn) {
        if let Some(latest) = self.latest.get_mut(lpn.index()) {
            *latest = self.on_flash[ppn.index()];
        }
    }

    /// Whether the flash page holds the newest stamp of `lpn`.
    #[must_use]
    pub fn is_newest(&self, lpn: Lpn, ppn: Ppn) -> bool {
        self.on_flash[ppn.index()] == self.latest[lpn.index()]
    }

    /// Records a contradiction found elsewhere.
    pub fn report(&mut self, text: String) {
        self.violations_count += 1;
        if self.violations.len() < KEPT {
            self.violations.push(Violation(text));
        }
    }
}
