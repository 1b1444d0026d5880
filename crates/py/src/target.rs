//! The device under test of probes and experiments: a real device or file, or a simulated drive, with the same calls.

use crate::errors::{DeviceError, TargetError, WorkloadError, WornOutError, interruptible, run_error, within_memory};
use flashwright_block::{
    BlockDevice, Bytes, Completion, Contents, IoError, Nanos, Request, RequestKind, SECTOR_BYTES, Seed,
};
use flashwright_disk::{Access, Disk, Kind, Options};
use flashwright_probe::{Pattern, idle, play};
use flashwright_serve::{EndsWhen, Refused, Remote, RemoteOptions, Uri};
use flashwright_ssd::{Config, ControlledDrive, Controller, Ssd};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// The settings of a target from Python, as JSON text.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum Settings {
    /// A path.
    Disk { path: String, destroys_data: bool, queue_depth: u32, busy_poll: bool },
    /// An export of an NBD server, or a subsystem of NVMe/TCP.
    Remote { uri: String, destroys_data: bool, queue_depth: u32 },
    /// A drive's TOML.
    Ssd { config: String },
}

enum Device {
    Disk(Box<Disk>),
    Remote(Box<Remote>),
    Ssd(Box<dyn ControlledDrive>),
}

/// A device that is probed.
#[pyclass(module = "flashwright._core", frozen)]
pub struct Target {
    device: Mutex<Option<Device>>,
    settings: Settings,
    seed: Seed,
    /// Its visible properties.
    info: String,
    /// What the data of writes are like.
    contents: Mutex<Contents>,
}

/// Interval between two checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);
/// Largest piece of a device that is trimmed at once.
const PURGE_SECTORS: u64 = (1 << 30) / SECTOR_BYTES;

type Columns<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

fn failed(error: &IoError) -> PyErr {
    match error {
        IoError::WornOut { .. } => WornOutError::new_err(error.to_string()),
        _ => DeviceError::new_err(error.to_string()),
    }
}

/// What a target at a URI is called.
pub fn kind_of(uri: &str) -> &'static str {
    if uri.starts_with("nvme") { "nvme-tcp" } else { "nbd" }
}

/// An export of an NBD server, or a namespace of an NVMe/TCP target, for writing only with consent.
pub fn remote(uri: &str, destroys_data: bool, depth: u32, seed: Seed) -> PyResult<Remote> {
    let refused = |refused: Refused| TargetError::new_err((refused.what, refused.hint));
    let uri: Uri = uri.parse().map_err(refused)?;
    Remote::open(&uri, RemoteOptions { destroys_data, depth, seed }).map_err(refused)
}

fn open(settings: &Settings, seed: Seed) -> PyResult<(Device, serde_json::Value)> {
    match settings {
        Settings::Disk { path, destroys_data, queue_depth, busy_poll } => {
            let access = if *destroys_data { Access::DestroysData } else { Access::ReadOnly };
            let target = flashwright_disk::open(Path::new(path), access, Bytes(0))
                .map_err(|refusal| TargetError::new_err((refusal.to_string(), refusal.hint())))?;
            let properties = json!({
                "kind": if target.kind == Kind::File { "file" } else { "block-device" },
                "writes_allowed": destroys_data, "real_time": true,
            });
            let options = Options { depth: *queue_depth, seed, busy_poll: *busy_poll, ..Options::default() };
            let disk =
                Disk::new(target, options).map_err(|error| TargetError::new_err((error.to_string(), error.hint())))?;
            Ok((Device::Disk(Box::new(disk)), properties))
        }
        Settings::Remote { uri, destroys_data, queue_depth } => {
            let remote = remote(uri, *destroys_data, *queue_depth, seed)?;
            let properties = json!({ "kind": kind_of(uri), "writes_allowed": destroys_data, "real_time": true });
            Ok((Device::Remote(Box::new(remote)), properties))
        }
        Settings::Ssd { config } => {
            let config = Config::from_toml(config, "config").map_err(crate::config_error)?;
            let ssd = Ssd::new(&config, seed, false).map_err(|error| run_error(&error.into(), false))?;
            let properties = json!({ "kind": "simulated", "writes_allowed": true, "real_time": false });
            Ok((Device::Ssd(Controller::boxed(ssd, seed)), properties))
        }
    }
}

