//! Jobs where commands take runs: comparisons, baselines, histories, profiles for other tools. What is said of a job is what is said of
//! one run with all ranks.

use super::super::exchange;
use super::super::ranks::{self, IMPLEMENTATIONS};
use super::{copy, list, near, number, taken_apart};
use flate2::read::GzDecoder;
use ompfuse_tests::command;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One run of three ranks, and the same records as a job.
fn recorded() -> Option<(tempfile::TempDir, PathBuf, PathBuf)> {
    let (compiler, launcher) = IMPLEMENTATIONS[0];
    let (folder, _program) = ranks::build(compiler)?;
    let line = format!("{launcher} -n 3 \"$OMPFUSE\" record --events none -o one -- ./ranks");
    ranks::run(folder.path(), &line).ok(&line);
    let (run, job) = (
        folder.path().join("one/run-0001"),
        folder.path().join("job"),
    );
    taken_apart(&run, &job);
    Some((folder, run, job))
}

fn p(text: &str) -> &Path {
    Path::new(text)
}

/// A file of compressed JSON.
fn unpacked(file: &Path) -> Value {
    let file = std::fs::File::open(file).expect("it was written");
    serde_json::from_reader(GzDecoder::new(file)).expect("it is JSON")
}

/// What identifies a region in a baseline, and its values.
fn regions(side: &Value) -> BTreeMap<String, Value> {
    let regions = list(side, "regions").iter();
    regions
        .map(|r| (r["key"].to_string(), r["values"].clone()))
        .collect()
}

/// The value of one run.
fn sample(value: &Value) -> f64 {
    let number = value[1].as_f64();
    number.unwrap_or_else(|| panic!("{value} is no sample"))
}

/// Each value that a job has is the run's. `of_units`: what only single units tell, which a job lacks.
fn same_values(what: &str, one: &Value, job: &Value) {
    let of_units = ["median-unit", "disturbed-units"];
    let lacks = |name: &&String| job.get(name.as_str()).is_none();
    let one = one.as_object().expect("values have names");
    for (name, value) in one.iter().filter(|(name, _)| !lacks(name)) {
        let (a, b) = (sample(value), sample(&job[name]));
        let scale = a.abs().max(b.abs());
        assert!((a - b).abs() <= 1e-4 * scale, "{what}: {name}: {a}, {b}");
    }
    let missing: Vec<&String> = one.keys().filter(lacks).collect();
    let other = missing
        .iter()
        .find(|name| !of_units.contains(&name.as_str()));
    assert_eq!(other, None, "{what}");
}

#[test]
fn a_job_is_compared_as_one_run_is() {
    let Some((folder, run, job)) = recorded() else {
        return;
    };
    let [of_one, of_job] = [(&run, "one.json.gz"), (&job, "job.json.gz")].map(|(input, name)| {
        let file = folder.path().join(name);
        command::ok([p("baseline"), input, p("-o"), &file]);
        file
    });
    let (one, all) = (unpacked(&of_one), unpacked(&of_job));
    same_values("program", &one["total"], &all["total"]);
    let (of_run, of_ranks) = (regions(&one), regions(&all));
    assert!(of_run.len() >= 2, "{one}");
    assert!(
        of_run.keys().eq(of_ranks.keys()),
        "{of_run:?}, {of_ranks:?}"
    );
    for (key, values) in &of_run {
        same_values(key, values, &of_ranks[key]);
    }
    for key in [
        "threads",
        "team",
        "program",
        "host_hash",
        "args_hash",
        "damage",
        "unseen",
    ] {
        assert_eq!(one["origin"][key], all["origin"][key], "{key}");
    }
    // A job on either side, as a folder and as a baseline.
    let json = [
        "--format=json",
        "--undecided=estimate",
        "--fail-on",
        "executions!=",
        "--fail-on",
        "time>0.1%",
    ];
    for (a, b) in [(&run, &job), (&job, &run), (&of_job, &job), (&of_one, &job)] {
        let args = [p("diff"), a, b].into_iter().chain(json.map(p));
        let diff = command::json(args);
        assert_eq!(list(&diff, "pairs").len(), of_run.len(), "{diff}");
        assert_eq!(diff["only_a"], serde_json::json!([]), "{diff}");
        assert_eq!(diff["only_b"], serde_json::json!([]), "{diff}");
    }
}

