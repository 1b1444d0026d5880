//! Clients of a listener: a thread for each, for as long as it talks.

use crate::listen::{Listener, Stream};
use crate::shared::{Shared, wait_for};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// How long to wait where the system refuses a connection, such as with too many open files: those that end make room.
const REFUSED: Duration = Duration::from_millis(10);

/// Gives each client a thread until the server stops, and returns when all have ended.
///
/// Nothing is kept of a client that has ended. More than `clients_max` at once are turned away. The listener is closed, and its
/// file removed, as soon as the server stops.
pub(crate) fn serve_each<S: Send>(
    listener: Listener,
    shared: &Shared<S>,
    (name, clients_max): (&str, usize),
    talk: impl Fn(Stream) + Sync,
) {
    let (open, talk) = (AtomicUsize::new(0), &talk);
    let open = &open;
    std::thread::scope(|scope| {
        while !shared.is_stopping() {
            match listener.accept() {
                Ok(None) => wait_for(&listener, &shared.bell),
                // As the protocols allow: by ending the connection.
                Ok(Some(stream)) if open.load(Ordering::Relaxed) >= clients_max => stream.shut(true),
                Ok(Some(stream)) => {
                    open.fetch_add(1, Ordering::Relaxed);
                    let leaves = Leaves(open);
                    let work = move || {
                        let _leaves = leaves;
                        talk(stream);
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
