//! Where the data of a command are in the host's memory: PRPs and SGLs (Base 2.1, sections 4.3.1 and 4.3.2).

use super::{Host, OutOfReach};
use crate::wire::{HOST_PAGE, Sqe, Status, u32_at, u64_at};

const PAGE: u64 = HOST_PAGE as u64;
/// Bytes of an entry of a PRP list.
const PRP_BYTES: usize = 8;
/// Bytes of an SGL descriptor.
const DESCRIPTOR_BYTES: usize = 16;
/// Descriptors of a command: one for each sector of the longest transfer, and some that join their segments.
const DESCRIPTORS_MAX: usize = 4096;

/// Ranges of the host's memory, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places(Vec<(u64, u32)>);

impl Places {
    fn push(&mut self, address: u64, bytes: u64) {
        let bytes = u32::try_from(bytes).expect("no transfer is as long");
        if let Some((first, length)) = self.0.last_mut()
            && first.checked_add(u64::from(*length)) == Some(address)
            && let Some(sum) = length.checked_add(bytes)
        {
            *length = sum;
            return;
        }
        self.0.push((address, bytes));
    }

    /// Reads all of it.
    pub fn read(&self, host: &impl Host, bytes: usize) -> Result<Vec<u8>, OutOfReach> {
        let mut data = vec![0; bytes];
        let mut rest = data.as_mut_slice();
        for (address, length) in &self.0 {
            let (part, more) = rest.split_at_mut(*length as usize);
            host.read(*address, part)?;
            rest = more;
        }
        Ok(data)
    }

    /// Writes as far as there is room.
    pub fn write(&self, host: &impl Host, data: &[u8]) -> Result<(), OutOfReach> {
        let mut rest = data;
        for (address, length) in &self.0 {
            let (part, more) = rest.split_at(rest.len().min(*length as usize));
            host.write(*address, part)?;
            rest = more;
        }
        Ok(())
    }
}

/// The places of the `bytes` that a command moves.
///
/// # Errors
/// The status of a pointer that breaks a rule.
pub(crate) fn walk(host: &impl Host, sqe: &Sqe, bytes: usize) -> Result<Places, Status> {
    if bytes == 0 {
        return Ok(Places::default());
    }
    match sqe.psdt() {
        0 => prps(host, [u64_at(&sqe.0, 24), u64_at(&sqe.0, 32)], bytes as u64),
        1 | 2 => sgls(host, &sqe.0[24..40], bytes as u64),
        _ => Err(Status::INVALID_FIELD),
    }
}

/// The first page may begin anywhere, the others at their beginning; where more than two are needed, the second pointer is that of a
/// list, whose last place in a page points to the next part of it.
fn prps(host: &impl Host, [first, second]: [u64; 2], bytes: u64) -> Result<Places, Status> {
    let mut places = Places::default();
    if !first.is_multiple_of(4) {
        return Err(Status::PRP_OFFSET);
    }
    let in_first = (PAGE - first % PAGE).min(bytes);
    places.push(first, in_first);
    let mut left = bytes - in_first;
    let mut page = |address: u64, left: &mut u64| {
        if !address.is_multiple_of(PAGE) {
            return Err(Status::PRP_OFFSET);
        }
        let here = PAGE.min(*left);
        places.push(address, here);
        *left -= here;
        Ok(())
    };
    if left > PAGE {
        if !second.is_multiple_of(PRP_BYTES as u64) {
            return Err(Status::PRP_OFFSET);
        }
        let (mut list, mut bytes) = (second, [0; HOST_PAGE]);
        while left > 0 {
            let needed = usize::try_from(left.div_ceil(PAGE)).expect("transfers have a largest length");
            let room = usize::try_from(PAGE - list % PAGE).expect("a page") / PRP_BYTES;
            let entries = &mut bytes[..needed.min(room) * PRP_BYTES];
            host.read(list, entries)?;
            let goes_on = needed > room;
            let pages = room.min(needed) - usize::from(goes_on);
            for entry in entries.chunks_exact(PRP_BYTES).take(pages) {
                page(u64_at(entry, 0), &mut left)?;
            }
            if goes_on {
                list = u64_at(entries, pages * PRP_BYTES);
                if !list.is_multiple_of(PAGE) {
                    return Err(Status::PRP_OFFSET);
                }
            }
        }
    } else if left > 0 {
        page(second, &mut left)?;
    }
    Ok(places)
}

/// Types of descriptors, in bits 7:4; their subtype is 0, an address.
mod kind {
    pub const DATA: u8 = 0x00;
    pub const SEGMENT: u8 = 0x20;
    pub const LAST_SEGMENT: u8 = 0x30;
}

fn sgls(host: &impl Host, inline: &[u8], bytes: u64) -> Result<Places, Status> {
    let (mut places, mut sum, mut count) = (Places::default(), 0u64, 0);
    // What is looked at, and whether its last descriptor may lead to another segment.
    let (mut segment, mut may_lead_on) = (inline.to_vec(), true);
    loop {
        let (mut next, last) = (None, segment.len() / DESCRIPTOR_BYTES - 1);
        for (at, descriptor) in segment.chunks_exact(DESCRIPTOR_BYTES).enumerate() {
            let (address, length) = (u64_at(descriptor, 0), u32_at(descriptor, 8));
            match descriptor[15] {
                kind::DATA => {
                    sum += u64::from(length);
                    if sum > bytes {
                        return Err(Status::SGL_LENGTH);
                    }
                    if length > 0 {
                        places.push(address, u64::from(length));
                    }
                }
                kind::SEGMENT | kind::LAST_SEGMENT if at == last && may_lead_on => {
                    next = Some((address, length as usize, descriptor[15] == kind::SEGMENT));
                }
                kind::SEGMENT | kind::LAST_SEGMENT => return Err(Status::SGL_SEGMENT),
                _ => return Err(Status::SGL_TYPE),
            }
        }
        let Some((address, length, leads_on)) = next else {
            // Only a last segment, or the one descriptor of the command, may end.
            let ends = !may_lead_on || count == 0;
            return if !ends {
                Err(Status::SGL_SEGMENT)
            } else if sum == bytes {
                Ok(places)
            } else {
                Err(Status::SGL_LENGTH)
            };
        };
        if length == 0 || !length.is_multiple_of(DESCRIPTOR_BYTES) {
            return Err(Status::SGL_SEGMENT);
        }
        count += length / DESCRIPTOR_BYTES;
        if count > DESCRIPTORS_MAX {
            return Err(Status::SGL_COUNT);
        }
        segment.resize(length, 0);
        host.read(address, &mut segment)?;
        may_lead_on = leads_on;
    }
}
