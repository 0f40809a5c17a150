//! What the environment asks for.

use crate::files::{complain, standard_error};
use ompfuse_format::record::context::DEFAULT_DEPTH;
use ompfuse_format::run;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Longest value that is taken from the environment, in bytes.
const MAX_ENV: usize = 4096;

/// What the environment asks for, as it is when the library is loaded: the program may change it later.
pub(crate) struct Settings {
    /// Folder of the run; absolute.
    pub(crate) directory: PathBuf,
    /// The event sets; at least one.
    pub(crate) events: Vec<String>,
    /// The events that are counted per parallel region and thread.
    pub(crate) of_regions: String,
    /// Nobody has named the event sets: what needs a system call is counted per region too.
    pub(crate) is_cheap: bool,
    /// After how many instances of a region the next event set comes; 0: never.
    pub(crate) rotate: u32,
    /// File that a signal reloads.
    pub(crate) control: Option<String>,
    /// One in so many is recorded; 0: all.
    pub(crate) one_in: u32,
    /// Percentage of a region's time that its probes may cost; 0: any.
    pub(crate) share: u32,
    /// What is shorter than so many nanoseconds is only counted.
    pub(crate) min_ns: Option<u64>,
    /// Most return addresses of a calling context; 0: none are recorded.
    pub(crate) context_depth: u32,
    /// Sums are kept ([`run::ENV_SUMS`]); 0: none are.
    pub(crate) sums: u32,
    /// A command waits for the program, and says what was lost.
    pub(crate) is_heard: bool,
}

/// What the environment asks for; `None`: nothing.
pub(crate) fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    let number = |name| environment(name).and_then(|n| n.parse().ok()).unwrap_or(0);
    let read = || {
        let directory = PathBuf::from(environment(run::ENV_DIR)?);
        standard_error();
        if !directory.is_absolute() {
            complain(&format!(
                "{} is not an absolute path, nothing is recorded",
                run::ENV_DIR
            ));
            return None;
        }
        let directory: PathBuf = directory.components().collect();
        if directory.is_symlink() {
            complain(&format!(
                "{} is a symbolic link, which is not followed: nothing is recorded",
                directory.display()
            ));
            return None;
        }
        Some(Settings {
            directory,
            events: environment(run::ENV_EVENTS)
                .unwrap_or_default()
                .split(';')
                .map(str::to_owned)
                .collect(),
            of_regions: environment(run::ENV_REGION_EVENTS).unwrap_or_default(),
            is_cheap: number(run::ENV_CHEAP) > 0,
            rotate: number(run::ENV_ROTATE),
            control: environment(run::ENV_CONTROL),
            one_in: number(run::ENV_SAMPLE),
            share: number(run::ENV_THROTTLE),
            min_ns: environment(run::ENV_MIN_DURATION)
                .and_then(|n| n.parse().ok())
                .filter(|&ns| ns > 0),
            context_depth: environment(run::ENV_CONTEXT_DEPTH)
                .and_then(|n| n.parse().ok())
                .unwrap_or(DEFAULT_DEPTH),
            sums: number(run::ENV_SUMS),
            is_heard: environment(run::ENV_LIBRARIES).is_some(),
        })
    };
    SETTINGS.get_or_init(read).as_ref()
}

/// A bounded value from the environment; nothing for a setuid program, which must not write where its caller says.
pub(super) fn environment(name: &str) -> Option<String> {
    // SAFETY: getauxval only reads the auxiliary vector.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    let value = std::env::var_os(name)?.into_string().ok()?;
    (!value.is_empty() && value.len() <= MAX_ENV).then_some(value)
}
