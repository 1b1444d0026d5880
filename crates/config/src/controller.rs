//! `[controller]`: settings of the part of a drive between its interface and its flash.

use crate::problems::Problems;
use crate::values::Rate;
use flashwright_block::{ArbiterName, ArbiterSettings, Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[controller]`: interface, firmware and buffers. The defaults switch the controller off: the drive then runs as if
/// it had no such table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ControllerConfig {
    /// Payload rate of the interface in one direction, or `"none"` if transfers take no time.
    pub interface_rate: Rate,
    /// Whether data can cross the interface in both directions at once.
    pub interface: Interface,
    /// Commands that the drive accepts at once; the others wait in the driver. 1 is a drive without command queuing; 0
    /// accepts as many as the flash below (`host.queue-depth`).
    #[schemars(range(min = 0, max = 65_536))]
    pub queue_depth: u32,
    /// Firmware time of a read command. The firmware works on one command at a time.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub read_overhead: Nanos,
    /// Firmware time of a write command.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub write_overhead: Nanos,
    /// Largest part of a command that the flash works on at a time. Commands are cut at multiples of this size, and
    /// each part starts when the one before it is done. `"0 B"` is no limit.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub command_limit: Bytes,
    /// Time during which the flash gets no new work when it switches between reading and writing.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub turnaround: Nanos,
    /// Jitter of the times that the host sees, as a share of a command's time in the drive. A normal random delay is
    /// added to each command: its mean is twice this share, its standard deviation this share, and it is cut at zero
    /// and at four times this share. Flash times stay exact.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub noise: f64,
    /// RAM for written data.
    pub write_buffer: WriteBufferConfig,
    /// RAM for data that was read.
    pub read_buffer: ReadBufferConfig,
    /// The submission queues of the host.
    pub queues: QueuesConfig,
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
            queues: QueuesConfig::default(),
        }
    }
}

/// The settings of a controller within a saved state, whose format knows no flattened tables.
pub mod controller_as_toml {
    use super::ControllerConfig;
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _, ser::Error as _};

    /// Writes them as TOML.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(config: &ControllerConfig, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text(config).map_err(S::Error::custom)?)
    }

    /// Reads them.
    ///
    /// # Errors
    /// Those of the deserializer, and text that is no controller's.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ControllerConfig, D::Error> {
        read(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }

    // Apart from the serializers, so that both are compiled once, here.
    fn text(config: &ControllerConfig) -> Result<String, toml::ser::Error> {
        toml::to_string(config)
    }

    fn read(text: &str) -> Result<ControllerConfig, toml::de::Error> {
        toml::from_str(text)
    }
}

/// `[controller.queues]`: the submission queues of the host. Requests of tenants come through a queue each, all others through one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
pub struct QueuesConfig {
    /// Which queue the drive takes its next command from, once it has a place for one (`controller.queue-depth`).
    pub arbiter: ArbiterName,
    /// Time from the doorbell that a host rings for a command until the drive has fetched the command.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub doorbell: Nanos,
    /// Time from the interrupt for a completion until the host has seen the completion.
    #[schemars(extend("x-maximum" = "10 s"))]
    pub interrupt: Nanos,
    /// Completions of a queue for which there is one interrupt (the aggregation threshold of NVMe); 1 is an interrupt for each.
    #[schemars(range(min = 1, max = 256))]
    pub aggregation_threshold: u32,
    /// Time after which fewer completions than that get their interrupt (the aggregation time of NVMe).
    #[schemars(extend("x-maximum" = "10 s"))]
    pub aggregation_time: Nanos,
    /// Settings of the arbiters, each in a table named after it.
    #[serde(flatten)]
    pub arbiters: ArbiterSettings,
}

impl Default for QueuesConfig {
    fn default() -> Self {
        Self {
            arbiter: ArbiterName::Fifo,
            doorbell: Nanos(0),
            interrupt: Nanos(0),
            aggregation_threshold: 1,
            aggregation_time: Nanos(0),
            arbiters: ArbiterSettings::default(),
        }
    }
}

impl QueuesConfig {
    /// Whether the drive takes commands as they come, at no cost.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let costs = self.doorbell.0 > 0 || self.interrupt.0 > 0 || self.aggregation_threshold > 1;
        self.arbiter == ArbiterName::Fifo && !costs
    }
}

/// Whether data cross the interface in one direction at a time or in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// One direction at a time, as on SATA.
    #[default]
    HalfDuplex,
    /// Both at once, as on PCI Express.
    FullDuplex,
}

/// `[controller.write-buffer]`: RAM that acknowledges writes before the flash has programmed them. It holds sectors of
/// requests, not pages. The RAM before the translation layer (`[ram]`) is separate, and a drive may have both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WriteBufferConfig {
    /// Size of the buffer; `"0 B"` is no buffer. A write that fits waits until there is room for all of it (or for its
    /// next part, see `entry`), crosses the link, and is acknowledged. A loss of power takes what was not flushed.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub size: Bytes,
    /// Longest entry, for writes that fit. A longer write is cut at multiples of this size, and each part takes and
    /// frees room by itself, so data cross the link while earlier data are being programmed. `"0 B"` keeps writes
    /// whole. This setting does not affect a write larger than the buffer: such a write fills the buffer, waits until
    /// it is empty, and fills it again.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub entry: Bytes,
    /// What a second write to buffered data replaces.
    pub kind: BufferKind,
    /// When the buffer writes data to the flash.
    pub drain: Drain,
    /// How a write larger than the buffer is handled.
    pub oversized: Oversized,
    /// Whether adjacent entries are merged, up to `controller.command-limit`, and reach the flash as one write.
    pub combine: bool,
    /// Entries that may be on their way to the flash at once.
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

/// Whether rewritten data are replaced in the buffer (Kim 2011, section 4.3: a buffer or a cache).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferKind {
    /// Entries leave in order of arrival; only data of the newest entry are replaced in place.
    #[default]
    Fifo,
    /// Any buffered sector is replaced in place; the least recently written entry leaves first.
    Cache,
}

/// When a write buffer writes data out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Drain {
    /// Only when room is needed.
    #[default]
    Lazy,
    /// As soon as fewer than `flushes` entries are on their way to the flash.
    Eager,
}

/// How a write larger than the buffer is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Oversized {
    /// It bypasses the buffer and is acknowledged when the flash holds all of it: the step in Kim 2011, Figure 7a.
    #[default]
    Through,
    /// It passes through the buffer in parts. Each part waits until the earlier data are on flash; the write is
    /// acknowledged when the last part is in the buffer.
    Stream,
}

/// `[controller.read-buffer]`: RAM that keeps the data read last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReadBufferConfig {
    /// Size of the buffer; `"0 B"` is no buffer. A larger read passes through and leaves nothing in it.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub size: Bytes,
    /// A smaller read bypasses the buffer.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub least: Bytes,
    /// Bytes read ahead when a read continues where the previous one ended; `"0 B"` turns read-ahead off.
    #[schemars(extend("x-maximum" = "1 TiB", "x-multiple-of" = "512 B", "x-expected" = "a multiple of 512 B, at most {max}"))]
    pub prefetch: Bytes,
}

impl ControllerConfig {
    /// Whether no setting has an effect, so that the drive has no controller.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.interface_rate == Rate(None)
            && self.queue_depth == 0
            && self.noise == 0.0
            && self.queues.is_plain()
            && [self.read_overhead, self.write_overhead, self.turnaround].iter().all(|time| time.0 == 0)
            && [self.command_limit, self.write_buffer.size, self.read_buffer.size].iter().all(|size| size.0 == 0)
    }

    /// Whether requests reach the flash as the host sent them, only later: no buffer merges or keeps them, and none is cut
    /// within a page.
    ///
    /// ```
    /// use flashwright_block::Bytes;
    /// use flashwright_config::ControllerConfig;
    /// let link = ControllerConfig { queue_depth: 32, command_limit: Bytes(64 << 10), ..ControllerConfig::default() };
    /// assert!(link.only_delays(Bytes(4096)) && !link.only_delays(Bytes(96 << 10)));
    /// ```
    #[must_use]
    pub fn only_delays(&self, page_size: Bytes) -> bool {
        self.write_buffer.size.0 == 0
            && self.read_buffer.size.0 == 0
            && self.command_limit.0.is_multiple_of(page_size.0)
    }

    /// Settings that contradict each other.
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
        let queues = &self.queues;
        problems.unless(
            !(2..=256).contains(&queues.aggregation_threshold) || queues.aggregation_time.0 > 0,
            "controller.queues.aggregation-time",
            queues.aggregation_time,
            "a time, after which fewer completions than controller.queues.aggregation-threshold get their interrupt",
        );
        let fits = |size: Bytes| read.size.0 == 0 || size <= read.size;
        let at_most = format!("no more than controller.read-buffer.size = {}", read.size);
        problems.unless(fits(read.least), "controller.read-buffer.least", read.least, &at_most);
        problems.unless(fits(read.prefetch), "controller.read-buffer.prefetch", read.prefetch, &at_most);
    }
}