#[test]
fn a_change_of_a_job_is_found() {
    let Some((folder, _run, job)) = recorded() else {
        return;
    };
    let launched = |name: &str, ranks: u32| {
        let line = format!(
            "{} -n {ranks} \"$OMPFUSE\" record --events none -o {name}/%r -- ./ranks",
            IMPLEMENTATIONS[0].1
        );
        ranks::run(folder.path(), &line).ok(&line);
        folder.path().join(name)
    };
    let two = launched("two", 2);
    let diff = command::json([p("diff"), &job, &two, p("--format=json")]);
    // Rank r executes 8000 (1 + 3 r) iterations: 96,000 are on three ranks, 40,000 on two.
    let is_loop = |pair: &&Value| pair["b"][0]["construct"] == "loop";
    let mut pairs = list(&diff, "pairs").iter();
    let found = pairs.find(is_loop).expect("it has a loop");
    let mut changes = list(found, "changes").iter();
    let change = changes.find(|c| c["quantity"] == "iterations");
    let change = change.expect("iterations are on record");
    assert_eq!(
        (number(change, "a"), number(change, "b")),
        (96_000.0, 40_000.0),
        "{found}"
    );
    let failed = command::run([p("diff"), &two, &job, p("--fail-on"), p("executions!=")]);
    assert_eq!(failed.status, 3, "{failed:?}");
    // A rank is missing: no gate holds or passes, and there is no baseline.
    let cut = folder.path().join("cut");
    copy(&job, &cut);
    std::fs::remove_dir_all(cut.join("1")).expect("it was copied");
    let gate = command::run([p("diff"), &job, &cut, p("--fail-on"), p("time>5%")]);
    assert_eq!(gate.status, 1, "{gate:?}");
    let file = folder.path().join("cut.json.gz");
    let refused = command::run([p("baseline"), &cut, p("-o"), &file]);
    assert_eq!(refused.status, 1, "{refused:?}");
    let said = refused.errors();
    assert!(
        said.contains("nothing was recorded of rank 1 of 3"),
        "{said}"
    );
    // One line says what the folders were taken for.
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(!file.exists());
    // Baselines of jobs are a history.
    let history = folder.path().join("history");
    std::fs::create_dir(&history).expect("there is room for a folder");
    for (name, job, date) in [("1", &job, "2026-11-01"), ("2", &two, "2026-11-02")] {
        let file = history.join(format!("{name}.json.gz"));
        let date = format!("{date}T10:00:00+01:00");
        let args = [
            p("baseline"),
            job,
            p("-o"),
            &file,
            p("--commit"),
            p(name),
            p("--date"),
            p(&date),
        ];
        command::ok(args);
    }
    let shown = command::ok([p("history"), &history]).text();
    assert!(shown.contains("2 commits"), "{shown}");
}

/// Rows of Extra-P's measurements by the last part of the path: the functions that led there are not known of jobs.
fn measured(input: &Path) -> BTreeMap<(String, String), f64> {
    let text = command::ok([p("export"), input, p("--to"), p("extra-p")]).text();
    let mut found: BTreeMap<(String, String), f64> = BTreeMap::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).expect("each line is JSON");
        let path = row["callpath"].as_str().expect("a path");
        let name = path.rsplit("->").next().unwrap_or(path).to_owned();
        let metric = row["metric"].as_str().expect("a metric").to_owned();
        *found.entry((name, metric)).or_default() += number(&row, "value");
    }
    found
}

/// Sums of a family of metrics by region, rank and state.
fn samples(input: &Path, family: &str) -> BTreeMap<Vec<String>, f64> {
    let text = command::ok([p("export"), input, p("--to"), p("openmetrics")]).text();
    assert!(text.ends_with("# EOF\n"), "{text}");
    let mut found: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for line in text.lines() {
        let Some((labels, value)) = line.strip_prefix(family).and_then(|l| l.split_once("} "))
        else {
            continue;
        };
        let is_kept = |label: &&str| {
            ["region=", "rank=", "state="]
                .iter()
                .any(|k| label.contains(k))
        };
        let kept = labels.split("\",").filter(is_kept);
        let kept = kept
            .map(|l| l.trim_matches(['{', '"']).to_owned())
            .collect();
        *found.entry(kept).or_default() += value.parse::<f64>().expect("a number");
    }
    assert!(!found.is_empty(), "{text}");
    found
}

fn alike<K: Ord + std::fmt::Debug>(one: &BTreeMap<K, f64>, other: &BTreeMap<K, f64>) {
    assert!(one.keys().eq(other.keys()), "{one:?}, {other:?}");
    for (key, a) in one {
        let (a, b) = (
            serde_json::json!({"v": a}),
            serde_json::json!({"v": other[key]}),
        );
        near(&a, &b, "v");
    }
}

