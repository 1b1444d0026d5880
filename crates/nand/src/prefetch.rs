//! A hint to the simulating machine's cache. Never changes a result.

/// Asks for the cache line of `table[index]`; an index past the end is ignored.
#[inline(always)]
pub fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if index < table.len() {
        // Sound: the address lies inside the slice, and a prefetch neither reads nor writes architecturally.
        #[allow(unsafe_code)]
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(table.as_ptr().add(index).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}
