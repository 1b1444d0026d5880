//! The table of zones: states, write pointers and limits, without flash and without a clock.
//!
//! ```text
//!                 write, append, open                        written to the capacity, finish
//!      Empty ───────────────────────────► open ◄──► Closed ──────────────────────────────────► Full
//!        ▲                                                                                      │
//!        └─────────────────────────────────── reset ◄───────────────────────────────────────────┘
//! ```
//!
//! A request is first checked, which changes nothing, and then carried out, which can't fail. Where several rules speak against a
//! request, the first in this order is told:
//!
//! | request | order |
//! | --- | --- |
//! | write | offline, read-only, full; write pointer; capacity; active zones; open zones |
//! | append | first sector; offline, read-only, full; capacity; active zones; open zones |
//! | open | first sector; transition (offline, read-only, full); active zones; open zones |
//! | close, finish, reset | first sector; transition |
//!
//! A zone that has to be opened while as many are open as may be closes the implicitly open one that was opened first; explicitly open
//! ones are never closed so. Pages are the unit throughout.

use flashwright_block::{ZoneError, ZoneRule, ZoneState};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How the pages of a drive divide into zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneLayout {
    /// Zones.
    pub count: u32,
    /// Addresses of a zone, in pages.
    pub size: u32,
    /// The first so many of them can be written.
    pub capacity: u32,
}

impl ZoneLayout {
    /// The zone of a page, and its place there.
    #[inline]
    #[must_use]
    pub fn split(self, page: u32) -> (u32, u32) {
        (page / self.size, page % self.size)
    }

    /// The first page of a zone.
    #[inline]
    #[must_use]
    pub fn start(self, zone: u32) -> u32 {
        zone * self.size
    }
}

/// How many zones may be active, and how many of those open; 0 for any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneLimits {
    /// Open, implicitly or by request.
    pub open: u32,
    /// Open or closed.
    pub active: u32,
}

/// What a host does with a zone, beside writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ZoneAction {
    /// Open it until it is closed by request.
    Open,
    /// Close it.
    Close,
    /// Write no more to it: it is full.
    Finish,
    /// Forget what it holds: it is empty.
    Reset,
}

/// The zones of a drive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zones {
    layout: ZoneLayout,
    limits: ZoneLimits,
    states: Vec<ZoneState>,
    /// By zone: pages from its start to its write pointer. A zone that was finished keeps it.
    written: Vec<u32>,
    open: u32,
    active: u32,
    /// The implicitly open zones, in the order in which they were opened.
    implicitly: Vec<u32>,
    /// Those that failed since somebody last took them.
    failed: Vec<u32>,
}

impl Zones {
    /// Empty zones.
    #[must_use]
    pub fn new(layout: ZoneLayout, limits: ZoneLimits) -> Self {
        let count = layout.count as usize;
        Self {
            layout,
            limits,
            states: vec![ZoneState::Empty; count],
            written: vec![0; count],
            open: 0,
            active: 0,
            implicitly: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// How pages divide into zones.
    #[must_use]
    pub fn layout(&self) -> ZoneLayout {
        self.layout
    }

    /// How many zones may be open and active.
    #[must_use]
    pub fn limits(&self) -> ZoneLimits {
        self.limits
    }

    /// The state of a zone.
    #[inline]
    #[must_use]
    pub fn state(&self, zone: u32) -> ZoneState {
        self.states[zone as usize]
    }

    /// Pages written to a zone, from its start.
    #[inline]
    #[must_use]
    pub fn written(&self, zone: u32) -> u32 {
        self.written[zone as usize]
    }

    /// Zones in a state. O(zones).
    #[must_use]
    pub fn count(&self, state: ZoneState) -> usize {
        self.states.iter().filter(|other| **other == state).count()
    }

    /// Whether `pages` pages may be written from `first` on; returns the zone.
    ///
    /// # Errors
    /// [`ZoneError`] with the first rule that speaks against it.
    pub fn check_write(&self, first: u32, pages: u32) -> Result<u32, ZoneError> {
        let (zone, at) = self.layout.split(first);
        self.takes_writes(zone)?;
        if at != self.written(zone) {
            return Err(self.error(ZoneRule::NotAtPointer, zone));
        }
        self.fits(zone, pages)?;
        Ok(zone)
    }

    /// Whether `pages` pages may be appended to the zone that begins at `first`; returns the first page that they get.
    ///
    /// # Errors
    /// As [`Zones::check_write`].
    pub fn check_append(&self, first: u32, pages: u32) -> Result<u32, ZoneError> {
        let zone = self.named_by(first)?;
        self.takes_writes(zone)?;
        self.fits(zone, pages)?;
        Ok(first + self.written(zone))
    }

    /// Whether something may be done with the zone that begins at `first`; returns the zone.
    ///
    /// # Errors
    /// As [`Zones::check_write`].
    pub fn check_action(&self, action: ZoneAction, first: u32) -> Result<u32, ZoneError> {
        use ZoneState::{Empty, Full, Offline, ReadOnly};
        let zone = self.named_by(first)?;
        let allowed = match (action, self.state(zone)) {
            (_, Offline | ReadOnly) | (ZoneAction::Open, Full) => false,
            (ZoneAction::Close, state) => state.is_active(),
            (ZoneAction::Open, Empty) | (_, _) => true,
        };
        if !allowed {
            return Err(self.error(ZoneRule::Transition, zone));
        }
        if action == ZoneAction::Open {
            self.can_open(zone)?;
        }
        Ok(zone)
    }

    /// Pages are written at the write pointer of a zone, as was checked: an empty or closed zone opens.
    pub fn wrote(&mut self, zone: u32, pages: u32) {
        if !self.state(zone).is_open() {
            self.make_room();
            self.enter(zone, ZoneState::ImplicitlyOpen);
        }
        self.written[zone as usize] += pages;
        if self.written(zone) == self.layout.capacity {
            self.enter(zone, ZoneState::Full);
        }
    }

    /// Does something with a zone, as was checked. Returns the pages of the zone, from its start, that a finish leaves unwritten or a
    /// reset clears.
    pub fn act(&mut self, action: ZoneAction, zone: u32) -> Range<u32> {
        let (state, written) = (self.state(zone), self.written(zone));
        match action {
            ZoneAction::Open => {
                if !state.is_open() {
                    self.make_room();
                }
                self.enter(zone, ZoneState::ExplicitlyOpen);
                0..0
            }
            ZoneAction::Close => {
                self.enter(zone, ZoneState::Closed);
                0..0
            }
            ZoneAction::Finish if state == ZoneState::Full => 0..0,
            ZoneAction::Finish => {
                self.enter(zone, ZoneState::Full);
                written..self.layout.capacity
            }
            ZoneAction::Reset => {
                self.enter(zone, ZoneState::Empty);
                self.written[zone as usize] = 0;
                0..written
            }
        }
    }

    /// The drive has no flash for the next page of a zone: it is offline if nothing was written there, else read-only.
    pub fn fail(&mut self, zone: u32) {
        let empty = self.written(zone) == 0;
        self.enter(zone, if empty { ZoneState::Offline } else { ZoneState::ReadOnly });
        self.failed.push(zone);
    }

    /// Takes the zones that have failed since they were last taken, in order.
    pub fn take_failed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.failed)
    }

