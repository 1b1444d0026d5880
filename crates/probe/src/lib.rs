//! Plays the request patterns of probes: a pattern is played on a drive in a closed loop, and the times of each request
//! are returned.
//!
//! It sees only the block-device interface: this crate does not depend on the simulator, so a probe of a simulated
//! drive knows no more than a probe of a real one. The times are interpreted elsewhere.

use flashwright_block::{BlockDevice, Completion, Contents, IoError, Nanos, Request, RequestKind, Tag};
use std::fmt;

/// Requests to play, column by column; all columns have the same length.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<'a> {
    /// The kinds of the requests.
    pub kinds: &'a [RequestKind],
    /// First sector touched.
    pub first_sectors: &'a [u64],
    /// Sectors touched; 0 for flushes.
    pub sectors: &'a [u32],
    /// Requests outstanding, 1 or more.
    pub depth: usize,
    /// What the data of its writes are like.
    pub contents: Contents,
}

/// When the requests of a pattern were submitted and completed, on the device's clock. Requests that were never
/// submitted, because playing was stopped, are missing at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// When each was submitted.
    pub submitted: Vec<Nanos>,
    /// When each completed.
    pub ended: Vec<Nanos>,
}

/// The error of a pattern that ended early because a request failed, or the device refused one or died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The first error.
    pub error: IoError,
    /// Position in the pattern of the request that met it; none for a dead device, which names no request.
    pub request: Option<usize>,
    /// All submitted requests, including those that were in flight with the failed one. On a dead device, requests that
    /// never completed have [`NEVER_ENDED`] as their end.
    pub samples: Samples,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Failed {}

/// The end of a request that a dead device never completed.
pub const NEVER_ENDED: Nanos = Nanos(u64::MAX);

/// Completions between two checks whether to continue.
const LOOK: usize = 64;

/// Plays a pattern with `depth` requests outstanding; when one completes, the next is submitted. All have completed
/// when it returns. It calls `go_on` from time to time; when that returns false, it submits nothing more.
///
/// ```
/// # use flashwright_block::{BlockDevice, Bytes, Completion, Contents, DeviceInfo, IoError, Nanos, Request, RequestKind, Tag};
/// # use flashwright_probe::{Pattern, play};
/// # /// A device that takes a microsecond a sector.
/// # struct Slow(u64, Vec<Completion>);
/// # impl BlockDevice for Slow {
/// #     fn info(&self) -> DeviceInfo {
/// #         DeviceInfo { name: "slow".into(), capacity: Bytes(1 << 20), sector: Bytes(512), queue_depth: 1 }
/// #     }
/// #     fn now(&self) -> Nanos { Nanos(self.0) }
/// #     fn submit(&mut self, request: Request) -> Result<Tag, IoError> {
/// #         let end = Nanos(self.0 + 1000 * u64::from(request.sectors));
/// #         self.1.push(Completion { request, start: Nanos(self.0), end, ..Completion::default() });
/// #         Ok(Tag(0))
/// #     }
/// #     fn wait(&mut self, _: Nanos, completion: &mut Completion) -> Result<bool, IoError> {
/// #         let Some(done) = self.1.pop() else { return Ok(false) };
/// #         self.0 = done.end.0;
/// #         *completion = done;
/// #         Ok(true)
/// #     }
/// # }
/// # let mut device = Slow(0, Vec::new());
/// let pattern = Pattern {
///     kinds: &[RequestKind::Read; 2],
///     first_sectors: &[0, 8],
///     sectors: &[8, 16],
///     depth: 1,
///     contents: Contents::Noise,
/// };
/// let samples = play(&mut device, &pattern, || true)?;
/// assert_eq!(samples.submitted, [Nanos(0), Nanos(8_000)]);
/// assert_eq!(samples.ended, [Nanos(8_000), Nanos(24_000)]);
/// # Ok::<(), flashwright_probe::Failed>(())
/// ```
///
/// # Errors
/// [`Failed`] at the first request that fails or is refused: nothing more is submitted, and outstanding requests are
/// waited for, so that the device can still be used.
///
/// # Panics
/// If the columns differ in length or the depth is 0.
pub fn play<D: BlockDevice + ?Sized>(
    device: &mut D,
    pattern: &Pattern<'_>,
    mut go_on: impl FnMut() -> bool,
) -> Result<Samples, Failed> {
    let Pattern { kinds, first_sectors, sectors, depth, contents } = *pattern;
    assert!(kinds.len() == first_sectors.len() && kinds.len() == sectors.len(), "columns of one length");
    assert!(depth > 0, "at least one request outstanding");
    device.carries(contents);
    let mut samples = Samples { submitted: Vec::with_capacity(kinds.len()), ended: vec![NEVER_ENDED; kinds.len()] };
    // Outstanding requests by tag; at most `depth`, so a scan is quick.
    let mut outstanding: Vec<(Tag, usize)> = Vec::with_capacity(depth);
    let mut completion = Completion::default();
    let (mut next, mut until_look, mut going) = (0, LOOK, true);
    let mut failure: Option<(IoError, Option<usize>)> = None;
    loop {
        while going && failure.is_none() && next < kinds.len() && outstanding.len() < depth {
            let now = device.now();
            let request = Request {
                arrival: now,
                first_sector: first_sectors[next],
                sectors: sectors[next],
                kind: kinds[next],
                ..Request::default()
            };
            match device.submit(request) {
                Ok(tag) => {
                    samples.submitted.push(now);
                    outstanding.push((tag, next));
                    next += 1;
                }
                Err(error) => failure = Some((error, Some(next))),
            }
        }
        if outstanding.is_empty() {
            break;
        }
        match device.wait(Nanos(u64::MAX), &mut completion) {
            Ok(ended) => assert!(ended, "a device with a request in flight completes one"),
            Err(dead) => {
                failure.get_or_insert((dead, None));
                break;
            }
        }
        let at = outstanding.iter().position(|(tag, _)| *tag == completion.tag).expect("a completion of ours");
        let (_, index) = outstanding.swap_remove(at);
        samples.ended[index] = completion.end;
        if let Err(error) = &completion.result {
            failure.get_or_insert_with(|| (IoError::clone(error), Some(index)));
        }
        until_look -= 1;
        if until_look == 0 {
            until_look = LOOK;
            going = going && go_on();
        }
    }
    samples.ended.truncate(samples.submitted.len());
    match failure {
        None => Ok(samples),
        Some((error, request)) => Err(Failed { error, request, samples }),
    }
}

/// Lets time pass on a device with nothing outstanding.
///
/// # Errors
/// [`IoError`] of the device.
pub fn idle<D: BlockDevice + ?Sized>(device: &mut D, time: Nanos) -> Result<(), IoError> {
    let until = Nanos(device.now().0.saturating_add(time.0));
    let ended = device.wait(until, &mut Completion::default())?;
    assert!(!ended, "nothing was outstanding");
    Ok(())
}
