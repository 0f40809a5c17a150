//! Input that can't be worked with: exit status 1, one line that says why, nothing written, and never a crash.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::hostile;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, is_whole, skip, table};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One line on stderr, without full stop or newline inside.
#[track_caller]
fn one_line(what: &str, output: &Output) {
    let errors = output.errors();
    assert!(
        errors.lines().count() == 1 && errors.ends_with('\n') && errors.trim().len() > 10,
        "{what}: not one line: {output:?}"
    );
}

/// Patches bytes, which has to fail in the proper way; the line that it printed.
#[track_caller]
fn refused(what: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("there is room for a file");
    let (input, out) = (
        folder.path().join("input"),
        folder.path().join("out/patched"),
    );
    std::fs::create_dir(folder.path().join("out")).expect("a folder can be made");
    std::fs::write(&input, bytes).expect("a file can be written");
    let output = command::run([Path::new("patch"), &input, Path::new("-o"), &out]);
    assert_eq!(output.status, 1, "{what}: {output:?}");
    assert!(output.stdout.is_empty(), "{what}: {output:?}");
    one_line(what, &output);
    let left: Vec<_> = std::fs::read_dir(folder.path().join("out"))
        .expect("a folder can be listed")
        .collect();
    assert!(left.is_empty(), "{what}: {left:?} was written");
    output.errors()
}

/// As [`refused`], and the line names the reason.
#[track_caller]
fn refused_for(what: &str, bytes: &[u8], reason: &[&str]) {
    let line = refused(what, bytes).to_lowercase();
    assert!(
        reason.iter().any(|r| line.contains(r)),
        "{what}: none of {reason:?} in {line:?}"
    );
}

/// Nobody writes into the pipe: who waited for that would wait for ever.
#[test]
fn pipes_are_no_input_files() {
    let folder = tempfile::tempdir().expect("there is room for a file");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (pipe, out) = (path("pipe"), path("out"));
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo can be run").success());
    for args in [
        &["scan", &pipe][..],
        &["patch", &pipe, "-o", &out],
        &["verify", &pipe, &pipe],
        &["report", &pipe],
        &["combine", &pipe, "-o", &out],
        &["evaluate", &pipe, "--reference", &pipe],
        &["export", &pipe, "--to", "csv", "-o", &out],
        &["plan", "--from", &pipe],
    ] {
        let output = command::run(args);
        assert_eq!(output.status, 1, "{args:?}: {output:?}");
        one_line(&args.join(" "), &output);
        assert!(
            output.errors().contains("is not a regular file"),
            "{args:?}: {output:?}"
        );
        assert!(!Path::new(&out).exists(), "{args:?}");
    }
}

fn original() -> Option<(PathBuf, Vec<u8>)> {
    let build = Fixture::open("knapsack").ordinary_builds("gcc").pop()?;
    let bytes = std::fs::read(&build.path).expect("a build can be read");
    Some((build.path, bytes))
}

#[test]
fn files_of_another_kind() {
    let Some((path, bytes)) = original() else {
        return;
    };
    refused_for("an empty file", b"", &["elf", "empty"]);
    refused_for("text", b"#!/bin/sh\nexit 0\n", &["elf"]);
    refused_for(
        "a magic number alone",
        b"\x7fELF",
        &["elf", "header", "short", "truncated"],
    );
    refused_for(
        "a 32-bit program",
        &hostile::elf32(),
        &["32-bit", "32 bit", "elf32", "64-bit", "x86-64"],
    );
    refused_for(
        "an arm64 program",
        &hostile::for_machine(&bytes, 183),
        &["x86-64", "machine", "aarch64"],
    );
    refused_for(
        "a RISC-V program",
        &hostile::for_machine(&bytes, 243),
        &["x86-64", "machine"],
    );
    refused_for(
        "a big-endian program",
        &hostile::big_endian(&bytes),
        &["endian"],
    );
    let mut core = bytes.clone();
    core[16] = 4; // ET_CORE
    refused_for(
        "a core dump",
        &core,
        &["executable", "core", "kind", "type"],
    );
    core[16] = 1; // ET_REL
    refused_for(
        "an object file",
        &core,
        &["executable", "object", "relocatable", "kind", "type"],
    );

    let folder = tempfile::tempdir().expect("there is room for a file");
    for input in [folder.path(), &folder.path().join("nothing-here")] {
        let output = command::run([
            Path::new("patch"),
            input,
            Path::new("-o"),
            &folder.path().join("out"),
        ]);
        assert_eq!(output.status, 1, "{output:?}");
        one_line("no file", &output);
        assert!(
            output.errors().contains(&*input.to_string_lossy()),
            "the path is named: {output:?}"
        );
    }
    let output = command::run([
        Path::new("patch"),
        &path,
        Path::new("-o"),
        Path::new("/proc/nowhere/patched"),
    ]);
    assert_eq!(output.status, 1, "{output:?}");
    one_line("no place for the output", &output);
}

fn compile(folder: &Path, name: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
    let (file, out) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, source).expect("a file can be written");
    let made = process::run(
        Command::new("gcc")
            .arg(&file)
            .args(flags)
            .arg("-o")
            .arg(&out),
    );
    if made.status != 0 {
        skip(&format!(
            "gcc {flags:?} does not work here: {}",
            made.errors().lines().next().unwrap_or_default()
        ));
        return None;
    }
    Some(out)
}

