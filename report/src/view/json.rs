//! The report as JSON: the model, and sentences made of it for people that read JSON.

use crate::words;
use ompfuse_account::model::{REPORT_VERSION, Report};
use schemars::JsonSchema;
use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

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
    /// Another version has written it.
    #[error(
        "its version is {0}, and this ompfuse reads version {REPORT_VERSION} of the report's JSON: use the ompfuse that wrote it"
    )]
    Version(u64),
}

/// Reads a report back. Its sentences are left out: they follow from the values.
///
/// # Errors
/// It is no report, or one of another version.
pub fn read(text: &str) -> Result<Report, ReadError> {
    // One of another version may lack fields: then its version is the reason to give.
    #[derive(Deserialize)]
    struct Version {
        version: u64,
    }
    match serde_json::from_str::<Report>(text) {
        Ok(report) if report.version == REPORT_VERSION => Ok(report),
        read => match serde_json::from_str(text)? {
            Version { version } if version != u64::from(REPORT_VERSION) => {
                Err(ReadError::Version(version))
            }
            _ => Ok(read?),
        },
    }
}

/// Sentences about all of a report.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReportWords {
    /// `shortcomings` as sentences.
    notes: Vec<String>,
}

/// Sentences about what probes took.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProbesWords {
    /// `most_at` in words; null if `most_at` is null.
    most: Option<String>,
    /// The command that records the program as `remedy` says; null if `remedy` is null.
    command: Option<String>,
}

/// Sentences about processors.
#[derive(Serialize, JsonSchema)]
pub(super) struct RunningWords {
    /// What the starvation means, in words; null if threads were not starved.
    told: Option<String>,
}

/// Sentences about a region.
#[derive(Serialize, JsonSchema)]
pub(super) struct RegionWords {
    /// `doubt_kind` in words; null if there is no doubt.
    doubt: Option<&'static str>,
    /// The program's own line in Python that leads to it, with its function; absent if the caller is another program, or isn't known.
    #[serde(skip_serializing_if = "Option::is_none")]
    called_from: Option<String>,
}

/// Words about a call path.
#[derive(Serialize, JsonSchema)]
pub(super) struct CallPathWords {
    /// The most telling calls of `context`, outermost first: `main › solve › libopenblas.so: cblas_dgemm › exec_blas`. Null
    /// if the context is not known.
    called_from: Option<String>,
}

/// What a lock is called.
#[derive(Serialize, JsonSchema)]
pub(super) struct LockWords {
    /// Name of the critical sections, name of the variable, or address.
    name: String,
}

/// Sentences about a parallel region's overheads.
#[derive(Serialize, JsonSchema)]
pub(super) struct OverheadWords {
    /// `incomplete_because` in words; null if nothing is missing.
    incomplete: Option<String>,
}

/// Sentences about a loss.
#[derive(Serialize, JsonSchema)]
pub(super) struct LossWords {
    /// `cause` in words.
    told: String,
    /// What usually helps; null if there is no general advice.
    remedy: Option<String>,
}

/// Sentences about other numbers of threads.
#[derive(Serialize, JsonSchema)]
pub(super) struct ScalingWords {
    /// The prediction in words; null if there is none.
    told: Option<String>,
}

/// A sentence about what was tried.
#[derive(Serialize, JsonSchema)]
pub(super) struct TriedWords {
    /// What helps most, in words.
    told: String,
}

/// Sentences about XUs that could not be matched.
#[derive(Serialize, JsonSchema)]
pub(super) struct UnmatchedWords {
    /// `because` in words.
    reason: String,
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        with_words(self.0)
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

/// The model's values, and words beside them.
fn with_words(report: &Report) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(report)?;
    add(&mut value, || ReportWords {
        notes: words::notes(report),
    })?;
    if let Some(probes) = &report.probes {
        add(&mut value["probes"], || ProbesWords {
            most: probes.most_at.as_ref().map(words::most),
            command: (probes.remedy.as_ref()).map(|remedy| words::command(report, remedy)),
        })?;
    }
    if let Some(running) = &report.running {
        add(&mut value["running"], || RunningWords {
            told: words::told(running),
        })?;
    }
    if let Some(scaling) = &report.scaling {
        add(&mut value["scaling"], || ScalingWords {
            told: words::prediction(report, scaling),
        })?;
    }
    if let Some(tried) = &report.tried {
        add(&mut value["tried"], || TriedWords {
            told: words::tried(tried),
        })?;
    }
    add_each(&mut value["regions"], &report.regions, |r| RegionWords {
        doubt: r.doubt_kind.map(words::doubt),
        called_from: words::python_caller(&report.contexts, &report.call_paths, r.id),
    })?;
    add_each(&mut value["call_paths"], &report.call_paths, |p| {
        CallPathWords {
            called_from: (p.context).and_then(|c| words::called_from(&report.contexts, c)),
        }
    })?;
    add_each(&mut value["locks"], &report.locks, |l| LockWords {
        name: words::locks::lock(l),
    })?;
    add_each(&mut value["overheads"], &report.overheads, |o| {
        OverheadWords {
            incomplete: words::incomplete(&o.incomplete_because),
        }
    })?;
    add_each(&mut value["losses"], &report.losses, |l| LossWords {
        told: words::cause(report, l),
        remedy: words::remedy(report, l),
    })?;
    add_each(&mut value["unmatched"], &report.unmatched, |u| {
        UnmatchedWords {
            reason: words::reason(u),
        }
    })?;
    Ok(value)
}

/// Adds fields to an object.
fn add<W: Serialize>(value: &mut Value, words: impl FnOnce() -> W) -> serde_json::Result<()> {
    if let (Value::Object(fields), Value::Object(more)) = (value, serde_json::to_value(words())?) {
        fields.extend(more);
    }
    Ok(())
}

/// Adds fields to each element of a list, which stands for one of `values`.
fn add_each<T, W: Serialize>(
    list: &mut Value,
    values: &[T],
    words: impl Fn(&T) -> W,
) -> serde_json::Result<()> {
    let list = list.as_array_mut().into_iter().flatten();
    list.zip(values)
        .try_for_each(|(value, of)| add(value, || words(of)))
}
