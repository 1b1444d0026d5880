//! The server: listeners, threads, and their end.
//!
//! ```text
//!                        ┌─ as fast as it goes: each thread carries out its requests
//!   listener ─► thread ──┤                                                              ─► drive
//!   listener ─► thread ──┴─ paced: one thread has all connections and the drive's clock
//! ```

use crate::clients::serve_each;
use crate::connection::{End, negotiate, transmit};
use crate::exec::Drive;
use crate::input::Input;
use crate::listen::{Address, ListenError, Listener, Stream};
use crate::negotiate::Export;
use crate::nvme::{self, Session};
use crate::pace::{Pace, Pacer, Pacing, Requests};
use crate::record::{DataRecorder, Recorder};
use crate::served::Served;
use crate::shared::{Farewell, GRACE, Shared, locked};
use crate::vfio::{self, Seat};
use crate::{control, http, metrics, watch};
use flashwright_block::Zoning;
use flashwright_nvme::Subsystem;
use flashwright_nvme::subsystem::About;
use flashwright_sim::Latency;
use flashwright_sim::crash::{About as Recorded, RecordingError};
use flashwright_workload::trace::TraceError;
use serde_json::{Map, Value, json};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How a drive is served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where NBD clients connect.
    pub nbd: Vec<Address>,
    /// Where hosts of NVMe/TCP connect.
    pub nvme_tcp: Vec<Address>,
    /// The sockets at which virtual machines attach the drive as a function on PCIe, each for one at a time.
    pub vfio_user: Vec<PathBuf>,
    /// Whether other machines may connect.
    pub anywhere: bool,
    /// Whether clients may only read.
    pub read_only: bool,
    /// When replies leave.
    pub pace: Pace,
    /// Bytes that the commands of all clients may ask for or bring before they are answered; a quarter of it for one client if
    /// they are paced. Further ones wait on their sockets. One command is carried out in any case. Without pacing, commands of
    /// up to a MiB don't count.
    pub in_flight_max: u64,
    /// A trace of what is served.
    pub record: Option<PathBuf>,
    /// Where what is served is recorded with its data, and on what drive that is.
    pub record_data: Option<(PathBuf, Recorded)>,
    /// A control socket.
    pub ctl: Option<Address>,
    /// Where Prometheus finds the figures.
    pub metrics: Option<Address>,
    /// Where a browser finds a page that shows the drive at work.
    pub watch: Option<Address>,
}

/// Without a wish: eight of the longest requests of the protocol.
const IN_FLIGHT_MAX_BYTES: u64 = 256 << 20;

impl Default for Settings {
    fn default() -> Self {
        Self {
            nbd: Vec::new(),
            nvme_tcp: Vec::new(),
            vfio_user: Vec::new(),
            anywhere: false,
            read_only: false,
            pace: Pace::default(),
            in_flight_max: IN_FLIGHT_MAX_BYTES,
            record: None,
            record_data: None,
            ctl: None,
            metrics: None,
            watch: None,
        }
    }
}

