//! Jobs: a folder for each rank, and one report made of what each rank has left.

mod clocks;
mod compared;

use super::ranks::{self, IMPLEMENTATIONS};
use ompfuse_tests::{command, compile, schema};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("there is room for a folder");
    for entry in std::fs::read_dir(from).expect("a folder can be listed") {
        let path = entry.expect("a folder can be listed").path();
        let target = to.join(path.file_name().expect("it has a name"));
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(std::fs::copy(&path, &target).expect("there is room for a copy")),
        }
    }
}

fn number(value: &Value, key: &str) -> f64 {
    let number = value[key].as_f64();
    number.unwrap_or_else(|| panic!("{key} is no number in {value}"))
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

#[track_caller]
fn near(one: &Value, other: &Value, key: &str) {
    let (a, b) = (number(one, key), number(other, key));
    let scale = a.abs().max(b.abs());
    assert!((a - b).abs() <= 1e-6 * scale, "{key}: {a}, {b}");
}

/// The records of one run by rank: a run folder for each, as if each had recorded alone.
fn taken_apart(run: &Path, job: &Path) {
    let files = || {
        let listing = std::fs::read_dir(run).expect("a run can be listed");
        listing.map(|e| e.expect("a run can be listed").path())
    };
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let mut pids: BTreeMap<String, u64> = BTreeMap::new();
    for path in files() {
        let name = name(&path);
        let pid = name
            .strip_prefix("process-")
            .and_then(|n| n.strip_suffix(".json"));
        if let Some(pid) = pid.filter(|pid| pid.parse::<u32>().is_ok()) {
            let text = std::fs::read(&path).expect("a file can be read");
            let header: Value = serde_json::from_slice(&text).expect("it is JSON");
            pids.insert(pid.to_owned(), header["mpi_rank"].as_u64().expect("a rank"));
        }
    }
    assert!(pids.len() > 1, "{pids:?}");
    for rank in pids.values() {
        let folder = job.join(rank.to_string()).join("run-0001");
        std::fs::create_dir_all(&folder).expect("there is room for a folder");
        for path in files() {
            let name = name(&path);
            let of = |pid: &&String| name.split(['-', '.']).any(|part| part == pid.as_str());
            let owner = pids.keys().find(of).map(|pid| pids[pid]);
            if owner.is_none_or(|owner| owner == *rank) {
                std::fs::copy(&path, folder.join(name)).expect("there is room for a copy");
            }
        }
    }
}

/// What is said of several processes' records does not depend on whether they are in one run, or in a folder for each rank.
#[test]
fn a_job_says_what_one_run_of_all_ranks_says() {
    for (compiler, launcher) in IMPLEMENTATIONS {
        let Some((folder, _program)) = ranks::build(compiler) else {
            continue;
        };
        let line = format!("{launcher} -n 3 \"$OMPFUSE\" record --events none -o one -- ./ranks");
        ranks::run(folder.path(), &line).ok(&line);
        let run = folder.path().join("one/run-0001");
        let job = folder.path().join("job");
        taken_apart(&run, &job);
        let (one, all) = (schema::checked(&run), schema::checked(&job));
        check_accounts(&one, &all);
        // What is not known is told, not shown.
        assert!(number(&one, "coverage") > 0.0 && all["coverage"].is_null());
        assert_eq!(all["mpi"]["is_apart"], true);
        let text = command::ok([Path::new("report"), &job]).text();
        let words: Vec<&str> = text.split_whitespace().collect();
        let told =
            "parallel coverage and late senders are not known of ranks that are recorded apart";
        assert!(words.join(" ").contains(told), "{text}");
        for key in ["thread_time_s", "xus", "threads", "available_s"] {
            near(&one, &all, key);
        }
        for key in [
            "imbalance_among_ranks",
            "imbalance_among_threads",
            "serial_s",
            "parallel_s",
        ] {
            near(&one["mpi"], &all["mpi"], key);
        }
        let (of_one, of_all) = (list(&one["mpi"], "ranks"), list(&all["mpi"], "ranks"));
        assert_eq!(of_one.len(), 3);
        for (a, b) in of_one.iter().zip(of_all) {
            for key in [
                "rank",
                "threads",
                "work_s",
                "wait_s",
                "mpi_s",
                "serial_s",
                "imbalance",
            ] {
                near(a, b, key);
            }
        }
        let (of_one, of_all) = (list(&one, "regions"), list(&all, "regions"));
        assert_eq!(of_one.len(), of_all.len());
        for a in of_one {
            let same = |b: &&Value| b["id"] == a["id"];
            let b = of_all.iter().find(same).expect("the same numbers");
            assert_eq!((&a["name"], &a["construct"]), (&b["name"], &b["construct"]));
            for key in [
                "executions",
                "xus",
                "work_s",
                "wait_s",
                "runtime_s",
                "share",
                "of_available",
            ] {
                near(a, b, key);
            }
            for key in ["imbalance_among_ranks", "imbalance_among_threads"] {
                near(&a["ranks"], &b["ranks"], key);
            }
            assert_eq!(a["ranks"]["per_rank"], b["ranks"]["per_rank"]);
        }
    }
}

fn check_accounts(one: &Value, all: &Value) {
    let states = |report: &Value| -> Vec<(Value, Value)> {
        let states = list(&report["account"], "states").iter();
        states
            .map(|s| (s["state"].clone(), s["ns"].clone()))
            .collect()
    };
    assert_eq!(states(one), states(all));
    let (a, b) = (
        &one["account"]["efficiencies"],
        &all["account"]["efficiencies"],
    );
    let known = a.as_object().expect("efficiencies are known");
    for (key, value) in known.iter().filter(|(_, value)| !value.is_null()) {
        assert!(value.is_number(), "{key}");
        near(a, b, key);
    }
}

/// What ranks leave when they record into folders of their own.
fn job_of(folder: &Path, launcher: &str, ranks: u32) -> PathBuf {
    let line =
        format!("{launcher} -n {ranks} \"$OMPFUSE\" record --events none -o job/%r -- ./ranks");
    self::ranks::run(folder, &line).ok(&line);
    folder.join("job")
}

fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

#[test]
fn missing_and_damaged_ranks_are_named() {
    let Some((folder, _program)) = ranks::build(IMPLEMENTATIONS[0].0) else {
        return;
    };
    let job = job_of(folder.path(), IMPLEMENTATIONS[0].1, 3);
    for rank in 0..3 {
        let summary = job.join(rank.to_string()).join("summary.json");
        assert!(summary.metadata().expect("it was left").len() <= 64 << 10);
        schema::is_read_back(&schema::printed(&summary));
    }
    let whole = schema::checked(&job);
    assert_eq!(notes(&whole), "[]");
    assert_eq!(whole["xus"], 48);
    let text = command::ok([Path::new("report"), &job]).text();
    assert!(text.contains("3 MPI ranks"), "{text}");

    // Records are read where a summary is damaged or there is none.
    let second = job.join("1/summary.json");
    std::fs::write(&second, "{\"version\":1,").expect("a file can be written");
    assert_eq!(schema::report(&job), command::ok(report_of(&job)).text());
    assert_eq!(schema::checked(&job)["account"], whole["account"]);
    // Summaries are enough.
    let gathered = folder.path().join("gathered");
    for rank in ["0", "2"] {
        let to = gathered.join(rank);
        std::fs::create_dir_all(&to).expect("there is room for a folder");
        std::fs::copy(job.join(rank).join("summary.json"), to.join("summary.json"))
            .expect("there is room for a copy");
    }
    let report = schema::checked(&gathered);
    assert!(
        notes(&report).contains("nothing was recorded of rank 1 of 3"),
        "{report}"
    );
    assert_eq!(report["mpi"]["missing"], serde_json::json!([1]));
    // A damaged summary without records.
    let third = gathered.join("2/summary.json");
    let kept = std::fs::read(&third).expect("it was copied");
    std::fs::write(&third, &kept[..kept.len() / 2]).expect("a file can be written");
    let report = schema::checked(&gathered);
    assert!(
        notes(&report).contains("left out, 2: cannot read"),
        "{report}"
    );
    std::fs::write(&third, kept).expect("a file can be written");
    // Nothing of it can be read.
    let broken = gathered.join("1/run-0001");
    copy(&job.join("1/run-0001"), &broken);
    std::fs::write(broken.join("run.json"), "{").expect("a file can be written");
    let report = schema::checked(&gathered);
    assert!(
        notes(&report).contains("left out, 1: cannot read the run"),
        "{report}"
    );
    assert_eq!(report["mpi"]["missing"], serde_json::json!([1]));
    // A rank of another launch.
    copy(&job.join("0"), &gathered.join("again"));
    let refused = command::run([Path::new("report"), &gathered]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.errors().contains("rank 0 is in 0 and in again"),
        "{refused:?}"
    );
    let refused = command::run([Path::new("combine"), &job]);
    assert!(refused.errors().contains("holds no run"), "{refused:?}");
}

fn report_of(job: &Path) -> [&Path; 3] {
    [Path::new("report"), job, Path::new("--format=json")]
}

/// Ranks' summaries with other numbers, as of a larger job.
fn many(from: &Path, to: &Path, ranks: u64, change: impl Fn(u64, &mut Value)) {
    let text = std::fs::read_to_string(from).expect("there is a summary");
    let summary: Value = serde_json::from_str(&text).expect("it is JSON");
    for rank in 0..ranks {
        let mut summary = summary.clone();
        summary["host"] = format!("node{}", rank / 4).into();
        summary["mpi"]["size"] = ranks.into();
        summary["mpi"]["ranks"][0]["rank"] = rank.into();
        summary["account"]["processes"][0]["mpi_rank"] = rank.into();
        for region in summary["regions"].as_array_mut().expect("a list") {
            region["ranks"]["per_rank"][0]["rank"] = rank.into();
        }
        change(rank, &mut summary);
        let folder = to.join(rank.to_string());
        std::fs::create_dir_all(&folder).expect("there is room for a folder");
        std::fs::write(folder.join("summary.json"), summary.to_string()).expect("there is room");
    }
}

/// POP's balance of the ranks' times outside of MPI, inside and between nodes, computed anew.
#[test]
fn balance_is_divided_by_nodes() {
    let Some((folder, _program)) = ranks::build(IMPLEMENTATIONS[0].0) else {
        return;
    };
    let job = job_of(folder.path(), IMPLEMENTATIONS[0].1, 2);
    let large = folder.path().join("large");
    // Node n has the ranks 4 n to 4 n + 3; their times outside of MPI differ inside of nodes, and between them.
    let outside = |rank: u64| 100_000_000 * (10 + rank % 4 + 2 * (rank / 4));
    let own = 5_000_000_000u64;
    many(&job.join("0/summary.json"), &large, 16, |rank, summary| {
        let account = &mut summary["account"];
        let (useful, mpi) = (outside(rank), own - outside(rank));
        account["own_ns"] = own.into();
        account["available_ns"] = own.into();
        let process = &mut account["processes"][0];
        process["own_ns"] = own.into();
        process["available_ns"] = own.into();
        process["threads"] = 1.into();
        process["states"] = serde_json::json!([["useful", useful], ["communication", mpi]]);
        let state = |state: &str, ns: u64| serde_json::json!({"state": state, "ns": ns, "share": 0.0, "parts": []});
        account["states"] =
            serde_json::json!([state("useful", useful), state("communication", mpi)]);
        summary["losses"] = serde_json::json!([]);
        summary["lost_s"] = (mpi as f64 * 1e-9).into();
    });
    let report = schema::checked(&large);
    let found = &report["account"]["efficiencies"];
    let all: Vec<f64> = (0..16).map(|rank| outside(rank) as f64).collect();
    let longest = all.iter().copied().fold(0.0, f64::max);
    let mean = all.iter().sum::<f64>() / 16.0;
    let nodes = all.chunks(4).map(|node| node.iter().sum::<f64>() / 4.0);
    let largest = nodes.fold(0.0, f64::max);
    let expected = serde_json::json!({
        "mpi_communication": longest / own as f64,
        "mpi_load_balance": mean / longest,
        "mpi_load_balance_inside_nodes": largest / longest,
        "mpi_load_balance_between_nodes": mean / largest,
    });
    for key in expected.as_object().expect("it is one").keys() {
        near(found, &expected, key);
    }
    let text = command::ok([Path::new("report"), &large]).text();
    assert!(text.contains("inside nodes"), "{text}");
    assert!(text.contains("12 more ranks lie between"), "{text}");
}

/// A program with more regions than a summary has room for; its ranks need no MPI, only a launcher's variables.
#[test]
fn a_summary_has_room_for_so_much() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let mut source = "int main(void) { int n = 0;\n".to_owned();
    for _ in 0..300 {
        source += "#pragma omp parallel for reduction(+:n)\nfor (int i = 0; i < 100; i++) n++;\n";
    }
    source += "return n != 30000; }\n";
    if compile::text(folder.path(), "many", &source, "gcc -O1 -g -fopenmp").is_none() {
        return;
    }
    let script = "for r in 0 1; do OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=$r \
                  \"$OMPFUSE\" record --events none -o job/%r -- ./many || exit 1; done";
    ranks::run(folder.path(), script).ok(script);
    let job = folder.path().join("job");
    for rank in ["0", "1"] {
        let summary = job.join(rank).join("summary.json");
        let length = summary.metadata().expect("it was left").len();
        assert!((32 << 10..=64 << 10).contains(&length), "{length}");
    }
    let report = schema::checked(&job);
    let text = notes(&report);
    assert!(
        text.contains("rank 0: the summary has no room for"),
        "{text}"
    );
    assert!(text.contains("likewise rank 1"), "{text}");
    // Sums have what regions lack.
    let sum: f64 = ["0", "1"]
        .map(|rank| number(&schema::checked(&job.join(rank)), "available_s"))
        .iter()
        .sum();
    assert!((number(&report, "available_s") - sum).abs() < 1e-9);
    assert_eq!(report["xus"], 2 * 2 * 300);
    // What is in no summary, or in that of one rank only, is not compared.
    let said = command::run([Path::new("diff"), &job, &job]);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(
        said.errors().contains("regions are not compared"),
        "{said:?}"
    );
    // None is in both: each summary keeps those with even numbers, or with odd ones.
    for rank in [0, 1] {
        let file = job.join(rank.to_string()).join("summary.json");
        let text = std::fs::read_to_string(&file).expect("it was left");
        let mut summary: Value = serde_json::from_str(&text).expect("it is JSON");
        let rows = summary["compared"]["rows"].as_array_mut().expect("a list");
        rows.retain(|row| row["regions"][0].as_u64().is_some_and(|id| id % 2 == rank));
        assert!(!rows.is_empty(), "{text}");
        for row in rows {
            row.as_object_mut().expect("it has names").remove("parent");
        }
        std::fs::write(&file, summary.to_string()).expect("a file can be written");
    }
    let said = command::run([Path::new("diff"), &job, &job]);
    assert_eq!(said.status, 1, "{said:?}");
    let why = "none of them is in the summaries of all ranks";
    assert!(said.errors().contains(why), "{said:?}");
    command::ok([Path::new("diff"), &job, &job, Path::new("--anyway")]);
}

