//! Annotations of source lines: GitHub's workflow commands, GitLab's Code Quality.

use super::{Options, listed, source_path};
use crate::words;
use ompfuse_account::model::key::RegionKey;
use ompfuse_compare::cause::{Main, main_change};
use ompfuse_compare::gate::{Hit, Outcome, Verdict};
use ompfuse_compare::{Diff, Pair};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

/// One thing to say about the source, or about the program.
struct Remark {
    is_failure: bool,
    path: Option<String>,
    line: Option<u32>,
    title: String,
    text: String,
    /// What tells it from others, whatever the numbers in it: a combined construct is two regions at one line.
    identity: String,
}

fn hit_region(hit: &Hit) -> Option<&RegionKey> {
    hit.region.as_ref()
}

fn name(key: Option<&RegionKey>) -> String {
    key.map_or_else(String::new, |key| {
        let function = key.function.as_deref().unwrap_or_default();
        format!(
            "{} {function} {}",
            key.construct.name(),
            words::compare_place(key)
        )
    })
}

/// Failed expressions first, then regions that are certain to have changed.
fn remarks(diff: &Diff, outcomes: &[Outcome], options: &Options) -> Vec<Remark> {
    let at = |key: Option<&RegionKey>| {
        let path = key.and_then(|k| source_path(k, options));
        let line = path.as_ref().and(key).and_then(|k| k.line);
        (path, line)
    };
    let failed = outcomes.iter().flat_map(|outcome| {
        let remark = |region: Option<&RegionKey>, text| {
            let (path, line) = at(region);
            Remark {
                is_failure: !outcome.is_undecided(),
                path,
                line,
                title: format!("ompfuse: {}", outcome.expression.as_str()),
                identity: format!("{} {}", outcome.expression, name(region)),
                text,
            }
        };
        // What the whole program does is said where most of it comes from.
        let main = main_change(diff).and_then(Main::key);
        match &outcome.verdict {
            Verdict::Passes => vec![],
            Verdict::Error { .. } => vec![remark(None, words::outcome(outcome))],
            Verdict::Undecided { .. } => {
                let text = format!("undecided: {}", words::outcome(outcome));
                vec![remark(outcome.region(), text)]
            }
            Verdict::Holds { hits } => {
                let hits = hits.iter().take(options.top);
                let one = |hit| remark(hit_region(hit).or(main), words::explained(hit, diff));
                hits.map(one).collect()
            }
        }
    });
    let (pairs, _) = listed(diff, options);
    let changed = pairs.into_iter().filter(|p| p.is_changed()).map(|pair| {
        let (path, line) = at(pair.b.first());
        Remark {
            is_failure: false,
            path,
            line,
            title: "ompfuse: a region changed".to_owned(),
            identity: name(pair.b.first()),
            text: told(pair),
        }
    });
    failed.chain(changed).collect()
}

fn told(pair: &Pair) -> String {
    let mut text = format!(
        "{} at {}",
        words::compare_kind(pair),
        words::pair_place(pair)
    );
    if let Some(change) = pair.headline().filter(|c| c.change.is_some()) {
        let what = words::quantity(&change.quantity);
        text += &match words::is_told(change) {
            true => format!(
                ": {} of {what} ({})",
                words::changed(change),
                words::both(change)
            ),
            false => format!(": no difference of {what} was seen"),
        };
    }
    for cause in words::causes(pair) {
        text += "; ";
        text += &cause;
    }
    text
}

/// Lines that GitHub makes annotations of: failed expressions are errors, changed regions warnings.
pub fn github(diff: &Diff, outcomes: &[Outcome], options: &Options) -> String {
    let mut out = String::new();
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    for remark in remarks(diff, outcomes, options) {
        let kind = if remark.is_failure {
            "error"
        } else {
            "warning"
        };
        let mut place = String::new();
        if let Some(path) = &remark.path {
            place += &format!("file={},", property(path));
        }
        if let Some(line) = remark.line {
            place += &format!("line={line},");
        }
        let title = property(&remark.title);
        out += &format!("::{kind} {place}title={title}::{}\n", data(&remark.text));
    }
    out += &format!("::notice title=ompfuse::{}\n", data(&words::verdict(diff)));
    out
}

/// Text as workflow commands need it.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// GitLab's Code Quality report. The format needs a line, so what has none is told of the first one of the program's file.
pub fn gitlab(diff: &Diff, outcomes: &[Outcome], options: &Options) -> String {
    let entry = |remark: Remark| -> Value {
        // What is about no line is told of the program.
        let path = remark.path.unwrap_or_else(|| diff.b.program.clone());
        let line = remark.line.unwrap_or(1);
        let identity = format!("{path}:{}:{}", remark.title, remark.identity);
        json!({
            "description": remark.text,
            "check_name": remark.title,
            "fingerprint": format!("{:016x}", xxh3_64(identity.as_bytes())),
            "severity": if remark.is_failure { "major" } else { "minor" },
            "location": {"path": path, "lines": {"begin": line}},
        })
    };
    let entries = remarks(diff, outcomes, options).into_iter().map(entry);
    let entries: Vec<Value> = entries.collect();
    serde_json::to_string_pretty(&entries).expect("strings and numbers")
}
