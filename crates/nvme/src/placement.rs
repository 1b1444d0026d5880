//! Flexible data placement of the endurance group: whether it is on, who uses which handle, and what happened.
//!
//! ```text
//!   placement identifier ─┬► place in the namespace's list ─► reclaim unit handle ─┬► Io::stream ─► the drive
//!                         └► reclaim group ────────────────────────────────────────┘
//! ```
//!
//! Nothing of it is there where the drive places no data. The units themselves, and all counts, are the drive's.

use crate::namespace::{Namespace, Namespaces};
use crate::subsystem::{Health, Media};
use crate::wire::Status;
use crate::wire::placement::{EVENTS_MAX, Event, IDENTIFIERS_MAX, User, event};
use flashwright_block::{Moved, Placement, SECTOR_BYTES};
use std::collections::VecDeque;

/// The state of placement.
#[derive(Debug)]
pub(crate) struct DataPlacement {
    /// What the drive offers.
    pub offered: Placement,
    /// Whether hosts place data.
    pub is_on: bool,
    /// What the drive had counted when it was switched on.
    since: [u64; 3],
    /// By handle, the events that are noted: a bit for each of [`event::ALL`].
    wanted: Vec<u8>,
    /// The latest events of hosts and of the controller.
    of_hosts: VecDeque<Event>,
    of_controller: VecDeque<Event>,
}

/// Bytes that hosts wrote, that the flash was written with, and that were erased.
fn counts(health: &Health) -> [u64; 3] {
    [health.bytes_written, health.media_bytes_written, health.media_bytes_erased]
}

impl DataPlacement {
    pub fn new(offered: Placement) -> Self {
        let wanted = vec![0; usize::from(offered.handles)];
        Self { offered, is_on: true, since: [0; 3], wanted, of_hosts: VecDeque::new(), of_controller: VecDeque::new() }
    }

    /// Switches it on or off, while there are no namespaces: counts and events begin anew.
    pub fn switch(&mut self, is_on: bool, health: &Health) {
        *self = Self { is_on, since: counts(health), ..Self::new(self.offered) };
    }

    /// Log page 22h.
    pub fn statistics(&self, health: &Health) -> [u64; 3] {
        let now = counts(health);
        [0, 1, 2].map(|at| now[at].saturating_sub(self.since[at]))
    }

    /// The handles of a namespace that is created with a list, which may be empty: then the controller chooses, and says so.
    ///
    /// # Errors
    /// [`Status::PLACEMENT_LIST`].
    pub fn assign(&self, asked: &[u16], namespaces: &Namespaces) -> Result<(Vec<u8>, bool), Status> {
        if !self.is_on {
            return Ok((Vec::new(), false));
        }
        let users = self.users(namespaces);
        if asked.is_empty() {
            let place = |user: User| users.iter().position(|found| *found == user);
            let chosen = place(User::Controller).or(place(User::None)).ok_or(Status::PLACEMENT_LIST)?;
            return Ok((vec![u8::try_from(chosen).expect("handles are few")], true));
        }
        let is_free = |handle: &u16| users.get(usize::from(*handle)).is_some_and(|user| *user != User::Controller);
        let is_first = |(at, handle): (usize, &u16)| !asked[..at].contains(handle);
        let fits = asked.len() <= usize::from(IDENTIFIERS_MAX);
        if !fits || !asked.iter().all(is_free) || !asked.iter().enumerate().all(is_first) {
            return Err(Status::PLACEMENT_LIST);
        }
        Ok((asked.iter().map(|handle| u8::try_from(*handle).expect("handles are few")).collect(), false))
    }

    /// Who uses each handle.
    pub fn users(&self, namespaces: &Namespaces) -> Vec<User> {
        let user = |handle: u16| {
            let uses = |namespace: &&Namespace| namespace.handles.iter().any(|found| u16::from(*found) == handle);
            match namespaces.iter().find(uses) {
                None => User::None,
                Some(namespace) if namespace.is_assigned => User::Controller,
                Some(_) => User::Host,
            }
        };
        (0..self.offered.handles).map(user).collect()
    }

    /// The bit of a type of events; none if it is not noted.
    pub fn bit_of(kind: u8) -> Option<u8> {
        event::ALL.iter().position(|found| *found == kind).map(|at| 1 << at)
    }

    /// Whether events of a type are noted of a handle.
    pub fn wants(&self, handle: u8, kind: u8) -> bool {
        Self::bit_of(kind).is_some_and(|bit| self.wanted[usize::from(handle)] & bit != 0)
    }

    /// Chooses whether events of some types, given as bits, are noted of a handle.
    pub fn want(&mut self, handle: u8, kinds: u8, is_wanted: bool) {
        let wanted = &mut self.wanted[usize::from(handle)];
        *wanted = if is_wanted { *wanted | kinds } else { *wanted & !kinds };
    }

    /// Has the drive tell of the moves that are noted.
    pub fn watch(&self, media: &mut dyn Media) {
        let Some(placed) = media.placed() else { return };
        let handles = (0..64).zip(&self.wanted);
        let moves = Self::bit_of(event::MOVED).expect("it is one of them");
        placed.watch_moves(
            handles.filter(|(_, kinds)| **kinds & moves != 0).fold(0, |all, (handle, _)| all | 1 << handle),
        );
    }

    /// Notes an event of a host, if it is wanted.
    pub fn note(&mut self, event: Event) {
        push(&mut self.of_hosts, event);
    }

    /// Notes what the drive has moved.
    pub fn note_moves(&mut self, moved: Vec<Moved>, namespaces: &Namespaces) {
        for Moved { at, handle, group, first_sector, sectors } in moved {
            let found = namespaces.holder(first_sector * SECTOR_BYTES);
            let bytes = u64::from(sectors) * SECTOR_BYTES;
            let shift = found.map_or(9, |(namespace, _)| namespace.shift());
            let place = |namespace: &Namespace| namespace.handles.iter().position(|own| u16::from(*own) == handle);
            let place = found.and_then(|(namespace, _)| place(namespace)).and_then(|at| u16::try_from(at).ok());
            let identifier = place.map(|place| self.offered.group_bits().join(group, place));
            let first = found.map(|(namespace, offset)| offset >> namespace.shift());
            let event = Event {
                kind: event::MOVED,
                at_ns: at.0,
                identifier,
                nsid: found.map(|(namespace, _)| namespace.id),
                group,
                handle,
                moved: Some((first, u16::try_from(bytes >> shift).unwrap_or(u16::MAX))),
            };
            push(&mut self.of_controller, event);
        }
    }

    /// The events of hosts, or of the controller, in order.
    pub fn events(&self, of_hosts: bool) -> impl Iterator<Item = &Event> {
        if of_hosts { &self.of_hosts } else { &self.of_controller }.iter()
    }

    /// What is kept of it.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend([u8::from(self.is_on), 0]);
        out.extend(self.offered.handles.to_le_bytes());
        out.extend(&self.wanted);
    }

    /// Reads what [`DataPlacement::put`] wrote for as many handles, and returns the rest. None if it can't be that.
    pub fn take<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (fixed, rest) = bytes.split_first_chunk::<4>()?;
        if fixed[2..] != self.offered.handles.to_le_bytes() {
            return None;
        }
        let (wanted, rest) = rest.split_at_checked(self.wanted.len())?;
        (self.is_on, self.wanted) = (fixed[0] != 0, wanted.to_vec());
        Some(rest)
    }
}

/// Keeps the latest.
fn push(events: &mut VecDeque<Event>, event: Event) {
    if events.len() == EVENTS_MAX {
        events.pop_front();
    }
    events.push_back(event);
}
