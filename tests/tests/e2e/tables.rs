//! Exported tables and metrics, read back by software that isn't ours: the numbers are the report's.

use super::control::steady::{Steady, TASKS};
use super::exchange::python;
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, has, process, repository, schema, table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// What `tests/src/tables.py` prints.
#[track_caller]
fn read(python: &Path, folder: &Path, args: &[&str]) -> Value {
    let mut reader = Command::new(python);
    reader.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tables.py"));
    reader.args(args).current_dir(folder);
    reader.env("MPLBACKEND", "Agg").env("MPLCONFIGDIR", folder);
    let said = process::run(&mut reader).ok(&format!("reading {args:?}"));
    serde_json::from_slice(&said.stdout).expect("JSON")
}

/// Exports an input in all forms, under the names that the reader knows.
fn export_all(input: &Path, folder: &Path) {
    for table in ["units", "regions"] {
        for form in ["csv", "parquet", "arrow"] {
            let file = folder.join(format!("{table}.{form}"));
            export(input, &file, &["--to", form, "--table", table]);
        }
    }
    export(input, &folder.join("metrics.txt"), &["--to", "openmetrics"]);
}

fn export(input: &Path, file: &Path, args: &[&str]) {
    let paths = [Path::new("export"), input, Path::new("-o"), file];
    let args = args.iter().map(Path::new);
    command::ok(paths.into_iter().chain(args));
}

#[track_caller]
fn close(found: &Value, expected: &Value, what: &str) {
    let number = |of: &Value| of.as_f64().unwrap_or(0.0);
    let (a, b) = (number(found), number(expected));
    let is_close = (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    assert!(is_close, "{what}: {found}, in the report {expected}");
}

/// Compares a region of a table with the report's.
fn check_region(found: &Value, region: &Value, overheads: &[Value], what: &str) {
    let threads = region["per_thread"].as_array().expect("a list");
    assert_eq!(found["threads"], threads.len(), "{what}");
    for name in ["time_s", "work_s", "wait_s", "runtime_s", "xus"] {
        close(&found[name], &region[name], what);
    }
    for (name, sum) in region["times"].as_object().into_iter().flatten() {
        close(&found[name], sum, &format!("{what}, {name}"));
    }
    let counted = &region["events"]["task-clock"];
    close(
        &found["task-clock"],
        counted,
        &format!("{what}, task-clock"),
    );
    assert_eq!(found["task-clock"].is_null(), counted.is_null(), "{what}");
    let overhead = overheads.iter().find(|o| o["region"] == region["id"]);
    for name in [
        "total_s",
        "synchronization_s",
        "imbalance_s",
        "limited_parallelism_s",
        "management_s",
    ] {
        let expected = overhead.map_or(&Value::Null, |o| &o[name]);
        let found = &found[format!("region_{name}")];
        assert_eq!(found.is_null(), expected.is_null(), "{what}, {name}");
        close(found, expected, &format!("{what}, {name}"));
    }
}

#[test]
fn numbers_are_those_of_the_report() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("there is room for runs");
    let names = ["tasking", "sections", "locks"];
    for name in names {
        let Some(build) = Fixture::open(name).ordinary_builds("gcc").pop() else {
            return;
        };
        let out = folder.path().join(name);
        table::record(&build.path, &[], 2, &out, &table::ONE_EVENT).ok(name);
        export_all(&table::runs(&out)[0], &out);
    }
    let args: Vec<&str> = ["read", "task-clock"].into_iter().chain(names).collect();
    let found = read(&python, folder.path(), &args);
    for (at, name) in names.into_iter().enumerate() {
        let run = &table::runs(&folder.path().join(name))[0];
        check(name, run, &found[at]);
    }
}