    /// A read-only zone goes out of use. One that is offline stays so.
    ///
    /// # Errors
    /// [`ZoneRule::Transition`] for a zone in another state.
    pub fn retire(&mut self, zone: u32) -> Result<(), ZoneError> {
        if !matches!(self.state(zone), ZoneState::ReadOnly | ZoneState::Offline) {
            return Err(self.error(ZoneRule::Transition, zone));
        }
        self.enter(zone, ZoneState::Offline);
        Ok(())
    }

    /// A zone was found with pages after a loss of power: it is full, or else closed.
    pub fn found(&mut self, zone: u32, written: u32, is_full: bool) {
        self.written[zone as usize] = written;
        self.enter(zone, if is_full { ZoneState::Full } else { ZoneState::Closed });
    }

    fn error(&self, rule: ZoneRule, zone: u32) -> ZoneError {
        ZoneError { rule, zone, pointer: u64::from(self.layout.start(zone) + self.written(zone)) }
    }

    /// The zone that begins at a page.
    fn named_by(&self, first: u32) -> Result<u32, ZoneError> {
        let (zone, at) = self.layout.split(first);
        if at == 0 { Ok(zone) } else { Err(self.error(ZoneRule::NotAtStart, zone)) }
    }

    fn takes_writes(&self, zone: u32) -> Result<(), ZoneError> {
        let rule = match self.state(zone) {
            ZoneState::Offline => ZoneRule::Offline,
            ZoneState::ReadOnly => ZoneRule::ReadOnly,
            ZoneState::Full => ZoneRule::Full,
            _ => return Ok(()),
        };
        Err(self.error(rule, zone))
    }

    /// Whether so many more pages fit a zone, and it is open or may be opened.
    fn fits(&self, zone: u32, pages: u32) -> Result<(), ZoneError> {
        if pages > self.layout.capacity - self.written(zone) {
            return Err(self.error(ZoneRule::Boundary, zone));
        }
        self.can_open(zone)
    }

    /// Whether a zone is open or may be opened.
    fn can_open(&self, zone: u32) -> Result<(), ZoneError> {
        let (state, limits) = (self.state(zone), self.limits);
        if !state.is_active() && limits.active > 0 && self.active >= limits.active {
            return Err(self.error(ZoneRule::TooManyActive, zone));
        }
        if !state.is_open() && limits.open > 0 && self.open >= limits.open && self.implicitly.is_empty() {
            return Err(self.error(ZoneRule::TooManyOpen, zone));
        }
        Ok(())
    }

    /// Closes the implicitly open zone that was opened first, if as many are open as may be.
    fn make_room(&mut self) {
        if self.limits.open > 0 && self.open >= self.limits.open {
            let first = *self.implicitly.first().expect("the limit of open zones was checked");
            self.enter(first, ZoneState::Closed);
        }
    }

    /// A zone changes its state.
    fn enter(&mut self, zone: u32, state: ZoneState) {
        let before = std::mem::replace(&mut self.states[zone as usize], state);
        if before == state {
            return;
        }
        if before == ZoneState::ImplicitlyOpen {
            self.implicitly.retain(|other| *other != zone);
        }
        if state == ZoneState::ImplicitlyOpen {
            self.implicitly.push(zone);
        }
        self.open = self.open - u32::from(before.is_open()) + u32::from(state.is_open());
        self.active = self.active - u32::from(before.is_active()) + u32::from(state.is_active());
    }
}
