//! Reclaim groups: parts of a drive on dies of their own, of which the host names one with each write.
//!
//! ```text
//!   stream ─► group ── holds less than its part of the logical space, or the old copy ──► it takes the page
//!                └─ else the group with the most room; if none has any, that of the old copy
//! ```
//!
//! So no group ever holds more than it was built for, and cleaning finds as much room in it as on a drive of one group, whatever
//! hosts name.

use crate::plane::Plane;
use crate::policies::placement::Named;
use crate::{Cause, Counters, Flash, OpKind};
use flashwright_nand::{Lpn, PlaneId, Ppn};
use serde::{Deserialize, Serialize};

/// A page that is written, for the choice of its plane.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub lpn: Lpn,
    /// Its old copy.
    pub old: Option<Ppn>,
    /// The stream that the host names.
    pub named: u32,
    pub flash: &'a Flash,
}

/// The groups of a drive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Groups {
    named: Named,
    /// Logical pages of a group.
    part: u32,
    /// By group, the room that it has when it holds so many pages.
    least_room: Vec<i64>,
    /// By group, pages that it takes at least before it has no more: only then its room is looked at again.
    takes: Vec<i64>,
}

impl Groups {
    /// Those of planes, given in the order of turns, each of so many logical pages.
    pub fn new(named: Named, part: u32, planes: &[Plane], order: &[u32], flash: &Flash) -> Self {
        let none = vec![0; named.groups().into()];
        let mut made = Self { named, part, least_room: none.clone(), takes: none };
        made.begin(planes, order, flash);
        made
    }

    /// By plane, its group.
    pub fn of_planes(&self, order: &[u32]) -> Vec<u16> {
        let mut of_plane = vec![0; order.len()];
        for (planes, group) in order.chunks(order.len() / self.takes.len()).zip(0..) {
            planes.iter().for_each(|plane| of_plane[*plane as usize] = group);
        }
        of_plane
    }

    /// Looks at what each group holds, and at its room.
    pub fn begin(&mut self, planes: &[Plane], order: &[u32], flash: &Flash) {
        let per_group = order.len() / self.takes.len();
        for (planes_of, least) in order.chunks(per_group).zip(&mut self.least_room) {
            let planes_of = planes_of.iter().map(|plane| &planes[*plane as usize]);
            *least = planes_of.map(|plane| plane.room + plane.pages_valid(flash)).sum::<i64>() - i64::from(self.part);
        }
        self.takes.fill(0);
    }

    /// The group that takes a page.
    pub fn choose(&mut self, page: Written<'_>, planes: &[Plane], order: &[u32]) -> usize {
        let named = usize::from(self.named.of_stream(page.named).0);
        if self.takes[named] <= 0 {
            self.takes[named] = self.room(named, planes, order);
        }
        if self.takes[named] > 0 {
            self.takes[named] -= 1;
            return named;
        }
        let holder = page.old.map(|old| usize::from(page.flash.group_of(page.flash.geometry().block_of(old))));
        if holder == Some(named) {
            return named;
        }
        let rooms = (0..self.takes.len()).map(|group| (group, self.room(group, planes, order)));
        let (most, room) = rooms.rev().max_by_key(|(_, room)| *room).expect("there are groups");
        if room > 0 {
            self.takes[most] -= 1;
            return most;
        }
        holder.unwrap_or(named)
    }

    /// The room of a group before it holds its part.
    fn room(&self, group: usize, planes: &[Plane], order: &[u32]) -> i64 {
        let per_group = order.len() / self.least_room.len();
        let mine = &order[group * per_group..(group + 1) * per_group];
        mine.iter().map(|plane| planes[*plane as usize].room).sum::<i64>() - self.least_room[group]
    }
}

/// What each group did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CountsByGroup {
    /// By plane, its group.
    of_plane: Vec<u16>,
    /// By group, its programs and erases.
    counters: Vec<Counters>,
}

impl CountsByGroup {
    /// Nothing yet; every group has a plane.
    pub fn new(of_plane: Vec<u16>) -> Self {
        let groups = of_plane.iter().max().map_or(0, |last| usize::from(*last) + 1);
        Self { of_plane, counters: vec![Counters::default(); groups] }
    }

    /// The group of a plane.
    #[inline]
    pub fn of(&self, plane: PlaneId) -> u16 {
        self.of_plane[plane.index()]
    }

    /// Counts operations of a plane.
    #[inline]
    pub fn add(&mut self, plane: PlaneId, kind: OpKind, cause: Cause, operations: u64) {
        let group = self.of(plane);
        self.counters[usize::from(group)].add(kind, cause, operations);
    }

    /// By group.
    pub fn counters(&self) -> &[Counters] {
        &self.counters
    }
}
