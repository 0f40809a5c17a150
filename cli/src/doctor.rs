//! What can be recorded and counted on this machine, what holds it back, and what helps.

mod counting;
mod places;
mod process;
mod programs;
mod running;

use ompfuse_format::{abi, control, record};
pub(crate) use running::diagnose as diagnose_running;
use serde::Serialize;

/// How well something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It works.
    Ok,
    /// It works in part, or something else works without it.
    Limited,
    /// It isn't there.
    Missing,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Limited => "limited",
            State::Missing => "missing",
        }
    }
}

/// Something that was looked at.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Check {
    /// What it is.
    pub(crate) name: &'static str,
    pub(crate) state: State,
    /// What was found.
    pub(crate) found: String,
    /// What follows from that.
    pub(crate) meaning: String,
    /// What to do; `None`: nothing, or nobody knows.
    pub(crate) remedy: Option<String>,
    /// Without it nothing is recorded.
    #[serde(skip)]
    is_needed: bool,
}

impl Check {
    fn new(name: &'static str, state: State, found: impl Into<String>) -> Check {
        Check {
            name,
            state,
            found: found.into(),
            meaning: String::new(),
            remedy: None,
            is_needed: false,
        }
    }

    fn means(self, meaning: impl Into<String>) -> Check {
        Check {
            meaning: meaning.into(),
            ..self
        }
    }

    fn helps(self, remedy: impl Into<String>) -> Check {
        Check {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// Nothing can be recorded because of it.
    fn is_lacking(&self) -> bool {
        self.is_needed && self.state == State::Missing
    }

    fn needed(self) -> Check {
        Check {
            is_needed: true,
            ..self
        }
    }
}

/// All that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Diagnosis {
    /// Whether a program can be recorded here at all.
    pub(crate) can_record: bool,
    pub(crate) checks: Vec<Check>,
}

/// Looks at everything; that takes about a second, most of it in the simulator.
pub(crate) fn diagnose() -> Diagnosis {
    // As a recording without -o would.
    crate::cache::temporary::spare(None);
    let mut checks = vec![versions()];
    checks.push(programs::loading());
    checks.extend(programs::runtimes());
    checks.push(programs::c_library());
    checks.extend(counting::all());
    checks.extend(process::all());
    checks.extend(places::all());
    Diagnosis {
        can_record: !checks.iter().any(Check::is_lacking),
        checks,
    }
}

/// What this command is and what it reads.
fn versions() -> Check {
    let found = format!(
        "ompfuse {}, runtime interface {}, records {}, control files {}",
        env!("CARGO_PKG_VERSION"),
        abi::ABI_VERSION,
        record::VERSION,
        control::VERSION
    );
    Check::new("versions", State::Ok, found).means(
        "a program that `ompfuse patch` made needs a runtime library with the same interface",
    )
}