#[test]
fn programs_without_anything_to_patch() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    if let Some(path) = compile(
        folder.path(),
        "plain",
        "int main(void) { return 0; }\n",
        &["-O2"],
    ) {
        let bytes = std::fs::read(path).expect("a build can be read");
        refused_for("a program without OpenMP", &bytes, &["openmp"]);
    }
}

/// In a static executable calls go to the runtime's functions directly; nothing could be loaded into its process.
#[test]
fn a_static_executable() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let source = "int main(void) {\n#pragma omp parallel\n__asm__(\"\");\nreturn 0; }\n";
    if let Some(path) = compile(
        folder.path(),
        "static",
        source,
        &["-O2", "-fopenmp", "-static"],
    ) {
        let bytes = std::fs::read(path).expect("a build can be read");
        refused_for("a static executable", &bytes, &["static", "dynamic"]);
    }
}

#[test]
fn a_patched_program_is_not_patched_again() {
    for build in ["gcc", "clang"]
        .iter()
        .flat_map(|c| Fixture::open("knapsack").ordinary_builds(c))
    {
        let folder = tempfile::tempdir().expect("there is room for a patched program");
        for flags in [&[][..], &["--dormant"]] {
            let patched = table::patch(&build, folder.path(), flags);
            let bytes = std::fs::read(&patched).expect("a patched program can be read");
            refused_for(&format!("{build}, {flags:?}"), &bytes, &["already"]);
        }
    }
}

/// A selection of nothing is a mistake: no copy is written that would record nothing.
#[test]
fn nothing_selected() {
    let Some((path, _)) = original() else { return };
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let out = folder.path().join("patched");
    for flags in [
        &["--select", "construct=ordered"][..],
        &[
            "--skip",
            "parallel,task,taskwait,single,implicit-barrier,critical,barrier,loop,master",
        ],
    ] {
        let output = command::run(
            [Path::new("patch"), &path, Path::new("-o"), &out]
                .into_iter()
                .chain(flags.iter().map(Path::new)),
        );
        assert_eq!(output.status, 1, "{flags:?}: {output:?}");
        one_line(&format!("{flags:?}"), &output);
        assert!(
            std::fs::read_dir(folder.path())
                .expect("a folder can be listed")
                .next()
                .is_none(),
            "{flags:?}"
        );
    }
}

#[test]
fn files_that_are_cut_off() {
    let Some((_, bytes)) = original() else { return };
    let mut random = hostile::Random::new(1);
    let mut lengths: Vec<usize> = (0..64).step_by(7).collect();
    lengths.extend((0..60).map(|_| 64 + random.below(bytes.len() - 64)));
    lengths.push(bytes.len() - 1);
    for length in lengths {
        refused(
            &format!("cut off at {length} of {}", bytes.len()),
            &bytes[..length],
        );
    }
}

/// Whatever the headers say: done, or refused with one line; no panic, no hang, no file left behind by a failure.
#[test]
fn headers_that_lie() {
    let folder = tempfile::tempdir().expect("there is room for a file");
    let (input, out) = (folder.path().join("input"), folder.path().join("patched"));
    let mut done = 0;
    for name in ["knapsack", "cg"] {
        for build in ["gcc", "clang"]
            .iter()
            .flat_map(|c| Fixture::open(name).ordinary_builds(c))
        {
            let bytes = std::fs::read(&build.path).expect("a build can be read");
            for seed in 0..if is_whole() { 60 } else { 15 } {
                std::fs::write(&input, hostile::mutated(&bytes, seed))
                    .expect("a file can be written");
                let what = format!("{build} with mutation {seed}");
                for command in ["scan", "patch"] {
                    let mut args = vec![Path::new(command), &input];
                    if command == "patch" {
                        args.extend([Path::new("-o"), &out]);
                    }
                    let output = command::run(args);
                    assert!(
                        matches!(output.status, 0 | 1),
                        "{command} of {what}: {output:?}"
                    );
                    if output.status == 1 {
                        one_line(&what, &output);
                        assert!(!out.exists(), "{what} was written");
                    } else {
                        done += 1;
                        let _ = std::fs::remove_file(&out);
                    }
                }
            }
        }
    }
    assert!(done > 0, "some mutations do no harm");
}

#[test]
fn usage_and_missing_things() {
    for args in [
        &["frobnicate"][..],
        &["scan"],
        &["patch", "--no-such-option", "x"],
        &["export", "x", "--to", "y"],
    ] {
        let output = command::run(args);
        assert_eq!(output.status, 2, "{args:?}: {output:?}");
        assert!(!output.stderr.is_empty(), "{args:?}: {output:?}");
    }
    let folder = tempfile::tempdir().expect("there is room for a file");
    let rubbish = folder.path().join("rubbish");
    std::fs::write(&rubbish, b"PAR1 rubbish PAR1").expect("a file can be written");
    let (rubbish, runs) = (rubbish.to_string_lossy(), folder.path().join("runs"));
    let runs = runs.to_string_lossy();
    for args in [
        &["report", &rubbish][..],
        &["export", &rubbish, "--to", "csv", "-o", &runs],
        &["combine", &rubbish, "-o", &runs],
        &["record", "-o", &runs, "--", "/no/such/program"],
        &[
            "record",
            "-o",
            &runs,
            "--events",
            "no-such-event",
            "--",
            "/bin/true",
        ],
    ] {
        let output = command::run(args);
        assert_eq!(output.status, 1, "{args:?}: {output:?}");
        one_line(&format!("{args:?}"), &output);
    }
}
