//! `[controller]`: what users write about the part of a drive between its interface and its flash.

use crate::problems::Problems;
use crate::values::Rate;
use flashwright_block::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[controller]`: interface, firmware and buffers. With the defaults there is none, and the drive runs as if it had no
/// such table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ControllerConfig {
    /// Payload rate of the interface in one direction, or `"none"` where it costs no time.
    pub interface_rate: Rate,
    /// Whether data cross in both directions at once.
    pub interface: Interface,
    /// Commands that the drive takes at once, the rest waits in the driver: 1 is a drive without command queuing; 0
    /// takes as many as the flash below (`host.queue-depth`).
    #[schemars(range(min = 0, max = 65_536))]
    pub queue_depth: u32,
    /// Firmware time of a read command. The firmware works on one command at a time.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub read_overhead: Nanos,
    /// Firmware time of a write command.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub write_overhead: Nanos,
    /// Bytes of one command that the flash works on at a time, cut at multiples of this address; the rest follows when
    /// they are done. `"0 B"` is no limit.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub command_limit: Bytes,
    /// Time for which nothing new goes to the flash when that changes between reading and writing.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub turnaround: Nanos,
    /// How unsteady the times are that the host sees, as a share of the time a command takes in the drive: each is longer by
    /// twice this share in the mean, with this share as the standard deviation, cut at zero and at four times it. The flash
    /// below does not feel it.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub noise: f64,
    /// RAM for what is written.
    pub write_buffer: WriteBufferConfig,
    /// RAM for what was read.
    pub read_buffer: ReadBufferConfig,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            interface_rate: Rate(None),
            interface: Interface::HalfDuplex,
            queue_depth: 0,
            read_overhead: Nanos(0),
            write_overhead: Nanos(0),
            command_limit: Bytes(0),
            turnaround: Nanos(0),
            noise: 0.0,
            write_buffer: WriteBufferConfig::default(),
            read_buffer: ReadBufferConfig::default(),
        }
    }
}

/// In how many directions data cross the interface at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// One at a time, as SATA.
    #[default]
    HalfDuplex,
    /// Both, as PCI Express.
    FullDuplex,
}

/// `[controller.write-buffer]`: RAM that acknowledges writes before flash has them. It holds sectors of requests, not
/// pages: the RAM before the translation layer (`[ram]`) is another thing, and a drive may have both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WriteBufferConfig {
    /// Room for data; `"0 B"` is no buffer. A write that fits waits until there is room for all of it
    /// (or for its next part, see `entry`), crosses the link, and is acknowledged.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub size: Bytes,
    /// Longest entry, for writes that fit: a longer one is cut at multiples of this address, and each part takes and frees
    /// room by itself, so that data cross the link while earlier ones go to the flash. `"0 B"` keeps writes whole. A write
    /// larger than the buffer is never helped by it: it fills the buffer, waits until that is empty, and fills it again.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub entry: Bytes,
    /// What a second write to buffered data finds.
    pub kind: BufferKind,
    /// When data go to the flash.
    pub drain: Drain,
    /// What becomes of a write larger than the buffer.
    pub oversized: Oversized,
    /// Whether entries that adjoin are joined, up to `controller.command-limit`, so that they reach the flash as one write.
    pub combine: bool,
    /// Entries on their way to the flash at once.
    #[schemars(range(min = 1, max = 1_024))]
    pub flushes: u32,
}

impl Default for WriteBufferConfig {
    fn default() -> Self {
        Self {
            size: Bytes(0),
            entry: Bytes(0),
            kind: BufferKind::Fifo,
            drain: Drain::Lazy,
            oversized: Oversized::Through,
            combine: false,
            flushes: 1,
        }
    }
}

/// How a write buffer is looked up (Kim 2011, section 4.3: a buffer or a cache).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferKind {
    /// Entries leave in order of arrival; only what lies in the newest is replaced in place.
    #[default]
    Fifo,
    /// Any buffered sector is replaced in place; the entry not written for longest leaves first.
    Cache,
}

/// When a write buffer lets go of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Drain {
    /// When room is needed.
    #[default]
    Lazy,
    /// As soon as fewer than `flushes` entries are on their way to the flash.
    Eager,
}

/// What becomes of a write larger than the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Oversized {
    /// It passes by the buffer and is acknowledged when flash holds all of it: the step of Kim 2011, Figure 7a.
    #[default]
    Through,
    /// It goes through the buffer part by part, each after what was there before is on flash, and is acknowledged when the
    /// last is in.
    Stream,
}

/// `[controller.read-buffer]`: RAM that keeps what was read last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReadBufferConfig {
    /// Room for data; `"0 B"` is no buffer. A larger read passes through it and leaves nothing.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub size: Bytes,
    /// A smaller read passes by it.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub least: Bytes,
    /// Bytes read ahead of a reader that goes on where it stopped; `"0 B"` reads nothing ahead.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub prefetch: Bytes,
}

impl ControllerConfig {
    /// Whether nothing of this changes anything.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.interface_rate == Rate(None)
            && self.queue_depth == 0
            && self.noise == 0.0
            && [self.read_overhead, self.write_overhead, self.turnaround].iter().all(|time| time.0 == 0)
            && [self.command_limit, self.write_buffer.size, self.read_buffer.size].iter().all(|size| size.0 == 0)
    }

    /// What contradicts itself.
    pub(crate) fn problems(&self, problems: &mut Problems) {
        let (write, read) = (&self.write_buffer, &self.read_buffer);
        let without_size = WriteBufferConfig { size: Bytes(0), ..write.clone() };
        problems.unless(
            write.size.0 > 0 || without_size == WriteBufferConfig::default(),
            "controller.write-buffer.size",
            "0 B (no buffer)",
            "a size, which the other settings of controller.write-buffer need",
        );
        problems.unless(
            read.size.0 > 0 || *read == ReadBufferConfig::default(),
            "controller.read-buffer.size",
            "0 B (no buffer)",
            "a size, which the other settings of controller.read-buffer need",
        );
        let fits = |size: Bytes| read.size.0 == 0 || size <= read.size;
        let at_most = format!("no more than controller.read-buffer.size = {}", read.size);
        problems.unless(fits(read.least), "controller.read-buffer.least", read.least, &at_most);
        problems.unless(fits(read.prefetch), "controller.read-buffer.prefetch", read.prefetch, &at_most);
    }
}