/// Compares what readers have found with the report.
#[track_caller]
fn check(name: &str, run: &Path, found: &Value) {
    let report: Value = serde_json::from_str(&schema::report(run)).expect("JSON");
    let list = |name: &str| report[name].as_array().cloned().expect("a list");
    let (regions, overheads) = (list("regions"), list("overheads"));
    let xus = table::export(run);
    let labels = Value::from(table::labels(&xus));
    let own: u64 = xus.iter().map(|xu| xu.number("own_ns")).sum();
    let clock = xus.iter().filter(|xu| !xu.columns["task-clock"].is_empty());
    let counts: Vec<u64> = clock.map(|xu| xu.number("task-clock")).collect();
    for (reader, of_reader) in found["units"].as_object().expect("readers") {
        assert_eq!(
            of_reader["own_ns"][0].as_f64(),
            Some(own as f64),
            "{reader}"
        );
        assert_eq!(of_reader["labels"], labels, "{name}: {reader}");
        let (sum, known) = (
            &of_reader["events"]["task-clock"][0],
            &of_reader["events"]["task-clock"][1],
        );
        let expected: u64 = counts.iter().sum();
        assert_eq!(sum.as_f64(), Some(expected as f64), "{name}: {reader}");
        assert_eq!(*known, counts.len(), "{name}: {reader}");
    }
    for (reader, of_reader) in found["regions"].as_object().expect("readers") {
        for region in &regions {
            let what = format!("{name}: {reader}, region {}", region["id"]);
            let of_region = &of_reader[region["id"].to_string()];
            check_region(of_region, region, &overheads, &what);
        }
        assert_eq!(of_reader.as_object().map(|o| o.len()), Some(regions.len()));
    }
    let metrics = &found["metrics"];
    for region in &regions {
        let at = region["name"].as_str().expect("a name");
        let what = format!("{name}: metrics of {region}");
        close(
            &metrics["ompfuse_region_time_seconds"][at],
            &region["time_s"],
            &what,
        );
        close(&metrics["ompfuse_region_units"][at], &region["xus"], &what);
        close(
            &metrics["ompfuse_region_executions"][at],
            &region["executions"],
            &what,
        );
        close(
            &metrics["ompfuse_region_events"][at],
            &region["events"]["task-clock"],
            &what,
        );
    }
    // What is not ours to know is told by the file.
    for table in ["units", "regions"] {
        let described = &found[format!("{table}_described")];
        let origin = &described["task-clock"]["origin"];
        assert_eq!(origin.as_str(), run.to_str(), "{described}");
        assert_eq!(described["task-clock"]["unit"], "count", "{described}");
    }
    assert_eq!(found["units_described"]["own_ns"]["unit"], "ns");
    assert_eq!(found["regions_described"]["exec_s"]["unit"], "s");
}

/// Of a table in which counts are missing, with names that mean something elsewhere.
#[test]
fn what_was_not_counted_is_null() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().expect("there is room for tables");
    let input = folder.path().join("in.csv");
    let hostile = "f{x=\"\"1\"\"} 2\\\n# EOF";
    let text = format!(
        "type,label,thread,t0_ns,t1_ns,A\n\"{hostile}\",0.1,0,0,10,\n\"{hostile}\",0.2,1,5,9,0\n7,0.3,1,9,20,4\n"
    );
    std::fs::write(&input, text).expect("there is room for a table");
    export_all(&input, folder.path());
    let found = read(&python, folder.path(), &["read", "A", "."]);
    let found = &found[0];
    for (reader, of_reader) in found["units"].as_object().expect("readers") {
        let [sum, known] = [0, 1].map(|at| of_reader["events"]["A"][at].as_f64());
        assert_eq!((sum, known), (Some(4.0), Some(2.0)), "{reader}");
    }
    let names: BTreeSet<&str> = (found["metrics"]["ompfuse_region_time_seconds"].as_object())
        .expect("places")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(names, BTreeSet::from(["7", "f{x=\"1\"} 2\\\n# EOF"]));
}

#[test]
fn a_part_is_taken_and_sums_have_no_units() {
    let Some(build) = Fixture::open("tasking").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for runs");
    let out = folder.path().join("sums");
    table::record(
        &build.path,
        &[],
        2,
        &out,
        &["--units=sums", "--events", "none"],
    )
    .ok("sums");
    let run = |args: &[&str]| {
        let args = args.iter().map(Path::new);
        command::run([Path::new("export"), &out].into_iter().chain(args))
    };
    for form in ["csv", "parquet", "arrow"] {
        let refused = run(&["--to", form]);
        assert_eq!(
            (refused.status, refused.stdout.len()),
            (1, 0),
            "{refused:?}"
        );
        let said = refused.errors();
        assert!(said.contains("recorded with --units sums"), "{said}");
    }
    let regions = run(&["--to", "csv", "--table", "regions", "--select", "task"]).text();
    let constructs: BTreeSet<&str> = regions
        .lines()
        .skip(1)
        .map(|l| l.split(',').nth(3).unwrap_or_default())
        .collect();
    assert_eq!(constructs, BTreeSet::from(["task"]), "{regions}");
    let wrong = run(&["--to", "openmetrics", "--select", "nowhere"]);
    assert_eq!(wrong.status, 1, "{wrong:?}");
    assert!(wrong.errors().contains("no region of"), "{wrong:?}");
    let usage = run(&["--to", "perfetto", "--table", "regions"]);
    assert_eq!(usage.status, 2, "{usage:?}");
    let usage = command::run(["watch", ".", "--serve", "localhost:80"]);
    assert_eq!(usage.status, 2, "{usage:?}");
    assert!(usage.errors().contains("as in 127.0.0.1:9464"), "{usage:?}");
}

