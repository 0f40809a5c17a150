//! Where records go: names that can't be taken twice, nobody else's files, and programs that don't record.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, skip, table};
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The fixture, patched with these flags in a folder that everybody may enter.
fn patched(flags: &[&str]) -> Option<(tempfile::TempDir, PathBuf)> {
    let build = Fixture::open("lifecycle").ordinary_builds("gcc").pop()?;
    let folder = tempfile::tempdir().expect("there is room for a program");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).expect("the folder is ours");
    let program = table::patch(&build, folder.path(), flags);
    Some((folder, program))
}

/// The program itself, recording into `folder`.
fn recording(program: &Path, folder: &Path, env: &[(&str, &OsStr)]) -> Output {
    let mut direct = Command::new(program);
    process::clean(&mut direct, 2).env("OMPFUSE_DIR", folder);
    process::run(direct.envs(env.iter().copied()).arg("10"))
}

fn names(folder: &Path) -> Vec<String> {
    let listing = std::fs::read_dir(folder).expect("a folder can be listed");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.expect("a folder can be listed");
        entry.file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = listing.map(name).collect();
    names.sort();
    names
}

/// Two processes with one number, as on two hosts that share a file system, are two on record.
#[test]
fn equal_process_numbers() {
    let Some((folder, program)) = patched(&[]) else {
        return;
    };
    let script = format!(
        "unshare --pid --fork --map-root-user {0} 10 && unshare --pid --fork --map-root-user {0} 10",
        program.display()
    );
    let out = folder.path().join("runs");
    let mut recorder = command::with_threads(2);
    recorder
        .args(["record", "--events", "none", "-o"])
        .arg(&out);
    let recorded = process::run(recorder.args(["--", "sh", "-c", &script]));
    if recorded.errors().contains("unshare failed") || recorded.errors().contains("unshare:") {
        return skip("equal process numbers: no namespace can be made here");
    }
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let run = &table::runs(&out)[0];
    let processes = names(run);
    assert!(
        processes.contains(&"process-1.json".to_owned())
            && processes.contains(&"process-1.1.json".to_owned()),
        "{processes:?}"
    );
    let tasks = table::export(run);
    let tasks = tasks.iter().filter(|x| x.construct == "task").count();
    assert_eq!(tasks, 20, "{recorded:?}");
}

/// Each rank is a process, known by its rank; and what a launcher says is not believed blindly.
#[test]
fn ranks_of_mpi_programs() {
    let Some((folder, program)) = patched(&[]) else {
        return;
    };
    let variables = ["PMI_RANK=2", "OMPI_COMM_WORLD_RANK=0", "SLURM_PROCID=1"];
    let starts = variables.map(|v| format!("env {v} {} 10 & ", program.display()));
    let script = format!("{} wait", starts.concat());
    let out = folder.path().join("runs");
    let mut recorder = command::with_threads(2);
    recorder
        .args(["record", "--events", "none", "-o"])
        .arg(&out);
    let recorded = process::run(recorder.args(["--", "sh", "-c", &script])).ok("three ranks");
    let run = &table::runs(&out)[0];
    let xus = table::export(run);
    for rank in ["0", "1", "2"] {
        let of_rank = xus.iter().filter(|x| x.columns["mpi_rank"] == rank);
        assert_eq!(of_rank.count(), 10, "rank {rank}: {recorded:?}");
    }
    let profile = folder.path().join("ranks.parquet");
    command::ok([Path::new("combine"), run, Path::new("-o"), &profile]);
    assert_eq!(table::labels(&table::export(&profile)), table::labels(&xus));

    let alone = folder.path().join("alone");
    std::fs::create_dir(&alone).expect("a folder can be made");
    let long = "1".repeat(5000);
    for wrong in ["", "-1", "x", "99999999999", &long] {
        let env = [("PMI_RANK", OsStr::new(wrong))];
        recording(&program, &alone, &env).ok("a strange rank");
    }
    for name in names(&alone) {
        if name.starts_with("process-") && !name.contains(".end.") {
            let text = std::fs::read_to_string(alone.join(&name)).expect("a header is text");
            assert!(text.contains("\"mpi_rank\": null"), "{name}: {text}");
        }
    }
}