/// Why a drive can't be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// An address.
    #[error("{option}: {error}")]
    Listen {
        /// The setting that has it.
        option: &'static str,
        /// What is wrong.
        error: ListenError,
    },
    /// The trace of what is served.
    #[error(transparent)]
    Record(#[from] TraceError),
    /// The recording with data of what is served.
    #[error(transparent)]
    RecordData(#[from] RecordingError),
    /// What the drive keeps of its namespaces.
    #[error("nvme_tcp: {0}")]
    Namespaces(&'static str),
    /// A drive with zones, of which what was asked for knows nothing.
    #[error("{0}")]
    Zones(String),
    /// The system has no more files or threads.
    #[error("the server can't start: {0}")]
    System(#[from] std::io::Error),
}

/// A drive that is served.
///
/// ```
/// use flashwright_block::Seed;
/// use flashwright_serve::{Server, Settings};
/// use flashwright_sim::{LiveRun, Precondition};
/// use flashwright_ssd::DriveConfig;
///
/// let drive = LiveRun::new(&DriveConfig::default(), Seed(1), Precondition::Empty, || false)?;
/// let settings = Settings { nbd: vec!["tcp:127.0.0.1:0".parse()?], ..Settings::default() };
/// let server = Server::start(drive, &settings)?;
/// assert!(server.uris()[0].starts_with("nbd://127.0.0.1:"));
/// let stopped = server.stop();
/// assert_eq!(stopped.served.expect("it lives").figures().completed, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server<S> {
    shared: Arc<Shared<S>>,
    uris: Vec<String>,
    addresses: Vec<(&'static str, String)>,
    /// A listener's thread ends after those of its clients.
    threads: Vec<JoinHandle<()>>,
}

/// What is left of a server.
pub struct Stopped<S> {
    /// The device; none if a thread panicked with it.
    pub served: Option<S>,
    /// The last figures.
    pub stats: Value,
    /// What people should know.
    pub notes: Vec<String>,
    /// Those of the notes that tell of an output that is lost: it was asked for and is not there, or not whole.
    pub lost: Vec<String>,
}

impl<S: Served> Server<S> {
    /// Serves a device.
    ///
    /// # Errors
    /// [`ServeError`]; nothing listens then.
    pub fn start(mut served: S, settings: &Settings) -> Result<Self, ServeError> {
        crate::arenas::share();
        let open = |option, address: &Address| {
            Listener::open(address, settings.anywhere).map_err(|error| ServeError::Listen { option, error })
        };
        let all = |option, addresses: &[Address]| {
            addresses.iter().map(|address| open(option, address)).collect::<Result<Vec<Listener>, _>>()
        };
        let zoning = served.zoned().map(|zoned| zoned.zoning());
        check_zones(zoning.as_ref(), settings)?;
        let (nbd, nvme) = (all("nbd", &settings.nbd)?, all("nvme_tcp", &settings.nvme_tcp)?);
        let vfio: Vec<Address> = settings.vfio_user.iter().cloned().map(Address::Unix).collect();
        let vfio = all("vfio_user", &vfio)?;
        let beside =
            |option, address: &Option<Address>| address.as_ref().map(|address| open(option, address)).transpose();
        let ctl = beside("ctl", &settings.ctl)?;
        let (metrics, watch) = (beside("metrics", &settings.metrics)?, beside("watch", &settings.watch)?);
        let info = served.info();
        let page = u32::try_from(served.page_bytes()).unwrap_or(4096);
        let real = served.real_time()?;
        let export = Export {
            description: served.description(),
            bytes: info.capacity.0,
            minimum: u32::try_from(info.sector.0).unwrap_or(512).max(512),
            preferred: if page.is_power_of_two() { page.max(512) } else { 4096 },
            read_only: settings.read_only,
            name: info.name,
        };
        let recorder = settings.record.as_deref().map(|path| Recorder::create(path, &export.name)).transpose()?;
        let recent = watch.is_some().then(Latency::default);
        let data_recorder =
            settings.record_data.as_ref().map(|(path, about)| DataRecorder::create(path, about)).transpose()?;
        let placement = served.placed().map(|placed| placed.placement());
        let mut subsystem = nvme.first().or(vfio.first()).map(|listener| {
            let address = listener.host_and_port();
            Subsystem::new(About {
                model: format!("Flashwright {}", export.name),
                bytes: export.bytes,
                unit_bytes: zoning.map_or(u64::from(export.minimum), |zoning| zoning.grain.0),
                page_bytes: served.page_bytes(),
                untorn_bytes: served.untorn_bytes(),
                trims_to_zeros: served.trims_to_zeros(),
                placement,
                zoning,
                is_read_only: settings.read_only,
                is_v6: address.0.contains(':'),
                address,
            })
        });
        let nqn = subsystem.as_ref().map(|subsystem| subsystem.nqn.clone()).unwrap_or_default();
        if let Some(subsystem) = subsystem.as_mut().filter(|_| !served.kept().is_empty()) {
            subsystem.restore(served.kept()).map_err(ServeError::Namespaces)?;
        }
        let mut drive = Drive { served, recorder, data_recorder, failed: 0, recent, subsystem, cuts: 0, mounts: 0 };
        drive.carry_out_chores();
        let hidden = drive.served.hides_handles().filter(|_| drive.subsystem.is_some());
        if let Some((subsystem, mut behind)) = drive.with_subsystem() {
            subsystem.watch_moves(&mut behind);
        }
        let (pacing, wakes) = match real {
            Some(real) => (Pacing::of_device(real.clock), Some(real.wakes)),
            None => (Pacing::new(settings.pace), None),
        };
        let shared = Arc::new(Shared::new(drive, export, pacing, settings.in_flight_max)?);
        hidden.into_iter().for_each(|why| shared.note(why.to_owned()));
        zoning.and_then(|zoning| odd_size(&zoning)).into_iter().for_each(|why| shared.note(why));
        let (uris, addresses) = (Vec::new(), Vec::new());
        let mut server = Self { uris, addresses, threads: Vec::new(), shared };
        server.tell(ctl, metrics, watch)?;
        let pacer = server.pacer(wakes)?;
        let speaks = |protocol: Protocol| move |listener: Listener| (protocol, listener);
        let listeners = nbd.into_iter().map(speaks(Protocol::Nbd)).chain(nvme.into_iter().map(speaks(Protocol::Nvme)));
        let listeners = listeners.chain(vfio.into_iter().map(speaks(Protocol::Vfio)));
        for (protocol, listener) in listeners {
            server.uris.push(match protocol {
                Protocol::Nbd => listener.uri(),
                Protocol::Nvme => format!("nvme+tcp://{}/{nqn}", listener.host()),
                Protocol::Vfio => format!("vfio-user:{}", listener.host()),
            });
            let (shared, pacer, seat) = (server.shared.clone(), pacer.clone(), Seat::default());
            // `Shared::enter` counts the clients of all listeners.
            server.spawn(protocol.name(), move || {
                let talk = |stream, _: &dyn Fn() -> bool| talk(&shared, (protocol, &seat), stream, pacer.as_deref());
                serve_each(listener, &shared, ("client", usize::MAX), talk);
            })?;
        }
        Ok(server)
    }

    /// Begins what tells of the server, beside serving.
    fn tell(
        &mut self,
        ctl: Option<Listener>,
        metrics: Option<Listener>,
        watch: Option<Listener>,
    ) -> Result<(), ServeError> {
        if let Some(listener) = ctl {
            self.addresses.push(("ctl", listener.address()));
            let shared = self.shared.clone();
            self.spawn("ctl", move || control::listen(listener, &shared))?;
        }
        if let Some(listener) = metrics {
            self.addresses.push(("metrics", format!("http://{}/metrics", listener.host())));
            let shared = self.shared.clone();
            let text = |shared: &Shared<S>| Some(("text/plain; version=0.0.4", metrics::text(shared)));
            self.spawn("metrics", move || {
                http::listen(listener, &shared, |path| (path == "/metrics").then(|| text(&shared)).flatten());
            })?;
        }
        if let Some(listener) = watch {
            self.addresses.push(("watch", format!("http://{}/", listener.host())));
            let shared = self.shared.clone();
            self.spawn("watch", move || http::listen(listener, &shared, |path| watch::page(&shared, path)))?;
            let shared = self.shared.clone();
            self.spawn("samples", move || watch::sample(&shared))?;
        }
        Ok(())
    }

    fn pacer(&mut self, wakes: Option<OwnedFd>) -> Result<Option<Arc<Pacer>>, ServeError> {
        if self.shared.pacing.is_none() {
            return Ok(None);
        }
        let pacer = Arc::new(Pacer::new(wakes)?);
        let (shared, owned) = (self.shared.clone(), pacer.clone());
        self.spawn("pace", move || owned.run(&shared))?;
        Ok(Some(pacer))
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), ServeError> {
        self.threads.push(Builder::new().name(format!("serve-{name}")).spawn(work)?);
        Ok(())
    }

    /// Where clients connect, one for each address: those of NBD, of NVMe/TCP, and of vfio-user.
    #[must_use]
    pub fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Where all else is: the name of its setting, and its address.
    #[must_use]
    pub fn addresses(&self) -> &[(&'static str, String)] {
        &self.addresses
    }

    /// Waits until a client of the control socket wants the server to stop, or for a time. Returns whether it is to stop.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        self.shared.wait(timeout)
    }

    /// What people should know and have not been told.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.shared.drive().map_or_else(Vec::new, |mut drive| {
            let of_recorder = drive.recorder.as_mut().and_then(Recorder::take_note);
            drive.served.notes().into_iter().chain(of_recorder).collect()
        });
        notes.extend(self.shared.take_notes());
        notes
    }

    /// Gives a command with its arguments as a client of the control socket does, and returns the answer.
    ///
    /// # Errors
    /// One line if it is refused.
    pub fn command(&self, name: &str, arguments: &Map<String, Value>) -> Result<Value, String> {
        let mut line = arguments.clone();
        line.insert("command".to_owned(), json!(name));
        crate::control::carry_out(&self.shared, &Value::Object(line).to_string())
    }

    /// The figures so far. Null if a thread panicked with the drive.
    #[must_use]
    pub fn stats(&self) -> Value {
        stats(&self.shared)
    }

    /// Stops in order: accepts nothing more, carries out and answers the requests that have come, ends the connections. What
    /// is not answered after a second of grace is dropped, and the notes say so.
    #[must_use]
    pub fn stop(mut self) -> Stopped<S> {
        self.end();
        let Self { shared, .. } = &self;
        let stats = stats(shared);
        let mut ended = Vec::new();
        if let Some(mut drive) = shared.drive() {
            drive.recorder.as_mut().and_then(Recorder::take_note).into_iter().for_each(|note| shared.note(note));
            ended.extend(drive.recorder.take().map(Recorder::finish));
            ended.extend(drive.data_recorder.take().map(DataRecorder::finish));
        }
        if let Some(note) = shared.dropped.note() {
            shared.note(note);
        }
        let mut lost = Vec::new();
        for recording in ended {
            match recording {
                Ok(Some(note)) => shared.note(note),
                Ok(None) => {}
                Err(why) => {
                    shared.note(why.clone());
                    lost.push(why);
                }
            }
        }
        let notes = self.notes();
        let shared = self.shared.clone();
        drop(self);
        // Every thread has been waited for, so nobody else has it.
        let served = Arc::into_inner(shared).and_then(Shared::into_drive).map(|drive| drive.served);
        Stopped { served, stats, notes, lost }
    }

    fn end(&mut self) {
        self.shared.begin_to_stop();
        // The thread that has all paced clients ends first, and counts what it drops.
        let until = Instant::now() + GRACE + GRACE / 2;
        while Instant::now() < until && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.shared.each_socket(|socket| socket.shut(true));
        self.shared.bell.ring();
        for thread in self.threads.drain(..) {
            // One that panicked has left the drive locked for good, which is how others know.
            let _ = thread.join();
        }
    }
}

