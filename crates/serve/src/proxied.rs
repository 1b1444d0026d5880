//! A device that exists, served with the host's schedulers before it.

use crate::served::{Glance, RealTime, Served};
use flashwright_block::{BlockDevice as _, HoldsData, Nanos};
use flashwright_disk::Disk;
use flashwright_sim::Proxied;
use serde_json::{Map, Value, json};
use std::os::fd::OwnedFd;
use std::time::Instant;

/// A device on the machine's clock.
pub trait OnClock: HoldsData + Send + 'static {
    /// When its clock began.
    fn clock(&self) -> Instant;

    /// A handle that is readable when requests have ended.
    ///
    /// # Errors
    /// Of the system.
    fn wakes(&self) -> std::io::Result<OwnedFd>;
}

impl OnClock for Disk {
    fn clock(&self) -> Instant {
        Disk::clock(self)
    }
    fn wakes(&self) -> std::io::Result<OwnedFd> {
        Disk::wakes(self)
    }
}

impl<D: OnClock> Served for Proxied<D> {
    fn page_bytes(&self) -> u64 {
        self.device().info().sector.0.max(4096)
    }
    /// Nothing is known about holes.
    fn stretch(&self, _: u64, sectors: u64) -> (bool, u64) {
        (true, sectors)
    }
    fn none_completes_before(&self) -> Option<Nanos> {
        Some(self.next_event())
    }
    fn figures(&self) -> Map<String, Value> {
        match json!(Proxied::figures(self)) {
            Value::Object(figures) => figures,
            _ => unreachable!("figures have names"),
        }
    }
    fn glance(&self) -> Glance {
        let figures = Proxied::figures(self);
        let requests = &figures.requests;
        Glance {
            bytes: [requests.bytes_read, requests.bytes_written],
            requests: [requests.read, requests.write, requests.trim, requests.flush],
            time_ns: figures.time_ns,
            ..Glance::default()
        }
    }
    fn description(&self) -> String {
        format!("{}, passed on by Flashwright", self.info().name)
    }
    fn trims_to_zeros(&self) -> bool {
        false // of a device nobody knows
    }
    fn real_time(&self) -> std::io::Result<Option<RealTime>> {
        Ok(Some(RealTime { clock: self.device().clock(), wakes: self.device().wakes()? }))
    }
    fn clients_wait(&mut self) {
        self.host_has_no_more();
    }
}
