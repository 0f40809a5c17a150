//! What is read to be combined: runs with damage, runs of an interruption, runs that go on, and where results may be written.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::process::Output;
use ompfuse_tests::{command, process, table};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A folder with two recorded runs of a program.
fn two_runs(folder: &Path) -> PathBuf {
    let build = &Fixture::open("knapsack").ordinary_builds("gcc")[0];
    let patched = table::patch(build, folder, &[]);
    let out = folder.join("runs");
    let flags = ["--events", "none", "--repeat", "2"];
    table::record(&patched, &[], 2, &out, &flags).ok("record");
    assert_eq!(table::runs(&out).len(), 2);
    out
}

fn combine(inputs: &[&Path], output: &Path) -> Output {
    let args = [OsStr::new("combine")].into_iter();
    let inputs = inputs.iter().map(|p| p.as_os_str());
    command::run(
        args.chain(inputs)
            .chain([OsStr::new("-o"), output.as_os_str()]),
    )
}

fn refused(output: &Output, reason: &str) {
    let errors = output.errors();
    assert_eq!(output.status, 1, "{output:?}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains(reason), "{errors}");
}

#[test]
fn damage_is_told_and_inputs_stay() {
    let folder = tempfile::tempdir().expect("there is room");
    let runs = two_runs(folder.path());
    let [one, two] = &table::runs(&runs)[..] else {
        unreachable!("there are two");
    };
    let out = folder.path().join("both.parquet");
    let whole = combine(&[&runs], &out).ok("combine");
    assert_eq!(whole.errors(), "");

    // Nothing that is read is written over.
    let header = fs::read(one.join("run.json")).expect("a run has a header");
    refused(
        &combine(&[&runs], &one.join("run.json")),
        "is a recorded run",
    );
    refused(&combine(&[&out, one], &out), "one of the inputs");
    let export = ["export", "--to", "csv", "-o"].map(OsStr::new);
    let both = [out.as_os_str(); 2];
    refused(
        &command::run(export.into_iter().chain(both)),
        "one of the inputs",
    );
    assert_eq!(fs::read(one.join("run.json")).ok(), Some(header));

    // A run that an interruption has left without records.
    let empty = runs.join("run-0003");
    fs::create_dir(&empty).expect("there is room");
    fs::copy(one.join("run.json"), empty.join("run.json")).expect("there is room");
    let without = combine(&[&runs], &out).ok("combine");
    assert_eq!(without.text(), whole.text());
    assert!(
        without
            .errors()
            .contains("run-0003: no thread was recorded"),
        "{without:?}"
    );

    // A record file that lost its last byte.
    let files = fs::read_dir(two)
        .expect("a folder")
        .flatten()
        .map(|e| e.path());
    let record = files
        .into_iter()
        .find(|p| p.extension() == Some("rec".as_ref()));
    let record = record.expect("a thread was recorded");
    let length = fs::metadata(&record).expect("it is there").len();
    let file = fs::OpenOptions::new()
        .write(true)
        .open(&record)
        .expect("it is ours");
    file.set_len(length - 1).expect("it is ours");
    let damaged = combine(&[&runs], &out).ok("combine");
    let name = record.file_name().expect("a file").to_string_lossy();
    let told = damaged.errors();
    assert!(
        told.contains(&format!("run-0002: {name}: cut short")),
        "{told}"
    );
}

/// Root could replace /dev/null by a file, for everybody. Here a link would be replaced.
#[test]
fn devices_are_not_replaced() {
    let folder = tempfile::tempdir().expect("there is room");
    let out = folder.path().join("out");
    std::os::unix::fs::symlink("/dev/null", &out).expect("there is room for a link");
    let run = table::runs(&two_runs(folder.path())).remove(0);
    let program = folder.path().join("program");
    fs::copy(std::env::current_exe().expect("a program"), &program).expect("there is room");
    let before = names(folder.path());
    let inputs: [&[&OsStr]; 4] = [
        &[
            "export".as_ref(),
            "--to".as_ref(),
            "csv".as_ref(),
            run.as_os_str(),
        ],
        &["combine".as_ref(), run.as_os_str()],
        &[
            "report".as_ref(),
            "--suggest-filter=5".as_ref(),
            run.as_os_str(),
        ],
        &["patch".as_ref(), program.as_os_str()],
    ];
    for args in inputs {
        let args = args.iter().copied();
        let output = command::run(args.chain(["-o".as_ref(), out.as_os_str()]));
        refused(&output, "it is no regular file");
    }
    assert_eq!(names(folder.path()), before);
    assert!(out.is_symlink());
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    names.sort();
    names
}

#[test]
fn runs_that_go_on_are_not_read() {
    let folder = tempfile::tempdir().expect("there is room");
    let build = &Fixture::open("knapsack").ordinary_builds("gcc")[0];
    let patched = table::patch(build, folder.path(), &[]);
    // The shell ends, and with it the command; what it has started doesn't.
    let script = r#"(while [ -e "$2" ]; do "$1"; done) < /dev/null > /dev/null 2>&1 & sleep 1"#;
    let stop = folder.path().join("stop");
    fs::write(&stop, "").expect("there is room");
    let out = folder.path().join("runs");
    let mut record = command::with_threads(2);
    record
        .args(["record", "--events", "none", "-o"])
        .arg(&out)
        .args(["--", "sh", "-c", script, "sh"])
        .args([&patched, &stop]);
    process::run(&mut record).ok("record");
    let run = &table::runs(&out)[0];
    let report = || command::run([OsStr::new("report"), run.as_os_str()]);
    // Between two of its programs nothing is recorded, and before the first one there is nothing to read.
    let until = |is_wanted: &dyn Fn(&Output) -> bool| {
        let begin = Instant::now();
        loop {
            let said = report();
            if is_wanted(&said) || begin.elapsed() > process::LIMIT {
                break said;
            }
        }
    };
    let why = "is still being recorded there";
    refused(&until(&|said| said.errors().contains(why)), why);
    fs::remove_file(&stop).expect("it is ours");
    until(&|said| said.status == 0).ok("report");
}

#[test]
fn the_truth_of_a_profile_by_behaviour_goes_by_its_first_runs_labels() {
    let folder = tempfile::tempdir().expect("there is room");
    let write = |name: &str, events: &str, counts: &dyn Fn(u64, u64) -> String| {
        // In each run the units execute in another order: times and labels go with the unit's number, counts with its work.
        let mut text = format!("type,label,thread,t0_ns,t1_ns,{events}\n");
        for n in 0..60u64 {
            let (label, begin) = (format!("0.{}.{}", n % 7, n), 10 * n);
            text += &format!(
                "7,{label},0,{begin},{},{}\n",
                begin + 9,
                counts(n, n * n + 1)
            );
        }
        let path = folder.path().join(name);
        fs::write(&path, text).expect("there is room");
        path
    };
    let one = write("one.csv", "A", &|_, work| format!("{}", 10 * work));
    // The same work, done by units with other labels.
    let two = write("two.csv", "A,B", &|n, _| {
        let work = (59 - n) * (59 - n) + 1;
        format!("{},{}", 10 * work, 3 * work)
    });
    let truth = write("truth.csv", "A,B", &|_, work| {
        format!("{},{}", 10 * work, 3 * work)
    });
    let references = ["r1.csv", "r2.csv"].map(|name| {
        write(name, "A,B", &|_, work| {
            format!("{},{}", 10 * work, 3 * work)
        })
    });
    for strategy in ["bc", "bc-unlabelled", "lgl"] {
        let out = folder.path().join("both.parquet");
        let args = ["combine", "--strategy", strategy, "-o"].map(OsStr::new);
        let inputs = [out.as_os_str(), one.as_os_str(), two.as_os_str()];
        command::ok(args.into_iter().chain(inputs));
        let mut evaluate = vec![OsStr::new("evaluate"), out.as_os_str()];
        evaluate.extend([
            "--truth".as_ref(),
            truth.as_os_str(),
            "--reference".as_ref(),
        ]);
        evaluate.extend(references.iter().map(|p| p.as_os_str()));
        evaluate.extend(["--format".as_ref(), OsStr::new("json")]);
        let found = &command::json(evaluate.clone())["truth"];
        assert_eq!(found["xus"], 60, "{strategy}: {found}");
        let error = found["hidden_error"].as_f64().expect("a number");
        // By label every unit gets another one's count.
        assert_eq!(error == 0.0, strategy != "lgl", "{strategy}: {found}");
        if strategy == "bc" {
            // Its first run isn't what it was.
            fs::rename(&one, folder.path().join("moved.csv")).expect("it is ours");
            refused(
                &command::run(&evaluate),
                "those of its first run are needed",
            );
            fs::rename(folder.path().join("moved.csv"), &one).expect("it is ours");
        }
    }
}

#[test]
fn references_of_another_program_are_told() {
    let folder = tempfile::tempdir().expect("there is room");
    let write = |name: &str, types: std::ops::Range<u64>| {
        let mut text = "type,label,thread,t0_ns,t1_ns,A,B\n".to_owned();
        for n in 0..60u64 {
            let kind = types.start + n % (types.end - types.start);
            let (begin, end, work) = (10 * n, 10 * n + 9, n * n + 1);
            text += &format!("{kind},0.{kind}.{n},0,{begin},{end},{work},{}\n", 3 * work);
        }
        let path = folder.path().join(name);
        fs::write(&path, text).expect("there is room");
        path
    };
    let ours = ["profile.csv", "r1.csv", "r2.csv"].map(|name| write(name, 0..4));
    let other = write("other.csv", 7..9);
    let evaluate = |references: &[&PathBuf]| {
        let args = [
            OsStr::new("evaluate"),
            ours[0].as_os_str(),
            OsStr::new("--reference"),
        ];
        let references = references.iter().map(|p| p.as_os_str());
        command::run(args.into_iter().chain(references)).ok("evaluate")
    };
    assert_eq!(evaluate(&[&ours[1], &ours[2]]).errors(), "");
    let told = evaluate(&[&ours[1], &other]).errors();
    assert_eq!(told.lines().count(), 1, "{told}");
    let name = other.display();
    assert!(
        told.contains(&format!("{name} have no construct in common")),
        "{told}"
    );
}
