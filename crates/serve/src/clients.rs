//! Clients of a listener: a thread for each, for as long as it talks.

use crate::listen::{Listener, Stream};
use crate::shared::{Shared, wait_for};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// How long to wait where the system refuses a connection, such as with too many open files, or where all places are taken:
/// those that end make room.
const REFUSED: Duration = Duration::from_millis(10);

/// Gives each client a thread until the server stops, and returns when all have ended.
///
/// Nothing is kept of a client that has ended. Beyond `clients_max` at once, others wait to be accepted; `talk` is told whether
/// all places are taken, so that a client which does nothing can give its place away. The listener is closed, and its file
/// removed, as soon as the server stops.
pub(crate) fn serve_each<S: Send>(
    listener: Listener,
    shared: &Shared<S>,
    (name, clients_max): (&str, usize),
    talk: impl Fn(Stream, &dyn Fn() -> bool) + Sync,
) {
    let (open, talk) = (AtomicUsize::new(0), &talk);
    let open = &open;
    let is_full = move || open.load(Ordering::Relaxed) >= clients_max;
    std::thread::scope(|scope| {
        while !shared.is_stopping() {
            if is_full() {
                std::thread::sleep(REFUSED);
                continue;
            }
            match listener.accept() {
                Ok(None) => wait_for(&listener, &shared.bell),
                Ok(Some(stream)) => {
                    open.fetch_add(1, Ordering::Relaxed);
                    let leaves = Leaves(open);
                    let work = move || {
                        let _leaves = leaves;
                        talk(stream, &is_full);
                    };
                    // Without a thread the connection is closed, and whoever asks sees that.
                    let _ = Builder::new().name(format!("serve-{name}")).spawn_scoped(scope, work);
                }
                Err(_) => std::thread::sleep(REFUSED),
            }
        }
        drop(listener);
    });
}

/// Counts a client off when its thread ends, also by a panic, or could not begin.
struct Leaves<'a>(&'a AtomicUsize);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
