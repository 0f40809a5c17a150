//! What probes took, and how to record with fewer of them.

use super::{shell_words, what};
use ompfuse_account::model::{FewerProbes, MostProbes, ProbeTime, Report};
use ompfuse_account::units::{percent, seconds};

/// The region whose probes took most.
pub fn most(at: &MostProbes) -> String {
    what(at.construct, at.function.as_deref(), at.source.as_ref())
}

/// The command that records the report's program with fewer probes.
pub fn command(report: &Report, remedy: &FewerProbes) -> String {
    let option = match remedy {
        FewerProbes::NoEvents => "--events none".to_owned(),
        FewerProbes::Skip { region } => format!("--skip {region}"),
        FewerProbes::Throttle { percent } => format!("--units cost={percent}"),
    };
    let command = std::iter::once(&report.program).chain(&report.args);
    let words = shell_words(command.map(String::as_str));
    format!("ompfuse record {option} -- {words}")
}

/// Why `--units cost=` can't keep what it allows.
pub const STILL_TIMED: &str = "what --units leaves out is still timed";

/// What the probes took of the run. `has_command`: one follows.
/// `is_throttled`: instances were left out for it.
pub(crate) fn took(
    probes: &ProbeTime,
    at: &MostProbes,
    has_command: bool,
    is_throttled: bool,
) -> String {
    let still = match is_throttled {
        true => format!(", and {STILL_TIMED}"),
        false => String::new(),
    };
    let then = match has_command {
        true => ". To record with fewer probes:",
        false => "",
    };
    format!(
        "the probes took about {} of the processor time ({}, estimated), most of it at: {}. The times below \
             include it{still}{then}",
        percent(probes.share),
        seconds(probes.estimated_s),
        most(at),
    )
}
