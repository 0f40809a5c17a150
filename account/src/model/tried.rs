//! What `ompfuse try` has measured of the program.

use crate::paired::Paired;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of trying settings on the program, without recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// Median time of the original, in seconds; null if it was not run.
    pub original_s: Option<f64>,
    /// The variants, in the order in which they were tried.
    pub variants: Vec<TriedVariant>,
    /// Position in `variants` of the one that helps most; null: none is known to help.
    pub best: Option<usize>,
    /// Processors that the program could use at once; null if not known.
    #[serde(default)]
    pub processors: Option<f64>,
    /// Share of their time that other programs used during the last turns, from 0 to 1; null if not known.
    #[serde(default)]
    pub taken: Option<f64>,
    /// True if threads lacked processors in the recorded run: what is proposed and predicted depends on that.
    #[serde(default)]
    pub is_starved: bool,
    /// Files in its folder that the recorded run changed, and others that the first run without recording had open for writing.
    #[serde(default)]
    pub changed_files: Vec<ChangedFile>,
    /// Names of the files that were compared, beside standard output and exit status, as `--compare-files` takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared_files: Vec<String>,
}

/// A file that a run changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// Its path, from the program's folder.
    pub path: String,
    /// How it was before; null: it is new, or only known to have been open.
    pub before: Option<FileState>,
    /// How it was afterwards; null: it was removed, or is only known to have been open.
    pub after: Option<FileState>,
}

/// What a file's entry says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileState {
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last changed, in seconds since 1970.
    pub modified_s: f64,
}

/// The program with other settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedVariant {
    /// The settings, as `--set` takes them.
    pub set: Vec<String>,
    /// Variables of the environment, as `NAME=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Pairs of runs.
    pub turns: u32,
    /// The change of the program's time; null: it was not measured.
    pub time: Option<Paired>,
    /// True if `turns` and `time` are of turns after the search, which found that it helps.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_fresh: bool,
    /// What is known of its output; null: it was not run.
    pub output: Option<Judged>,
    /// The change of the program's time that the recorded units predict, as a share; null: nothing is predicted.
    pub predicted: Option<f64>,
    /// The share of the time that the original's report says is lost in the parallel regions around.
    pub lost: Option<f64>,
    /// The change of the time of these regions, of a variant that helps: recorded in turns.
    pub region_time: Option<Paired>,
    /// Why that isn't measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region_reason: Option<String>,
    /// Why it was not tried, or not to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is known of a variant's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judged {
    /// It is the original's.
    Equal,
    /// Only numbers differ that differ between runs of the original, too.
    EqualButDigits,
    /// `--check` accepts it.
    Checked,
    /// It differs, or `--check` refuses it.
    Differs,
    /// Only numbers differ, but others than between runs of the original.
    DigitsDiffer,
    /// The exit status is another one.
    Failed,
    /// The original's own outputs differ.
    Unknown,
}

impl Judged {
    /// Of two judgements, the one that counts.
    #[must_use]
    pub fn and(self, other: Judged) -> Judged {
        match (self.is_good(), other.is_good(), self) {
            (false, _, _) => self,
            (true, true, Judged::EqualButDigits | Judged::Checked) => self,
            (true, _, _) => other,
        }
    }

    /// Whether the variant does what the original does.
    pub fn is_good(self) -> bool {
        matches!(
            self,
            Judged::Equal | Judged::EqualButDigits | Judged::Checked
        )
    }
}

/// Of several variants without effect the best seems to help by a little: less than this share of the time is told of none.
const LEAST: f64 = 0.01;

impl TriedVariant {
    /// What it is: settings and variables.
    pub fn name(&self) -> String {
        let all: Vec<&str> = self
            .set
            .iter()
            .chain(&self.env)
            .map(String::as_str)
            .collect();
        all.join(" + ")
    }

    /// By how much its time changes, if it is known to be faster, and does the same.
    pub fn helps(&self) -> Option<f64> {
        let is_good = self.output.is_some_and(Judged::is_good) && self.reason.is_none();
        let found = self.time.filter(|t| t.is_decided && t.high < -LEAST)?;
        is_good.then_some(found.change)
    }
}

impl Tried {
    /// The variant that helps most.
    pub fn best(&self) -> Option<&TriedVariant> {
        self.variants.get(self.best?)
    }
}