impl<S> Drop for Server<S> {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.shared.begin_to_stop();
            self.shared.each_socket(|socket| socket.shut(true));
        }
    }
}

/// What is spoken at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Nbd,
    Nvme,
    Vfio,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Nbd => "nbd",
            Self::Nvme => "nvme",
            Self::Vfio => "vfio",
        }
    }
}

/// Serves a client, or hands it to the thread that has all those that are paced.
fn talk<S: Served>(shared: &Shared<S>, (protocol, seat): (Protocol, &Seat), stream: Stream, pacer: Option<&Pacer>) {
    let Some(number) = shared.enter(&stream) else {
        return stream.shut(true); // as the protocol allows where there is no place
    };
    let _farewell = Farewell(shared, Some(number));
    let mut input = Input::new();
    let requests = match protocol {
        Protocol::Nvme => Ok(Requests::Nvme(Some(nvme::session()))),
        Protocol::Vfio => {
            let session = seat.take().and_then(|seat| vfio::Session::begin(&mut *shared.drive()?, seat));
            session.map(|session| Requests::Nvme(Some(Session::Vfio(Box::new(session))))).ok_or(End::InOrder)
        }
        Protocol::Nbd => negotiate(shared, &stream, &mut input).map(Requests::Nbd),
    };
    let end = match (requests, pacer) {
        (Err(end), _) => end,
        (Ok(requests), Some(pacer)) => return pacer.take(shared, number, stream, input, requests),
        (Ok(Requests::Nbd(agreed)), None) => transmit(shared, &stream, &mut input, agreed),
        (Ok(Requests::Nvme(Some(Session::Vfio(session)))), None) => {
            vfio::transmit(shared, &stream, &mut input, *session)
        }
        (Ok(Requests::Nvme(_)), None) => nvme::transmit(shared, &stream, &mut input),
    };
    shared.leave(number, end == End::Broken);
}