/// Ten thousand ranks (run it in a release build; a time is no verdict on a busy machine): memory is what counts.
#[test]
#[ignore = "writes 600 MB"]
fn ten_thousand_ranks_fit() {
    let Some((folder, _program)) = ranks::build(IMPLEMENTATIONS[0].0) else {
        return;
    };
    let job = job_of(folder.path(), IMPLEMENTATIONS[0].1, 2);
    let large = folder.path().join("large");
    many(&job.join("0/summary.json"), &large, 10_000, |_, summary| {
        let regions = summary["regions"].as_array_mut().expect("a list");
        let some = regions.clone();
        for (id, region) in (some.len() + 1..=60).zip(some.iter().cycle()) {
            let mut region = region.clone();
            region["id"] = id.into();
            region["name"] = format!("{id:#x}").into();
            regions.push(region);
        }
    });
    let begun = std::time::Instant::now();
    let line = "ulimit -v 1048576; \"$OMPFUSE\" report large";
    let said = ranks::run(folder.path(), line).ok(line).text();
    assert!(said.contains("10000 MPI ranks"), "{said}");
    println!("{:.1} s", begun.elapsed().as_secs_f64());
}

/// Starts a program as two ranks, which are recorded apart, and returns the job's report.
fn apart(folder: &Path, options: &str, command: &str) -> Value {
    let script = format!(
        "for r in 0 1; do OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=$r \
         OMP_NUM_THREADS=2 \"$OMPFUSE\" record {options} -o job/%r -- {command} || exit 1; done"
    );
    ranks::run(folder, &script).ok(&script);
    schema::checked(&folder.join("job"))
}

