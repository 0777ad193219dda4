//! Pingora tells systemd nothing; these are its messages for a unit of `Type=notify` (sd_notify(3)):
//! ready, stopping, and the watchdog's pulse. After an upgrade the new process says that it is the
//! main one, which wants `NotifyAccess=all`. Without `NOTIFY_SOCKET` in the environment nobody is told.

use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;

use super::lifecycle::Phase;
use super::shutdown::Shutdown;

/// Shortest pause between two pulses.
const PULSE_MIN: Duration = Duration::from_millis(10);

/// Says that this process accepts and is the main one, gives the pulse, and says when it stops. To be
/// begun when the listeners accept; ends with the runtime, so that the pulse lasts as long as it.
pub(super) async fn inform(shutdown: Arc<Shutdown>) {
    tell(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]);
    tokio::join!(stop(&shutdown), pulse());
}

/// Waits for the stop and says so, unless a new process goes on in our place.
async fn stop(shutdown: &Shutdown) {
    shutdown.lifecycle.reach(Phase::Draining).await;
    if !*shutdown.handing_over.borrow() {
        tell(&[NotifyState::Stopping]);
    }
}

/// Shows twice in the watchdog's time that the runtime runs, if there is a watchdog.
async fn pulse() {
    let Some(bound) = sd_notify::watchdog_enabled() else { return };
    let mut ticks = tokio::time::interval((bound / 2).max(PULSE_MIN));
    loop {
        ticks.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}
