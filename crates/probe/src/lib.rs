//! What a probe does to a drive: a pattern of requests is played in a closed loop, and each request's times come back.
//!
//! It sees the block-device seam and nothing else: Cargo lists no simulator here, so a probe of a simulated drive knows no
//! more than one of a real drive does. What the times mean is decided elsewhere.

use flashwright_block::{BlockDevice, Completion, IoError, Nanos, Request, RequestKind, Tag};

/// Requests to play, column by column; all columns have the same length.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<'a> {
    /// What is asked for.
    pub kinds: &'a [RequestKind],
    /// First sector touched.
    pub first_sectors: &'a [u64],
    /// Sectors touched; 0 for flushes.
    pub sectors: &'a [u32],
    /// Requests outstanding, 1 or more.
    pub depth: usize,
}

/// When the requests of a pattern were handed over and when they ended, on the device's clock. Requests that were never
/// handed over, because the play was stopped, are missing from the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// When each was handed over.
    pub submitted: Vec<Nanos>,
    /// When each was done.
    pub ended: Vec<Nanos>,
}

/// Completions between two questions whether to go on.
const LOOK: usize = 64;

/// Plays a pattern: as many requests outstanding as its depth says, the next handed over when one ends. All have ended when
/// it returns. `go_on` is asked now and then; when it says no, nothing more is handed over.
///
/// ```
/// # use flashwright_block::{BlockDevice, Bytes, Completion, DeviceInfo, IoError, Nanos, Request, RequestKind, Tag};
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
/// let pattern = Pattern { kinds: &[RequestKind::Read; 2], first_sectors: &[0, 8], sectors: &[8, 16], depth: 1 };
/// let samples = play(&mut device, &pattern, || true)?;
/// assert_eq!(samples.submitted, [Nanos(0), Nanos(8_000)]);
/// assert_eq!(samples.ended, [Nanos(8_000), Nanos(24_000)]);
/// # Ok::<(), IoError>(())
/// ```
///
/// # Errors
/// [`IoError`] of the device; what was outstanding is then lost.
///
/// # Panics
/// If the columns differ in length or the depth is 0.
pub fn play<D: BlockDevice + ?Sized>(
    device: &mut D,
    pattern: &Pattern<'_>,
    mut go_on: impl FnMut() -> bool,
) -> Result<Samples, IoError> {
    let Pattern { kinds, first_sectors, sectors, depth } = *pattern;
    assert!(kinds.len() == first_sectors.len() && kinds.len() == sectors.len(), "columns of one length");
    assert!(depth > 0, "at least one request outstanding");
    let mut samples = Samples { submitted: Vec::with_capacity(kinds.len()), ended: vec![Nanos(0); kinds.len()] };
    // Outstanding requests by tag; as many as the depth, so looking through them is quick.
    let mut outstanding: Vec<(Tag, usize)> = Vec::with_capacity(depth);
    let mut completion = Completion::default();
    let (mut next, mut until_look, mut going) = (0, LOOK, true);
    loop {
        while going && next < kinds.len() && outstanding.len() < depth {
            let now = device.now();
            let tag = device.submit(Request {
                arrival: now,
                first_sector: first_sectors[next],
                sectors: sectors[next],
                kind: kinds[next],
                ..Request::default()
            })?;
            samples.submitted.push(now);
            outstanding.push((tag, next));
            next += 1;
        }
        if outstanding.is_empty() {
            break;
        }
        let ended = device.wait(Nanos(u64::MAX), &mut completion)?;
        assert!(ended, "a device with a request in flight completes one");
        let at = outstanding.iter().position(|(tag, _)| *tag == completion.tag).expect("a completion of ours");
        let (_, index) = outstanding.swap_remove(at);
        samples.ended[index] = completion.end;
        until_look -= 1;
        if until_look == 0 {
            until_look = LOOK;
            going = going && go_on();
        }
    }
    samples.ended.truncate(samples.submitted.len());
    Ok(samples)
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
