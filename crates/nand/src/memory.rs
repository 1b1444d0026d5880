//! Hints to the memory of the machine that runs the simulation. They never change a result. This is the only place of
//! the crate that needs `unsafe`, for two calls that neither read nor write the given memory.

/// Prefetches the cache line of `table[index]`; an index past the end does no harm.
#[inline(always)]
pub fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        // The first element stands for one that does not exist. Without a branch: often that is a coin toss.
        let index = std::hint::select_unpredictable(index < table.len(), index, 0);
        // Sound: the address is that of the slice or lies inside it, and a prefetch neither reads nor writes architecturally.
        #[allow(unsafe_code)]
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(table.as_ptr().add(index).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}

/// A table of `len` times `value`, on huge pages if the system provides them: random accesses to a map of many
/// megabytes otherwise spend more time on address translation than on the map.
#[must_use]
pub fn table<T: Copy>(value: T, len: usize) -> Vec<T> {
    let mut table = Vec::with_capacity(len);
    #[cfg(target_os = "linux")]
    advise_huge(&table);
    table.resize(len, value);
    table
}

#[cfg(target_os = "linux")]
fn advise_huge<T>(table: &Vec<T>) {
    const PAGE: usize = 4096;
    const WORTHWHILE: usize = 4 << 20;
    let start = (table.as_ptr() as usize).next_multiple_of(PAGE);
    let end = (table.as_ptr() as usize + table.capacity() * size_of::<T>()) / PAGE * PAGE;
    if end.saturating_sub(start) < WORTHWHILE {
        return;
    }
    // Sound: the range lies inside an allocation that `table` owns, and this advice changes no content. A kernel
    // without huge pages refuses, which does no harm.
    #[allow(unsafe_code)]
    let _ =
        unsafe { rustix::mm::madvise(start as *mut core::ffi::c_void, end - start, rustix::mm::Advice::LinuxHugepage) };
}