/// The figures of the device, and those of the server.
pub(crate) fn stats<S: Served>(shared: &Shared<S>) -> Value {
    let Some(drive) = shared.drive() else { return Value::Null };
    let mut all: Map<String, Value> = drive.served.figures();
    let counts = &shared.counts;
    let lateness = locked(&shared.lateness);
    let read = Ordering::Relaxed;
    let served = json!({
        "name": shared.export.name,
        "bytes": shared.export.bytes,
        "read_only": shared.export.read_only,
        "pace": shared.pacing.pace(),
        "wall_s": shared.started.elapsed().as_secs_f64(),
        "connections": {
            "open": counts.open.load(read), "total": counts.connections.load(read),
            "broken": counts.broken.load(read), "refused": counts.refused.load(read),
        },
        "commands_failed": drive.failed,
        "recorded": drive.recorder.as_ref().map(Recorder::written),
        "recorded_with_data": drive.data_recorder.as_ref().map(DataRecorder::written),
        "lateness_ns": shared.pacing.is_real().then(|| lateness.all.summary()),
        "keeps_up": lateness.keeps_up,
        "seconds_behind": shared.pacing.is_real().then_some(lateness.seconds_behind),
    });
    all.insert("served".to_owned(), served);
    Value::Object(all)
}

/// Refuses what knows nothing of zones, for a drive that has some.
fn check_zones(zoning: Option<&Zoning>, settings: &Settings) -> Result<(), ServeError> {
    let Some(zoning) = zoning else { return Ok(()) };
    let refuse = |what: String| Err(ServeError::Zones(what));
    if !settings.nbd.is_empty() {
        let what = "nbd: found an address, expected none with ftl.scheme = \"zoned\": its clients are not told of zones; serve the drive over \
                    NVMe/TCP or vfio-user";
        return refuse(what.to_owned());
    }
    if settings.record_data.is_some() {
        let what = "record_data: found a file, expected none with ftl.scheme = \"zoned\": crash tests know no zones";
        return refuse(what.to_owned());
    }
    if ![512, 4096].contains(&zoning.grain.0) {
        return refuse(format!(
            "geometry.mapping-unit: found pages of {}, expected 512 B or 4 KiB with ftl.scheme = \"zoned\": what NVMe writes are blocks, \
             and a zone takes whole pages; set it, as in --set geometry.mapping-unit=4KiB",
            zoning.grain
        ));
    }
    Ok(())
}

/// What speaks against the size of zones with some hosts; none if nothing does.
fn odd_size(zoning: &Zoning) -> Option<String> {
    let is_odd = !zoning.size.0.is_power_of_two();
    is_odd.then(|| {
        format!("ftl.zoned.zone-size: found {}; a Linux host takes the drive only with a power of two", zoning.size)
    })
}
