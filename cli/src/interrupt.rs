//! Signals that ask this command to end: held back while a file is half written or a program is running.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The signals, and whether each is handed on to the running program: a terminal sends SIGINT to both anyway.
const SIGNALS: [(i32, bool); 3] = [(SIGINT, false), (SIGTERM, true), (SIGHUP, true)];

struct State {
    /// Whether a signal has its default effect.
    pass: Arc<AtomicBool>,
    /// The last signal that was held back; 0: none.
    pending: Arc<AtomicUsize>,
    /// Depth of the holds.
    holds: AtomicUsize,
}

static STATE: OnceLock<State> = OnceLock::new();

/// A signal asked this command to end. Its exit status is 128 + the signal's number.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) i32);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted by signal {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Prepares for [`hold`]. Signals that were ignored when the command started (`nohup`) stay so.
pub(crate) fn install() -> std::io::Result<()> {
    let state = STATE.get_or_init(|| State {
        pass: Arc::new(AtomicBool::new(true)),
        pending: Arc::default(),
        holds: AtomicUsize::new(0),
    });
    let ignored = ignored_signals();
    let is_ignored = |signal: i32| ignored & 1 << (signal - 1) != 0;
    // Who writes beyond a limit (`ulimit -f`) that is meant for the program gets an error then. Programs start with the default.
    if !is_ignored(SIGXFSZ) {
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    }
    for (signal, _) in SIGNALS {
        if !is_ignored(signal) {
            signal_hook::flag::register_conditional_default(signal, state.pass.clone())?;
            signal_hook::flag::register_usize(signal, state.pending.clone(), signal as usize)?;
        }
    }
    Ok(())
}

/// The mask of ignored signals.
pub(crate) fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok())
        .unwrap_or(0)
}

/// Holds signals back until it is dropped; one that came meanwhile is noted.
#[derive(Debug)]
#[must_use]
pub(crate) struct Hold(());

/// See [`Hold`].
pub(crate) fn hold() -> Hold {
    if let Some(state) = STATE.get() {
        state.holds.fetch_add(1, Ordering::SeqCst);
        state.pass.store(false, Ordering::SeqCst);
    }
    Hold(())
}

impl Hold {
    /// The signal that came, if one did.
    pub(crate) fn pending(&self) -> Option<i32> {
        let signal = STATE.get()?.pending.load(Ordering::SeqCst) as i32;
        (signal != 0).then_some(signal)
    }

    /// The signal that came, if one did, which is dealt with herewith.
    pub(crate) fn take(&self) -> Option<i32> {
        let signal = STATE.get()?.pending.swap(0, Ordering::SeqCst) as i32;
        (signal != 0).then_some(signal)
    }

    /// The signal that came, as an error.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        self.pending()
            .map_or(Ok(()), |signal| Err(Interrupted(signal)))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(state) = STATE.get()
            && state.holds.fetch_sub(1, Ordering::SeqCst) == 1
        {
            state.pass.store(true, Ordering::SeqCst);
        }
    }
}

/// Whether the running program has to be told.
pub(crate) fn is_handed_on(signal: i32) -> bool {
    SIGNALS.contains(&(signal, true))
}