/// Executes a page's commands of ours, then its Python.
#[track_caller]
fn page(python: &Path, folder: &Path, name: &str, then: &[&str]) -> Value {
    let page = repository().join("docs/guide").join(name);
    let text = std::fs::read_to_string(&page).expect("a page is text");
    for line in text.lines().filter(|l| l.starts_with("ompfuse export ")) {
        let mut export = command::with_threads(2);
        export.args(line.split(' ').skip(1)).current_dir(folder);
        process::run(&mut export).ok(line);
    }
    let page = page.to_string_lossy();
    let args = ["page", &page].into_iter().chain(then.iter().copied());
    read(python, folder, &args.collect::<Vec<_>>())
}

#[test]
fn pages_are_executed() {
    let Some(python) = python() else { return };
    if !has("gcc") || !has("qemu-x86_64") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for runs");
    let program = folder.path().join("cells");
    let mut compile = Command::new("gcc");
    compile.args(["-O2", "-g", "-fopenmp"]);
    compile.arg(repository().join("examples/tables/cells.c"));
    process::run(compile.arg("-o").arg(&program)).ok("gcc");
    let mut profile = command::with_threads(2);
    profile.args(["profile", "--simulate", "--events"]);
    profile.args(["sim-instructions,sim-branches,sim-loads", "-o", "out"]);
    profile.args(["--", "./cells"]).current_dir(folder.path());
    process::run(&mut profile).ok("profile");

    let then = [
        "len(units)",
        "int(slowest['first_iteration'])",
        "float(more['sim-branches'])",
        "float(more['sim-loads'])",
    ];
    let found = page(&python, folder.path(), "notebook.md", &then);
    assert_eq!((&found[0], &found[1]), (&64.into(), &41.into()), "{found}");
    let times = |at: usize| found[at].as_f64().unwrap_or(f64::NAN);
    assert!(times(2) > 500.0 && times(3) < 2.0, "{found}");
    let picture = std::fs::read(folder.path().join("slowest.png")).expect("it was drawn");
    assert!(picture.starts_with(b"\x89PNG"));

    let then = ["len(units)", "len(longest)", "len(mapped)"];
    let found = page(&python, folder.path(), "tables.md", &then);
    assert_eq!(found, serde_json::json!([64, 5, 64]), "{found}");
}

/// The answer to a request.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn metrics_are_served_while_a_program_runs() {
    let (Some(python), Some(steady)) = (python(), Steady::new("gcc")) else {
        return;
    };
    let mut dialogue = steady.record(2, &["--events", "page-faults"], &[]);
    dialogue.ask("30");
    let mut watch = command::with_threads(2);
    watch.arg("watch").arg(steady.out());
    watch.args(["--serve", "127.0.0.1:0", "--every", "0.1"]);
    watch.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = watch.spawn().expect("it starts");
    let mut errors = BufReader::new(watch.stderr.take().expect("it is piped"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("it says where");
    let address = line.split('/').nth(2).expect("an address").to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{line}");

    let mut rounds = 30;
    for more in [0, 20] {
        if more > 0 {
            dialogue.ask(&more.to_string());
            rounds += more;
        }
        let answer = get(&address, "/metrics");
        let (head, text) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(
            head.contains("Content-Type: application/openmetrics-text; version=1.0.0"),
            "{head}"
        );
        let file = steady.folder.path().join("metrics.txt");
        std::fs::write(&file, text).expect("there is room");
        let found = read(&python, steady.folder.path(), &["metrics", "metrics.txt"]);
        let units = found["ompfuse_region_units"].as_object().expect("places");
        let most = units.values().filter_map(Value::as_f64).sum::<f64>();
        assert!(most >= (rounds * TASKS) as f64, "{found}");
        let line = text.lines().find(|l| {
            l.starts_with("ompfuse_region_units_total{") && l.contains("construct=\"task\"")
        });
        let line = line.unwrap_or_else(|| panic!("no tasks in {text}"));
        assert!(line.ends_with(&format!(" {}", rounds * TASKS)), "{line}");
        assert!(text.contains("state=\"wait\",class=\""), "{text}");
        assert!(text.contains("event=\"page-faults\""), "{text}");
    }
    assert!(get(&address, "/").starts_with("HTTP/1.1 404 "));
    steady.end(dialogue, 2, &["30", "20"]);
    let last = watch.wait_with_output().expect("it ends with the program");
    let text = String::from_utf8_lossy(&last.stdout).into_owned();
    assert!(
        last.status.success() && text.contains("steady.c:33"),
        "{text}"
    );
    assert!(
        TcpStream::connect(&address).is_err(),
        "nobody listens any more"
    );
}
