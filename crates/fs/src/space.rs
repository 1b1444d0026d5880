//! The layout of the device: block groups, and which blocks and inodes are free.
//!
//! ```text
//!  group 0                               group 1
//!  | super | descriptors | bb | ib | inode table | data ...  | (super, descriptors) | bb | ib | inode table | data ...
//! ```
//!
//! As created by mke2fs for 4 KiB blocks: groups of 32,768 blocks; copies of the superblock in groups 0, 1 and powers
//! of 3, 5 and 7; an inode for each two blocks (ext3) or four (extents). Not modelled: room for growing descriptors,
//! and groups that share their tables (flex_bg).

use crate::bits::Bits;
use crate::settings::{BLOCK_BYTES, Layout};

/// Blocks of a group: as many as one block of bitmap has bits.
pub(crate) const GROUP_BLOCKS: u32 = 32_768;
const DESCRIPTOR_BYTES: u32 = 32;
const BLOCK: u32 = 4096;
const _: () = assert!(BLOCK as u64 == BLOCK_BYTES);

#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// First block, and the one after the last.
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) block_bitmap: u32,
    pub(crate) inode_bitmap: u32,
    pub(crate) inode_table: u32,
    /// First block after the tables.
    pub(crate) data: u32,
    pub(crate) blocks_free: u32,
    pub(crate) inodes_free: u32,
    pub(crate) directories: u32,
}

/// Blocks and inodes, free and taken.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) groups: Vec<Group>,
    pub(crate) blocks: u32,
    pub(crate) blocks_free: u32,
    pub(crate) inodes_per_group: u32,
    inode_bytes: u32,
    /// Blocks in use, and those reserved for a file being written.
    used: Bits,
    reserved: Bits,
    inodes: Bits,
}

fn has_super(group: u32) -> bool {
    let power_of = |base: u32| {
        let mut power = base;
        while power < group {
            power *= base;
        }
        power == group
    };
    group <= 1 || power_of(3) || power_of(5) || power_of(7)
}

impl Space {
    /// An empty file system on `blocks` blocks; none if these are too few for a group.
    pub(crate) fn new(blocks: u32, layout: Layout) -> Option<Self> {
        let (inode_bytes, blocks_per_inode) = match layout {
            Layout::Ext3 => (128, 2),
            Layout::Extents => (256, 4),
        };
        let groups = blocks.div_ceil(GROUP_BLOCKS);
        let inodes_a_block = BLOCK / inode_bytes;
        let inodes_per_group = (blocks / blocks_per_inode).div_ceil(groups.max(1)).next_multiple_of(inodes_a_block);
        let descriptors = (groups * DESCRIPTOR_BYTES).div_ceil(BLOCK);
        let mut space = Self {
            groups: Vec::new(),
            blocks,
            blocks_free: 0,
            inodes_per_group,
            inode_bytes,
            used: Bits::with_room(blocks),
            reserved: Bits::with_room(blocks),
            inodes: Bits::with_room(inodes_per_group * groups),
        };
        for group in 0..groups {
            let start = group * GROUP_BLOCKS;
            let end = blocks.min(start.saturating_add(GROUP_BLOCKS));
            let block_bitmap = start + if has_super(group) { 1 + descriptors } else { 0 };
            let inode_table = block_bitmap + 2;
            let data = inode_table + inodes_per_group / inodes_a_block;
            if data + 50 > end {
                // mke2fs leaves a last group out that has room for little more than its tables.
                space.blocks = start;
                break;
            }
            (start..data).for_each(|block| {
                space.used.insert(block);
            });
            space.groups.push(Group {
                start,
                end,
                block_bitmap,
                inode_bitmap: block_bitmap + 1,
                inode_table,
                data,
                blocks_free: end - data,
                inodes_free: inodes_per_group,
                directories: 0,
            });
            space.blocks_free += end - data;
        }
        // Inodes 0 to 10 are kept for the file system itself, the root directory among them.
        (0..11).for_each(|inode| {
            space.inodes.insert(inode);
        });
        let first = space.groups.first_mut()?;
        first.inodes_free -= 11;
        first.directories = 1;
        Some(space)
    }

    #[inline]
    pub(crate) fn group_of(&self, block: u32) -> u32 {
        block / GROUP_BLOCKS
    }

    /// The block that holds the descriptor of a group.
    pub(crate) fn descriptor(&self, group: u32) -> u32 {
        1 + group * DESCRIPTOR_BYTES / BLOCK
    }

    /// The block of the inode table that holds `inode`.
    #[inline]
    pub(crate) fn inode_block(&self, inode: u32) -> u32 {
        let (group, at) = (inode / self.inodes_per_group, inode % self.inodes_per_group);
        self.groups[group as usize].inode_table + at * self.inode_bytes / BLOCK
    }