/// When playing ends early.
#[derive(Clone)]
struct Over {
    until: Option<Instant>,
    /// What Ctrl-C raised.
    interrupted: Arc<Mutex<Option<PyErr>>>,
}

impl Over {
    fn is_over(&self) -> bool {
        let late = self.until.is_some_and(|until| Instant::now() >= until);
        let mut interrupted = self.interrupted.lock().expect("nothing that holds it panics");
        if interrupted.is_none() {
            *interrupted = Python::attach(|py| py.check_signals()).err();
        }
        late || interrupted.is_some()
    }
}

impl Device {
    /// See [`Remote::ends_when`]; others always answer.
    fn ends_when(&mut self, ends: Option<EndsWhen>) {
        if let Self::Remote(remote) = self {
            remote.ends_when(ends);
        }
    }

    fn as_device(&mut self) -> &mut dyn BlockDevice {
        match self {
            Self::Disk(disk) => &mut **disk,
            Self::Remote(remote) => &mut **remote,
            Self::Ssd(ssd) => &mut **ssd,
        }
    }
}

#[pymethods]
impl Target {
    #[new]
    fn new(py: Python<'_>, settings: &str, seed: u64) -> PyResult<Self> {
        let settings: Settings = serde_json::from_str(settings)
            .map_err(|error| WorkloadError::new_err(format!("settings of the target: {error}")))?;
        let seed = Seed(seed);
        let asked = settings.clone();
        // A server may take its time for the greeting.
        let (mut device, mut properties) = interruptible(py, move || open(&asked, seed))?;
        let info = device.as_device().info();
        properties["name"] = json!(info.name);
        properties["capacity_bytes"] = json!(info.capacity.0);
        properties["block_bytes"] = json!(info.sector.0);
        properties["queue_depth"] = json!(info.queue_depth);
        let contents = Mutex::new(Contents::Noise);
        Ok(Self { device: Mutex::new(Some(device)), settings, seed, info: properties.to_string(), contents })
    }

    /// Its visible properties, as JSON.
    fn info(&self) -> &str {
        &self.info
    }

    /// The device's clock, nanoseconds.
    fn now(&self) -> PyResult<u64> {
        self.with(|device| Ok(device.as_device().now().0))
    }

    /// Lets time pass.
    fn idle(&self, py: Python<'_>, nanos: u64) -> PyResult<()> {
        py.detach(|| self.with(|device| idle(device.as_device(), Nanos(nanos)).map_err(|error| failed(&error))))
    }

    /// What the data of writes are like from now on: so much of each sector is noise and the rest zeros, or noise repeats.
    fn carry(&self, noise_share: f64, repeats: bool) -> PyResult<()> {
        if !(0.0..=1.0).contains(&noise_share) {
            return Err(WorkloadError::new_err(format!("noise_share: found {noise_share}, expected 0 to 1")));
        }
        // At most the bytes of a sector, as a share of it.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let noise = (noise_share * SECTOR_BYTES as f64).round() as u16;
        *self.contents.lock().expect("no call before this one panicked") = match (repeats, u64::from(noise)) {
            (true, _) => Contents::Repeated,
            (false, SECTOR_BYTES) => Contents::Noise,
            (false, _) => Contents::Shrinking { noise },
        };
        Ok(())
    }

