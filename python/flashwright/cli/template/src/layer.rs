//! A page map in RAM that fills one block of each plane at a time, planes in turn, and cleans the full block with the fewest valid pages.
//! Under `placement.policy=single`, `placement.allocation=dynamic` and `gc.victim=greedy`, `page` takes the same steps.

use flashwright_ftl::{Cause, DecideFtl, FtlDrive, GuardedFlash, LpnRun, OwnFtl};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Settings of this layer.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct Settings {
    /// Erased blocks that each plane keeps beyond `gc.free-blocks-min`.
    #[schemars(range(max = 1000))]
    pub spare_blocks: u32,
}

/// The layer.
#[derive(Clone, Debug)]
pub struct PageMap {
    /// By logical page, the page that holds it.
    pages: Vec<Option<i64>>,
    planes: Vec<Plane>,
    /// The planes in the order of their turns, and whose turn it is.
    order: Vec<u32>,
    turn: usize,
    pages_per_block: u32,
    /// Erased blocks that each plane keeps.
    keeps: usize,
    ram_bytes: f64,
}

#[derive(Clone, Debug)]
struct Plane {
    /// Erased blocks with their erases: the least worn one is opened next.
    free: BTreeSet<(u32, i64)>,
    /// What is left of the open block.
    next: i64,
    end: i64,
    /// Full blocks in the order in which they filled.
    full: Vec<i64>,
}

impl OwnFtl for PageMap {
    const ABOUT: &'static str = "a page map, one open block a plane, greedy cleaning";
    type Settings = Settings;

    fn new(settings: Settings, drive: FtlDrive, flash: &mut GuardedFlash) -> Result<Self, String> {
        let geometry = &drive.geometry;
        let plane = |number: u32| -> Result<Plane, String> {
            let first = i64::from(number) * i64::from(geometry.blocks_per_plane());
            let mut free = BTreeSet::new();
            for block in first..first + i64::from(geometry.blocks_per_plane()) {
                if flash.is_good(block)? {
                    free.insert((flash.erases(block)?, block));
                }
            }
            Ok(Plane { free, next: 0, end: 0, full: Vec::new() })
        };
        Ok(Self {
            pages: vec![None; drive.logical_pages as usize],
            planes: (0..geometry.planes()).map(plane).collect::<Result<_, _>>()?,
            pages_per_block: geometry.pages_per_block(),
            keeps: (drive.free_blocks_min + settings.spare_blocks) as usize,
            ram_bytes: f64::from(drive.logical_pages) * f64::from(drive.entry_bytes),
            order: drive.plane_order,
            turn: 0,
        })
    }
}

impl DecideFtl for PageMap {
    fn write(&mut self, run: LpnRun, flash: &mut Box<GuardedFlash>) -> Result<bool, String> {
        for lpn in run.iter() {
            let Some(plane) = self.plane_with_room(flash)? else { return Ok(false) };
            let page = self.planes[plane].next;
            flash.program(page, i64::from(lpn.0), Cause::Host, 0)?;
            self.pages[lpn.index()] = Some(page);
            self.filled(plane, 1, flash)?;
        }
        Ok(true)
    }

    fn trim(&mut self, run: LpnRun, _: &mut Box<GuardedFlash>) -> Result<(), String> {
        self.pages[run.first.index()..][..run.pages as usize].fill(None);
        Ok(())
    }

    fn lookup(&self, lpn: u32) -> Result<Option<i64>, String> {
        Ok(self.pages[lpn as usize])
    }

    fn figures(&self) -> Result<Vec<(String, f64)>, String> {
        Ok(vec![("ram_bytes".to_owned(), self.ram_bytes)])
    }

    fn again(&self) -> Box<dyn DecideFtl> {
        Box::new(self.clone())
    }
}

impl PageMap {
    /// The plane in turn, or the next that can take a page.
    fn plane_with_room(&mut self, flash: &mut GuardedFlash) -> Result<Option<usize>, String> {
        let turn = self.turn;
        self.turn = (turn + 1) % self.order.len();
        for step in 0..self.order.len() {
            let plane = self.order[(turn + step) % self.order.len()] as usize;
            if self.make_room(plane, flash)? {
                return Ok(Some(plane));
            }
        }
        Ok(None)
    }

    /// Cleans until a block can be opened, and opens it. False if no block has an invalid page.
    fn make_room(&mut self, plane: usize, flash: &mut GuardedFlash) -> Result<bool, String> {
        while self.planes[plane].next == self.planes[plane].end {
            if self.planes[plane].free.len() > self.keeps {
                self.open(plane);
            } else if !self.clean_block(plane, flash)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn open(&mut self, number: usize) {
        let pages_per_block = i64::from(self.pages_per_block);
        let plane = &mut self.planes[number];
        if let Some((_, block)) = plane.free.pop_first() {
            plane.next = block * pages_per_block;
            plane.end = plane.next + pages_per_block;
        }
    }

    fn clean_block(&mut self, number: usize, flash: &mut GuardedFlash) -> Result<bool, String> {
        let mut fewest: Option<(u32, usize)> = None;
        for (nth, block) in self.planes[number].full.iter().enumerate() {
            let valid = flash.valid(*block)?;
            if fewest.is_none_or(|(least, _)| valid < least) {
                fewest = Some((valid, nth));
            }
        }
        let Some((_, nth)) = fewest.filter(|(valid, _)| *valid < self.pages_per_block) else { return Ok(false) };
        let block = self.planes[number].full.remove(nth);
        let live: Vec<i64> = flash.live(block)?.0.into_iter().map(i64::from).collect();
        let mut rest = live.as_slice();
        while !rest.is_empty() {
            if self.planes[number].next == self.planes[number].end {
                self.open(number);
            }
            let Plane { next, end, .. } = self.planes[number];
            let (now, later) = rest.split_at(rest.len().min(usize::try_from(end - next).unwrap_or(0)));
            for (owner, page) in flash.copy(now, next, Cause::Gc, 0)?.into_iter().zip(next..) {
                self.pages[owner as usize] = Some(page);
            }
            self.filled(number, now.len(), flash)?;
            rest = later;
        }
        flash.erase(block, Cause::Gc)?;
        self.planes[number].free.insert((flash.erases(block)?, block));
        Ok(true)
    }

    /// So many pages of the open block were programmed. A full one may be cleaned from now on, or retires where it is worn out.
    fn filled(&mut self, number: usize, pages: usize, flash: &mut GuardedFlash) -> Result<(), String> {
        let plane = &mut self.planes[number];
        plane.next += i64::try_from(pages).unwrap_or(0);
        if plane.next == plane.end {
            let block = plane.end / i64::from(self.pages_per_block) - 1;
            if flash.can_erase(block)? {
                plane.full.push(block);
            } else {
                flash.retire(block)?;
            }
        }
        Ok(())
    }
}
