//! How the C library shares out memory among threads.
//!
//! A connection is a thread, and any of them brings data that the drive keeps. By default glibc gives threads arenas of their own,
//! up to eight for each processor, and what one of them has freed the others can't use: a drive of 128 MiB of flash, overwritten
//! by twelve clients at a time, took 281 MiB on two processors, 228 with two arenas and 180 with one.

/// Arenas of the process: that of its first thread. The drive is behind one lock, so more bring no speed.
#[cfg(target_env = "gnu")]
const ARENAS: core::ffi::c_int = 1;

/// Lets the threads of this process share arenas. Those that exist stay.
#[cfg(target_env = "gnu")]
pub(crate) fn share() {
    /// `M_ARENA_MAX` of malloc.h.
    const ARENA_MAX: core::ffi::c_int = -8;
    #[allow(unsafe_code)]
    unsafe extern "C" {
        fn mallopt(parameter: core::ffi::c_int, value: core::ffi::c_int) -> core::ffi::c_int;
    }
    // Sound: glibc takes it at any time, under a lock of its own. Where another allocator is in its place, it does nothing.
    #[allow(unsafe_code)]
    unsafe {
        mallopt(ARENA_MAX, ARENAS);
    }
}

/// Other C libraries share all memory.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn share() {}