    /// Plays requests in a closed loop; returns when each was submitted and completed. After `seconds` of wall-clock
    /// time no more are submitted; those that were not are missing at the end.
    #[pyo3(signature = (kinds, first_sectors, sectors, depth, seconds=None))]
    fn play<'py>(
        &self,
        py: Python<'py>,
        kinds: PyReadonlyArray1<'py, u8>,
        first_sectors: PyReadonlyArray1<'py, u64>,
        sectors: PyReadonlyArray1<'py, u32>,
        depth: usize,
        seconds: Option<f64>,
    ) -> PyResult<Columns<'py>> {
        let known = [RequestKind::Read, RequestKind::Write, RequestKind::Trim, RequestKind::Flush];
        let wrong = || WorkloadError::new_err("pattern: expected columns of one length, known kinds, and a depth");
        let kinds = kinds.as_slice()?.iter().map(|kind| known.get(usize::from(*kind)).copied());
        let kinds: Vec<RequestKind> = kinds.collect::<Option<_>>().ok_or_else(wrong)?;
        let (first_sectors, sectors) = (first_sectors.as_slice()?, sectors.as_slice()?);
        if kinds.len() != first_sectors.len() || kinds.len() != sectors.len() || depth == 0 {
            return Err(wrong());
        }
        let wrong_time = |_| WorkloadError::new_err("pattern: expected seconds from 0 up");
        let limit = seconds.map(Duration::try_from_secs_f64).transpose().map_err(wrong_time)?;
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        let contents = *self.contents.lock().expect("no call before this one panicked");
        let interrupted = Arc::new(Mutex::new(None));
        let over = Over { until, interrupted: Arc::clone(&interrupted) };
        let samples = py.detach(|| {
            let (mut looked, asked) = (Instant::now(), over.clone());
            let mut ended = false;
            let go_on = || {
                if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    ended = asked.is_over();
                }
                !ended
            };
            let pattern = Pattern { kinds: &kinds, first_sectors, sectors, depth, contents };
            self.with(|device| {
                device.ends_when(Some(Box::new(move || over.is_over())));
                let played = play(device.as_device(), &pattern, go_on).map_err(|ended| failed(&ended.error));
                device.ends_when(None);
                played
            })
        });
        if let Some(stopped) = interrupted.lock().expect("nothing that holds it panics").take() {
            return Err(stopped);
        }
        let samples = samples?;
        let column = |times: Vec<Nanos>| times.into_iter().map(|time| time.0).collect::<Vec<u64>>().into_pyarray(py);
        Ok((column(samples.submitted), column(samples.ended)))
    }

    /// Brings the device as close to new as possible: a simulated drive is rebuilt, a real one is trimmed completely.
    /// Returns false if it does not support that.
    fn purge(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| {
            if let Settings::Ssd { .. } = self.settings {
                let (device, _) = open(&self.settings, self.seed)?;
                *self.device()? = Some(device);
                return Ok(true);
            }
            self.with(|device| {
                let device = device.as_device();
                let end = device.info().capacity.0 / SECTOR_BYTES;
                for first_sector in (0..end).step_by(PURGE_SECTORS as usize) {
                    let sectors = u32::try_from((end - first_sector).min(PURGE_SECTORS)).expect("a GiB at most");
                    let trim = Request { kind: RequestKind::Trim, first_sector, sectors, ..Request::default() };
                    let mut completion = Completion::default();
                    device.execute(trim, &mut completion).map_err(|error| failed(&error))?;
                    match completion.result.map_err(|error| *error) {
                        Ok(()) => {}
                        Err(IoError::Device(_)) if first_sector == 0 => return Ok(false),
                        Err(error) => return Err(failed(&error)),
                    }
                }
                Ok(true)
            })
        })
    }

    /// Closes the device.
    fn close(&self) -> PyResult<()> {
        *self.device()? = None;
        Ok(())
    }
}

impl Target {
    /// The device, which no other call uses. Waiting for one could deadlock: it may need the GIL, or have called this one.
    fn device(&self) -> PyResult<MutexGuard<'_, Option<Device>>> {
        match self.device.try_lock() {
            Err(TryLockError::WouldBlock) => Err(DeviceError::new_err("the device is at work for another call")),
            found => Ok(found.expect("no call before this one panicked")),
        }
    }

    /// Runs a function on the device. After a panic the device is gone.
    fn with<T>(&self, work: impl FnOnce(&mut Device) -> PyResult<T>) -> PyResult<T> {
        let mut device = self.device()?;
        let open = device.as_mut().ok_or_else(|| DeviceError::new_err("the device is closed"))?;
        within_memory(|| work(open)).inspect_err(|error| {
            Python::attach(|py| {
                if error.is_instance_of::<crate::errors::InternalError>(py) {
                    *device = None;
                }
            });
        })
    }
}
