//! `ompfuse combine --engine`: units that were partitioned are combined by an engine that runs on many machines.

mod plan;
mod result;

use super::Args;
use crate::{input, output};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use ompfuse_fuse::Strategy;
use ompfuse_fuse::exchange::Manifest;
use ompfuse_report::words::shell_words;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What Spark's Python runs.
const SCRIPT: &str = include_str!("../../../../spark/ompfuse_spark.py");

/// Names the interpreter that has Spark.
const PYTHON: &str = "OMPFUSE_PYTHON";

/// From this share of all units on, a group keeps others waiting.
const LARGE: f64 = 0.25;

/// An engine, and where it is.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    /// Spark's URL of its master.
    master: String,
}

/// For clap.
pub(super) fn parse(text: &str) -> Result<Engine, String> {
    let master = match text.strip_prefix("spark") {
        Some("") => "local[*]".to_owned(),
        Some(rest) if rest.starts_with("://") => text.to_owned(),
        Some(rest) if rest.len() > 1 && rest.starts_with(':') => rest[1..].to_owned(),
        _ => {
            return Err(
                "there is spark, or spark:URL, as spark:yarn or spark://host:7077".to_owned(),
            );
        }
    };
    Ok(Engine { master })
}

#[derive(Serialize)]
struct Answer<'a> {
    output: &'a Path,
    xus: u64,
    left_over: u64,
}

pub(super) fn run(args: &Args, engine: &Engine) -> Result<()> {
    let [units] = &args.inputs[..] else {
        return Err(output::Usage(
            "--engine takes one folder, which `ompfuse partition RUN... -o DIR` has written"
                .to_owned(),
        )
        .into());
    };
    let Some(into) = &args.output else {
        return Err(
            output::Usage("the result has no name: give it with -o FOLDER".to_owned()).into(),
        );
    };
    ensure!(
        !into.exists(),
        "cannot write {}: it is there already; remove it, or name another folder",
        into.display()
    );
    let manifest = manifest_of(units)?;
    let plan = plan::plan(args, units, &manifest)?;
    let by = by(plan.strategy, &manifest);
    if by == "type" {
        tell_large(&manifest);
    }
    let absolute = |path: &Path| {
        std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
    };
    let python = std::env::var_os(PYTHON).map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let relax = args.relax.to_possible_value();
    let relax = relax.map_or_else(String::new, |v| v.get_name().to_owned());
    let partial = result::partial(into);
    let mut child = Command::new(&python)
        .arg("-")
        .arg("--ompfuse")
        .arg(std::env::current_exe().context("cannot find this command")?)
        .arg("--units")
        .arg(absolute(units)?)
        .arg("--folder")
        .arg(absolute(&partial)?)
        .args(["--master", &engine.master, "--by", by])
        .args(["--strategy", plan.strategy.name(), "--relax", &relax])
        .args(["--first", &plan.first.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| {
            format!(
                "cannot start {} ({PYTHON} names another one)",
                python.display()
            )
        })?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it doesn't read it, its status says so.
        let _ = stdin.write_all(SCRIPT.as_bytes());
    }
    let status = child.wait().context("cannot wait for Spark")?;
    if !status.success() {
        // It has said why.
        return Err(output::SaidAlready.into());
    }
    let xus = result::finish(&partial, into, units, &manifest, &plan)?;
    let first = units_of(&manifest, |run| run == plan.first);
    let answer = Answer {
        output: into,
        xus,
        left_over: first.saturating_sub(xus),
    };
    if args.format.is_json() {
        return output::print_json(&answer);
    }
    let Answer { xus, left_over, .. } = answer;
    output::print(&format!(
        "{}: {xus} execution units, {left_over} of the first run left over",
        into.display()
    ))
}

fn manifest_of(units: &Path) -> Result<Manifest> {
    let file = units.join("manifest.json");
    ensure!(
        file.is_file(),
        "cannot combine {} by an engine: `ompfuse partition` has not written it; partition runs first, as by \
         `ompfuse partition {} -o units`, and combine units",
        units.display(),
        shell_words([&*units.to_string_lossy()])
    );
    let cannot = || {
        format!(
            "cannot combine {} by an engine: {} is damaged",
            units.display(),
            file.display()
        )
    };
    let manifest: Manifest =
        serde_json::from_str(&input::text(&file).with_context(cannot)?).with_context(cannot)?;
    manifest.runs().with_context(cannot)?;
    Ok(manifest)
}

/// What groups have in common: where labels decide, each rank is one.
fn by(strategy: Strategy, manifest: &Manifest) -> &'static str {
    let mut groups = manifest.parts.iter().flat_map(|p| &p.groups);
    match strategy {
        Strategy::Lgl if groups.any(|g| g.rank.is_some()) => "rank",
        _ => "type",
    }
}

fn units_of(manifest: &Manifest, is_wanted: impl Fn(u16) -> bool) -> u64 {
    let parts = manifest.parts.iter().filter(|p| is_wanted(p.run));
    parts.flat_map(|p| &p.groups).map(|g| g.units).sum()
}

/// Says which type keeps others waiting.
fn tell_large(manifest: &Manifest) {
    let mut types: BTreeMap<(&Option<String>, &Option<String>), u64> = BTreeMap::new();
    for group in manifest.parts.iter().flat_map(|p| &p.groups) {
        *types.entry((&group.module, &group.name)).or_default() += group.units;
    }
    let all = units_of(manifest, |_| true);
    let largest = types.iter().max_by_key(|(_, units)| **units);
    if let Some(((_, Some(name)), &units)) = largest
        && types.len() > 1
        && units as f64 >= LARGE * all as f64
    {
        output::remark(format_args!(
            "type {name} has {units} of {all} units: the process that combines it keeps the others waiting"
        ));
    }
}