    /// Whether another inode in the same block of the table is in use; if not, that block need not be read.
    pub(crate) fn inode_block_in_use(&self, inode: u32) -> bool {
        let a_block = BLOCK / self.inode_bytes;
        let first = inode / a_block * a_block;
        (first..first + a_block).any(|other| other != inode && self.inodes.has(other))
    }

    /// The first free inode, in `group` or the next that has one.
    pub(crate) fn find_inode(&self, group: u32) -> Option<u32> {
        let groups = u32::try_from(self.groups.len()).expect("at most 2^17 groups");
        let group = (0..groups).map(|i| (group + i) % groups).find(|g| self.groups[*g as usize].inodes_free > 0)?;
        let first = group * self.inodes_per_group;
        self.inodes.next_outside(&Bits::default(), first, first + self.inodes_per_group)
    }

    pub(crate) fn take_inode(&mut self, inode: u32) {
        assert!(self.inodes.insert(inode), "an inode is given out once");
        self.groups[(inode / self.inodes_per_group) as usize].inodes_free -= 1;
    }

    pub(crate) fn free_inode(&mut self, inode: u32) {
        assert!(self.inodes.remove(inode), "an inode is freed once");
        self.groups[(inode / self.inodes_per_group) as usize].inodes_free += 1;
    }

    /// The group of a new directory below the root, after Orlov: among groups with free inodes and blocks at or above
    /// the mean, the one with fewest directories, from a random start.
    pub(crate) fn directory_group(&self, start: u32) -> u32 {
        let groups = u32::try_from(self.groups.len()).expect("at most 2^17 groups");
        let mean = |of: fn(&Group) -> u32| {
            self.groups.iter().map(|group| u64::from(of(group))).sum::<u64>() / u64::from(groups)
        };
        let (inodes, blocks) = (mean(|group| group.inodes_free), mean(|group| group.blocks_free));
        (0..groups)
            .map(|i| (start + i) % groups)
            .filter(|g| {
                let group = &self.groups[*g as usize];
                u64::from(group.inodes_free) >= inodes && u64::from(group.blocks_free) >= blocks
            })
            .min_by_key(|g| self.groups[*g as usize].directories)
            .unwrap_or(start % groups)
    }

    /// The first free block from `goal` on, then from the start; an unreserved one, if there is one.
    pub(crate) fn find_block(&self, goal: u32) -> Option<u32> {
        let goal = if goal < self.blocks { goal } else { 0 };
        let first = |aside: &Bits| {
            self.used.next_outside(aside, goal, self.blocks).or_else(|| self.used.next_outside(aside, 0, goal))
        };
        if self.blocks_free == 0 { None } else { first(&self.reserved).or_else(|| first(&Bits::default())) }
    }

    /// Consecutive free and unreserved blocks from `first` on, at most `most`.
    pub(crate) fn run_at(&self, first: u32, most: u32) -> u32 {
        let end = self.blocks.min(first.saturating_add(most));
        let taken = |bits: &Bits| bits.next(first, end).unwrap_or(end);
        taken(&self.used).min(taken(&self.reserved)) - first
    }

    #[inline]
    pub(crate) fn is_free(&self, block: u32) -> bool {
        block < self.blocks && !self.used.has(block)
    }

    pub(crate) fn set_aside(&mut self, first: u32, end: u32) {
        (first..end).for_each(|block| {
            self.reserved.insert(block);
        });
    }

    pub(crate) fn give_back(&mut self, first: u32, end: u32) {
        (first..end).for_each(|block| {
            self.reserved.remove(block);
        });
    }

    #[inline]
    pub(crate) fn take(&mut self, block: u32) {
        assert!(self.used.insert(block), "block {block} is given out once");
        self.groups[(block / GROUP_BLOCKS) as usize].blocks_free -= 1;
        self.blocks_free -= 1;
    }

    pub(crate) fn free(&mut self, first: u32, blocks: u32) {
        for block in first..first + blocks {
            assert!(self.used.remove(block), "block {block} is freed once");
            self.groups[(block / GROUP_BLOCKS) as usize].blocks_free += 1;
        }
        self.blocks_free += blocks;
    }

    /// Contradictions between the counts and a recount.
    pub(crate) fn audit(&self, found: &mut Vec<String>) {
        let mut free_in_all = 0;
        for (number, group) in self.groups.iter().enumerate() {
            let free = (group.start..group.end).filter(|block| !self.used.has(*block)).count();
            if free != group.blocks_free as usize {
                found.push(format!("group {number} counts {} free blocks, a recount {free}", group.blocks_free));
            }
            free_in_all += free;
        }
        if free_in_all != self.blocks_free as usize {
            found.push(format!("{} free blocks counted, {free_in_all} recounted", self.blocks_free));
        }
        let inodes: u64 = self.groups.iter().map(|g| u64::from(self.inodes_per_group - g.inodes_free)).sum();
        if inodes != self.inodes.count() {
            found.push(format!("{inodes} inodes in use counted, {} recounted", self.inodes.count()));
        }
    }
}