/// A function whose jump has a computed target can't count. Only the second rank executes it.
const COMPUTED: &str = r#"
#include <stdlib.h>
volatile long sink, off; void *volatile base;
int main(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank || atoi(rank) == 1) {
        #pragma omp parallel
        {
            base = &&a; off = (long)((char *)&&b - (char *)&&a); long s = 0;
            for (long i = 0; i < 20000000; i++) {
                goto *(void *)((char *)base + ((i & 1) ? off : 0));
                a: s += i; continue;
                b: s -= 3; continue;
            }
            sink = s;
        }
    }
    #pragma omp parallel for schedule(dynamic, 10)
    for (long i = 0; i < 200; i++) { long s = 0; for (int k = 0; k < 2000; k++) s += k ^ i; sink = s; }
}
"#;

/// What can't be counted in one rank is a part of the job's work.
#[test]
fn what_one_rank_can_not_count_is_told_of_the_job() {
    let folder = tempfile::tempdir().expect("there is room");
    if compile::text(folder.path(), "computed", COMPUTED, "gcc -O2 -g -fopenmp").is_none() {
        return;
    }
    let report = apart(folder.path(), "--count", "./computed");
    let share = |function: &Value| function["share"].as_f64();
    let shares: Vec<f64> = list(&report, "uncounted")
        .iter()
        .filter_map(share)
        .collect();
    let regions = list(&report, "regions");
    let work = |r: &Value| number(r, "work_s");
    let all: f64 = regions.iter().map(work).sum();
    let own = regions.iter().map(work).fold(0.0, f64::max);
    assert_eq!(shares.len(), 1, "{:#}", report["uncounted"]);
    assert!(
        (shares[0] - own / all).abs() < 1e-6,
        "{shares:?}, {own} of {all}"
    );
    // Runs tell the same in any order.
    let runs = |flags: &[&str], name: &str| {
        let out = folder.path().join(name);
        let program = folder.path().join("computed");
        ompfuse_tests::table::record(&program, &[], 2, &out, flags).ok(name);
        ompfuse_tests::table::runs(&out)
            .pop()
            .expect("a run was recorded")
    };
    let (plain, counted) = (
        runs(&["--events", "none"], "plain"),
        runs(&["--count"], "counted"),
    );
    let told = |first: &Path, second: &Path, name: &str| {
        let out = folder.path().join(name);
        command::run([Path::new("combine"), first, second, Path::new("-o"), &out]).ok(name);
        let report = command::report(&out);
        let functions = list(&report, "uncounted").iter();
        let known = functions.filter(|f| !f["share"].is_null());
        known.map(|f| f["function"].to_string()).collect::<Vec<_>>()
    };
    let one = told(&plain, &counted, "one.parquet");
    assert_eq!(one.len(), 1);
    assert_eq!(told(&counted, &plain, "other.parquet"), one);
}

/// Its own time is that of the longest rank, and not more than each rank's own.
#[test]
fn a_job_takes_as_long_as_its_longest_rank() {
    let folder = tempfile::tempdir().expect("there is room");
    let source = "#include <stdlib.h>\n#include <unistd.h>\nint main(void) {\n\
                  usleep(atoi(getenv(\"OMPI_COMM_WORLD_RANK\")) ? 40000 : 10000);\n\
                  #pragma omp parallel\nusleep(1000);\nreturn 0; }";
    if compile::text(folder.path(), "sleeps", source, "gcc -O2 -fopenmp").is_none() {
        return;
    }
    let report = apart(folder.path(), "--events none", "./sleeps");
    let own = ["0", "1"].map(|rank| {
        let rank = schema::checked(&folder.path().join("job").join(rank));
        number(&rank, "lifetime_s")
    });
    let longest = own[0].max(own[1]);
    assert!(
        (number(&report, "lifetime_s") - longest).abs() < 1e-9,
        "{own:?}"
    );
    let job = folder.path().join("job");
    let text = command::run([Path::new("report"), &job])
        .ok("report")
        .text();
    assert!(text.contains("in 2 processes together"), "{text}");
}