#[test]
fn other_tools_get_the_same_of_a_job() {
    let Some((folder, run, job)) = recorded() else {
        return;
    };
    let (of_run, mut of_job) = (measured(&run), measured(&job));
    assert!(of_run.len() > 8, "{of_run:?}");
    // What is inside of functions that aren't known is inside of the program.
    let functions = of_run.keys().filter(|key| !of_job.contains_key(key));
    for key in functions.cloned().collect::<Vec<_>>() {
        assert!(of_run[&key] == 0.0 || key.1 == "inclusive time", "{key:?}");
        of_job.insert(key.clone(), of_run[&key]);
    }
    alike(&of_run, &of_job);
    for family in [
        "ompfuse_region_time_seconds_total",
        "ompfuse_region_units_total",
    ] {
        alike(&samples(&run, family), &samples(&job, family));
    }
    // CUBE's archive has a description and rows; each rank is a place.
    let file = folder.path().join("job.cubex");
    command::ok([p("export"), &job, p("--to"), p("cube"), p("-o"), &file]);
    let bytes = std::fs::read(&file).expect("it was written");
    let text = String::from_utf8_lossy(&bytes);
    for rank in 0..3 {
        assert!(
            text.contains(&format!("<name>rank {rank}</name>")),
            "{text}"
        );
    }
    assert_eq!(
        text.matches("<name>all threads</name>").count(),
        3,
        "{text}"
    );
    // Single units and threads are in no summary.
    for to in ["csv", "perfetto", "dot"] {
        let refused = command::run([p("export"), &job, p("--to"), p(to)]);
        assert_eq!(refused.status, 1, "{refused:?}");
        let said = refused.errors();
        assert!(
            said.contains("export the folder of a rank") && said.lines().count() == 1,
            "{said}"
        );
    }
    // Summaries without call paths, and one of another version.
    let without = folder.path().join("without");
    for rank in ["0", "1", "2"] {
        let to = without.join(rank);
        std::fs::create_dir_all(&to).expect("there is room for a folder");
        let text = command::ok([p("report"), &job.join(rank), p("--format=json")]).text();
        let mut summary: Value = serde_json::from_str(&text).expect("it is JSON");
        summary["call_paths"] = serde_json::json!([]);
        std::fs::write(to.join("summary.json"), summary.to_string()).expect("there is room");
    }
    let said = command::run([p("export"), &without, p("--to"), p("cube")]).errors();
    assert!(said.contains("has no room for call paths"), "{said}");
    std::fs::write(without.join("0/summary.json"), "{\"version\": 1}").expect("there is room");
    let said = command::run([p("report"), &without, p("--format=json")]);
    let told = format!("{}{}", said.errors(), String::from_utf8_lossy(&said.stdout));
    assert!(told.contains("its version is 1, and this"), "{told}");
}

/// Two launches of eight ranks with two threads each count another event. Engines are fed with groups of both, and their result is what
/// `combine` makes of each rank's runs.
#[test]
fn a_real_job_becomes_one_profile() {
    let Some(python) = exchange::python() else {
        return;
    };
    let (compiler, launcher) = IMPLEMENTATIONS[0];
    let Some((folder, _program)) = ranks::build(compiler) else {
        return;
    };
    let at = |name: &str| folder.path().join(name);
    for (job, event) in [("job-1", "task-clock"), ("job-2", "page-faults")] {
        let record = format!("record --events {event} -o {job}/%r");
        let line = format!("{launcher} -n 8 \"$OMPFUSE\" {record} -- ./ranks");
        ranks::run(folder.path(), &line).ok(&line);
        let text = command::ok([p("report"), &at(job)]).text();
        assert!(text.contains("8 MPI ranks"), "{text}");
    }
    let both = "\"$OMPFUSE\" partition job-1 --run 0 -o units && \"$OMPFUSE\" partition job-2 --run 1 -o units && \
                \"$OMPFUSE\" partition -o units";
    ranks::run(folder.path(), both).ok(both);
    let profiles: Vec<PathBuf> = (0..8)
        .map(|rank| {
            let of = |job: &str| at(job).join(rank.to_string());
            let profile = at(&format!("{rank}.parquet"));
            let runs = [of("job-1"), of("job-2")];
            let strategy = [p("--strategy"), p("lgl"), p("-o"), &profile];
            command::ok(
                [p("combine"), &runs[0], &runs[1]]
                    .into_iter()
                    .chain(strategy),
            );
            profile
        })
        .collect();
    let units = at("units");
    let known = [command::path(), &units];
    let args = known
        .into_iter()
        .chain(profiles.iter().map(PathBuf::as_path));
    let args: Vec<&str> = std::iter::once("ranks")
        .chain(args.map(|path| path.to_str().expect("UTF-8")))
        .collect();
    let rows = exchange::script(&python, &args);
    // Eight rounds with a range on each of two threads, if both got one.
    assert!(
        rows.as_u64().is_some_and(|rows| (64..=128).contains(&rows)),
        "{rows}"
    );
}
