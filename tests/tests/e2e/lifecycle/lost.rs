//! Runs that are lost, or a part of them: the program's end is handed on, and one line says what there is not.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, table};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The fixture, patched, in a folder of its own.
fn patched() -> Option<(tempfile::TempDir, PathBuf)> {
    let build = Fixture::open("lifecycle").ordinary_builds("gcc").pop()?;
    let folder = tempfile::tempdir().expect("there is room for a program");
    let program = table::patch(&build, folder.path(), &[]);
    Some((folder, program))
}

/// The lines of `ompfuse` that have this in them.
fn lines(output: &Output, text: &str) -> usize {
    let errors = output.errors();
    let ours = errors.lines().filter(|line| line.starts_with("ompfuse: "));
    ours.filter(|line| line.contains(text)).count()
}

/// What `before` says in a shell, then the command.
fn in_shell(before: &str, args: &[&str], out: &Path, program: &[&str]) -> Output {
    let mut shell = Command::new("sh");
    process::clean(&mut shell, 2).args(["-c", &format!("{before}; exec \"$@\""), "sh"]);
    // A cache of the test's own: what is in it doesn't depend on others.
    shell.env("XDG_CACHE_HOME", out.with_file_name("cache"));
    shell.arg(command::path()).args(args);
    process::run(
        shell
            .args(["--events", "none", "-o"])
            .arg(out)
            .arg("--")
            .args(program),
    )
}

#[test]
fn a_folder_that_goes_while_the_program_runs() {
    let Some((folder, program)) = patched() else {
        return;
    };
    let out = folder.path().join("out");
    let (shown, program) = (out.display(), program.display());
    let remove = format!("rm -r {shown}/run-0001");
    let all = format!("rm -r {shown}");
    let away = format!("mv {shown}/run-0001 {shown}/elsewhere");
    for command in ["record", "profile"] {
        for (gone, end, status) in [
            (&remove, "exit 5", 5),
            (&remove, "exit 0", 0),
            (&all, "exit 6", 6),
            (&away, "exit 7", 7),
            (&away, "kill -9 $$", 128 + 9),
        ] {
            let _ = std::fs::remove_dir_all(&out);
            let script = format!("{program} 10 return; {gone}; {end}");
            let recorded = in_shell("true", &[command], &out, &["sh", "-c", &script]);
            let what = format!("{command}, {script}: {recorded:?}");
            assert_eq!(recorded.status, status, "{what}");
            assert!(recorded.text().ends_with("right\n"), "{what}");
            assert_eq!(lines(&recorded, "this run is lost"), 1, "{what}");
        }
    }
}

/// Of the files that may be open three are standard input, output and error.
#[test]
fn hardly_any_open_file() {
    let Some((folder, program)) = patched() else {
        return;
    };
    let program = program
        .to_str()
        .expect("temporary folders have plain names");
    for command in ["record", "profile"] {
        for (files, way, status) in [(4, "exit", 5), (4, "return", 0), (5, "exit", 5)] {
            let out = folder.path().join(format!("{command}-{files}-{way}"));
            let limit = format!("ulimit -n {files}");
            let recorded = in_shell(&limit, &[command], &out, &[program, "10", way]);
            let what = format!("{command}, {files} files, {way}: {recorded:?}");
            assert_eq!(recorded.status, status, "{what}");
            assert!(recorded.text().contains("first"), "{what}");
            let said = ["did not fit", "could not be", "lost"];
            let said: usize = said.iter().map(|text| lines(&recorded, text)).sum();
            assert_eq!(said, 1, "{what}");
        }
    }
}

/// A program that may write no file, patched before or not.
#[test]
fn a_limit_of_the_program_alone() {
    let Some((folder, patched)) = patched() else {
        return;
    };
    let Some(original) = Fixture::open("lifecycle").ordinary_builds("gcc").pop() else {
        return;
    };
    for (program, said) in [
        (&patched, "cannot record into"),
        (&original.path, "cannot write"),
    ] {
        let out = folder.path().join("out");
        let script = format!("ulimit -f 0; exec {} 10", program.display());
        let recorded = in_shell("true", &["record"], &out, &["sh", "-c", &script]);
        assert_eq!(recorded.status, 1, "{recorded:?}");
        assert!(recorded.text().ends_with("right\n"), "{recorded:?}");
        let told = (
            lines(&recorded, said),
            lines(&recorded, "nothing was recorded"),
        );
        assert_eq!(told, (1, 1), "{recorded:?}");
    }
}

/// The limit is the command's, too.
#[test]
fn files_that_may_not_grow() {
    let Some((folder, program)) = patched() else {
        return;
    };
    let program = program
        .to_str()
        .expect("temporary folders have plain names");
    // What the command keeps for all runs is there.
    let out = folder.path().join("before");
    in_shell("true", &["record"], &out, &[program, "10"]).ok("no limit");
    for (blocks, may_be_listed) in [(0, false), (1, false), (16, true)] {
        let out = folder.path().join(format!("out-{blocks}"));
        let limit = format!("ulimit -f {blocks}");
        let recorded = in_shell(&limit, &["record"], &out, &[program, "10", "signals"]);
        let what = format!("{blocks} blocks: {recorded:?}");
        assert_eq!(recorded.status, 0, "{what}");
        assert!(recorded.text().ends_with("right\n"), "{what}");
        let losses = lines(&recorded, "did not fit") + lines(&recorded, "could not be");
        assert!(!may_be_listed || losses == 1, "{what}");
        if may_be_listed {
            let run = table::runs(&out).remove(0);
            let mut report = command::with_threads(1);
            let report = process::run(report.arg("report").arg(run)).ok("report");
            let text = report.text();
            let said = text.lines().filter(|line| line.starts_with("- "));
            let said: Vec<&str> = said.collect();
            let is_loss = said.len() == 1 && said[0].contains("could not be");
            assert!(is_loss, "{text}");
        }
    }
}