/// Nobody else can read records, and no link leads them elsewhere.
#[test]
fn private_files() {
    let Some((folder, program)) = patched(&[]) else {
        return;
    };
    let out = folder.path().join("runs");
    table::record(&program, &["10"], 2, &out, &table::ONE_EVENT).ok("a recording");
    let run = &table::runs(&out)[0];
    let mode = |path: &Path| path.metadata().expect("it is there").mode() & 0o777;
    assert_eq!((mode(&out), mode(run)), (0o700, 0o700));
    let files = names(run);
    assert!(files.len() >= 4, "{files:?}");
    for name in files {
        assert_eq!(mode(&run.join(&name)), 0o600, "{name}");
    }

    // Links lie where the next run, and files of the first processes, would be.
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder can be made");
    symlink(&elsewhere, out.join("run-0002")).expect("a link can be made");
    table::record(&program, &["10"], 2, &out, &table::ONE_EVENT).ok("a recording");
    assert!(
        names(&out).contains(&"run-0003".to_owned()),
        "{:?}",
        names(&out)
    );
    let target = elsewhere.join("victim");
    let script =
        "ln -s $2 $OMPFUSE_DIR/process-$$.json; ln -s $2 $OMPFUSE_DIR/$$.1-0.rec; exec $1 10";
    let direct = folder.path().join("direct");
    std::fs::create_dir(&direct).expect("a folder can be made");
    let mut shell = Command::new("sh");
    process::clean(&mut shell, 2).env("OMPFUSE_DIR", &direct);
    shell.args(["-c", script, "sh"]).arg(&program).arg(&target);
    let output = process::run(&mut shell).ok("a recording among links");
    assert!(output.text().ends_with("right\n"), "{output:?}");
    // Nor is the folder itself a link.
    let link = folder.path().join("link");
    symlink(&elsewhere, &link).expect("a link can be made");
    for out in [link.clone(), link.join("")] {
        let refused = table::record(&program, &["10"], 2, &out, &table::ONE_EVENT);
        assert_eq!((refused.status, refused.text()), (1, String::new()));
        let why = format!("cannot record into {}", link.display());
        assert!(refused.errors().contains(&why), "{refused:?}");
    }
    let output = recording(&program, &link, &[]).ok("a link to record into");
    assert!(output.text().ends_with("right\n"), "{output:?}");
    assert!(output.errors().contains("is a symbolic link"), "{output:?}");
    assert_eq!(names(&elsewhere), [""; 0], "written through a link");
    // Links above the folder are followed, but somebody else's. Only root can give links away.
    let inside = link.join("out");
    table::record(&program, &["10"], 2, &inside, &table::ONE_EVENT).ok("a link of one's own");
    if lchown(&link, Some(12345), None).is_ok() {
        let refused = table::record(&program, &["10"], 2, &inside, &table::ONE_EVENT);
        assert_eq!((refused.status, refused.text()), (1, String::new()));
        let why = format!("{} is a symbolic link of user 12345", link.display());
        assert!(refused.errors().contains(&why), "{refused:?}");
    }
}

/// What the environment says is taken only if it is sensible; the program runs in any case.
#[test]
fn strange_environments() {
    let Some((folder, program)) = patched(&[]) else {
        return;
    };
    let good = folder.path().join("good");
    std::fs::create_dir(&good).expect("a folder can be made");
    let long = format!("/{}", "x/".repeat(3000));
    let none = folder.path().join("none");
    for directory in [
        "",
        "relative",
        &long,
        "/proc/1/nowhere",
        "/dev/null",
        &none.to_string_lossy(),
    ] {
        let output = recording(&program, Path::new(directory), &[]).ok(directory);
        assert!(
            output.text().ends_with("right\n"),
            "{directory}: {output:?}"
        );
        assert!(
            output.errors().lines().count() <= 1,
            "{directory}: {output:?}"
        );
    }
    assert!(
        !none.exists(),
        "a folder was made where nobody asked for one"
    );
    let many = "cycles,".repeat(2000);
    for events in [
        "no-such-event,task-clock",
        ",,,",
        "task-clock\ncycles",
        &many,
    ] {
        let output = recording(&program, &good, &[("OMPFUSE_EVENTS", OsStr::new(events))]);
        assert!(output.ok(events).text().ends_with("right\n"), "{events}");
    }
}

/// A program that runs with its owner's privileges records nothing for whoever starts it, and is refused where it wouldn't
/// start.
#[test]
fn programs_with_privileges_of_their_own() {
    let Some((folder, program)) = patched(&["--dormant"]) else {
        return;
    };
    let library = folder.path().join("libompfuse_runtime.so");
    let build = Fixture::open("lifecycle").ordinary_builds("gcc").pop();
    let original = build.expect("it was built above").path;
    let beside = folder.path().join("beside");
    command::ok([Path::new("patch"), &original, Path::new("-o"), &beside]);
    assert!(library.is_file(), "the runtime library is put beside");
    let privileged = folder.path().join("privileged");
    std::fs::copy(&original, &privileged).expect("a file can be copied");
    let set_user = |path: &Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o4755))
            .expect("the file is ours");
    };
    set_user(&privileged);
    set_user(&program);
    let is_root = program.metadata().expect("it is there").uid() == 0;
    let out = folder.path().join("out");
    let refused = command::run([Path::new("patch"), &privileged, Path::new("-o"), &out]);
    let line = refused.errors();
    assert!(
        refused.status == 1 && line.lines().count() == 1 && line.contains("set-user-ID"),
        "{refused:?}"
    );
    assert!(!out.exists(), "patch has written");
    // Only root may look at it from outside.
    let recorded = command::run([Path::new("record"), Path::new("-o"), &out, &privileged]);
    let line = recorded.errors();
    assert!(line.contains("set-user-ID"), "{recorded:?}");
    match is_root {
        true => assert!(line.contains("so it is sampled only"), "{recorded:?}"),
        false => assert!(recorded.status == 1 && !out.exists(), "{recorded:?}"),
    }

    // Root's program, started by somebody else.
    let folder_for_all = folder.path().join("records");
    std::fs::create_dir(&folder_for_all).expect("a folder can be made");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&folder_for_all, open).expect("the folder is ours");
    let mut other = Command::new("setpriv");
    process::clean(&mut other, 2)
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&program)
        .arg("10")
        .env("OMPFUSE_DIR", &folder_for_all)
        .env("LD_PRELOAD", &library);
    if !is_root {
        return skip("a set-user-ID program: the tests don't run as root");
    }
    let output = process::run(&mut other).ok("somebody else's start");
    assert!(output.text().ends_with("right\n"), "{output:?}");
    assert_eq!(names(&folder_for_all), [""; 0], "{output:?}");
}
