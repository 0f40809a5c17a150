//! The report as JSON: the model, and sentences made of it for people that read JSON.

use crate::model::{
    CallPath, Lock, Loss, ParallelOverhead, ProbeTime, REPORT_VERSION, Region, Report, Running,
    Scaling, UnmatchedXus,
};
use crate::words;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

/// A report with its sentences, to be serialised. What [`Report`] reads back of it are the values; sentences follow from these.
#[derive(Debug, Clone, Copy)]
pub struct Json<'a>(pub &'a Report);

/// The report as JSON, with line breaks.
pub fn to_string(report: &Report) -> String {
    serde_json::to_string_pretty(&Json(report)).expect("a report has only string keys")
}

/// Why a text is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no JSON, or lacks fields of a report.
    #[error("it is not JSON of `ompfuse report`: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A newer version has written it.
    #[error(
        "its version is {0}, and this ompfuse reads version {REPORT_VERSION} of the report's JSON: use the ompfuse that wrote \
             it"
    )]
    Newer(u64),
}

/// Reads a report back. Its sentences are left out: they follow from the values.
///
/// # Errors
/// It is no report, or one of a newer version.
pub fn read(text: &str) -> Result<Report, ReadError> {
    // A newer one may lack fields: then its version is the reason to give.
    #[derive(Deserialize)]
    struct Version {
        version: u64,
    }
    match serde_json::from_str(text)? {
        Version { version } if version > u64::from(REPORT_VERSION) => {
            Err(ReadError::Newer(version))
        }
        _ => Ok(serde_json::from_str(text)?),
    }
}

/// Sentences about all of a report.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ReportWords {
    /// `shortcomings` as sentences.
    notes: Vec<String>,
}

/// Sentences about what probes took.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ProbesWords {
    /// `most_at` in words; null if `most_at` is null.
    most: Option<String>,
    /// The command that records the program as `remedy` says; null if `remedy` is null.
    command: Option<String>,
}

/// Sentences about processors.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RunningWords {
    /// What the starvation means, in words; null if threads were not starved.
    told: Option<String>,
}

/// Sentences about a region.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RegionWords {
    /// `doubt_kind` in words; null if there is no doubt.
    doubt: Option<&'static str>,
}

/// Words about a call path.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct CallPathWords {
    /// The most telling calls of `context`, outermost first: `main › solve › libopenblas.so: cblas_dgemm › exec_blas`. Null
    /// if the context is not known.
    called_from: Option<String>,
}

/// What a lock is called.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct LockWords {
    /// Name of the critical sections, name of the variable, or address.
    name: String,
}

/// Sentences about a parallel region's overheads.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct OverheadWords {
    /// `incomplete_because` in words; null if nothing is missing.
    incomplete: Option<String>,
}

/// Sentences about a loss.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct LossWords {
    /// `cause` in words.
    told: String,
    /// What usually helps; null if there is no general advice.
    remedy: Option<String>,
}

/// Sentences about other numbers of threads.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ScalingWords {
    /// The prediction in words; null if there is none.
    told: Option<String>,
}

/// Sentences about XUs that could not be matched.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct UnmatchedWords {
    /// `because` in words.
    reason: String,
}

/// Values, and words beside them.
#[derive(Serialize)]
struct With<'a, T: Serialize, W: Serialize> {
    #[serde(flatten)]
    values: &'a T,
    #[serde(flatten)]
    words: W,
}

/// A list whose elements get words.
struct List<'a, T, F>(&'a [T], F);

impl<T: Serialize, W: Serialize, F: Fn(&T) -> W> Serialize for List<'_, T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|values| With {
            values,
            words: (self.1)(values),
        }))
    }
}

fn with<'a, T: Serialize, W: Serialize>(
    values: &'a Option<T>,
    words: impl Fn(&T) -> W,
) -> Option<With<'a, T, W>> {
    values.as_ref().map(|values| With {
        values,
        words: words(values),
    })
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Every field is named: one that is added to the model is missed here by the compiler.
        let Report {
            version,
            program,
            args,
            host,
            threads,
            duration_s,
            lifetime_s,
            available_s,
            parallel_s,
            coverage,
            serial_share,
            speedup_limit,
            xus,
            runs,
            modules,
            events,
            uncounted,
            thread_time_s,
            probes,
            regions,
            call_paths,
            contexts,
            locks,
            region_counts,
            running,
            serial,
            mpi,
            overheads,
            account,
            losses,
            losses_of_s,
            lost_s,
            lost_is_least,
            scaling,
            properties,
            accounting,
            strategy,
            unmatched,
            shortcomings,
        } = self.0;
        let mut map = serializer.serialize_map(None)?;
        macro_rules! put {
            ($($name:ident),*) => { $(map.serialize_entry(stringify!($name), $name)?;)* };
        }
        put!(
            version, program, args, host, threads, duration_s, lifetime_s
        );
        put!(
            available_s,
            parallel_s,
            coverage,
            serial_share,
            speedup_limit,
            xus,
            runs,
            modules,
            events
        );
        if !uncounted.is_empty() {
            put!(uncounted);
        }
        put!(thread_time_s);
        let words = |p: &ProbeTime| ProbesWords {
            most: p.most_at.as_ref().map(words::most),
            command: (p.remedy.as_ref()).map(|remedy| words::command(self.0, remedy)),
        };
        map.serialize_entry("probes", &with(probes, words))?;
        let words = |r: &Region| RegionWords {
            doubt: r.doubt_kind.map(words::doubt),
        };
        map.serialize_entry("regions", &List(regions, words))?;
        let words = |p: &CallPath| CallPathWords {
            called_from: p.context.and_then(|c| words::called_from(contexts, c)),
        };
        map.serialize_entry("call_paths", &List(call_paths, words))?;
        put!(contexts);
        let words = |l: &Lock| LockWords {
            name: words::locks::lock(l),
        };
        map.serialize_entry("locks", &List(locks, words))?;
        put!(region_counts);
        let words = |r: &Running| RunningWords {
            told: words::told(r),
        };
        map.serialize_entry("running", &with(running, words))?;
        put!(serial);
        if mpi.is_some() {
            put!(mpi);
        }
        let words = |o: &ParallelOverhead| OverheadWords {
            incomplete: words::incomplete(&o.incomplete_because),
        };
        map.serialize_entry("overheads", &List(overheads, words))?;
        put!(account);
        let words = |l: &Loss| LossWords {
            told: words::cause(self.0, l),
            remedy: words::remedy(self.0, l),
        };
        map.serialize_entry("losses", &List(losses, words))?;
        put!(losses_of_s);
        put!(lost_s);
        put!(lost_is_least);
        let words = |s: &Scaling| ScalingWords {
            told: words::prediction(self.0, s),
        };
        map.serialize_entry("scaling", &with(scaling, words))?;
        put!(properties, accounting, strategy);
        let words = |u: &UnmatchedXus| UnmatchedWords {
            reason: words::reason(u),
        };
        map.serialize_entry("unmatched", &List(unmatched, words))?;
        put!(shortcomings);
        let ReportWords { notes } = ReportWords {
            notes: words::notes(self.0),
        };
        map.serialize_entry("notes", &notes)?;
        map.end()
    }
}
