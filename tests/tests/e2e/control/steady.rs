//! The fixture of these tests: a program that does some rounds whenever it is asked to.

use ompfuse_tests::dialogue::Dialogue;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{command, has, repository};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Of the fixture: iterations and tasks of a round.
pub(crate) const ITERATIONS: u64 = 64;
pub(crate) const TASKS: u64 = 4;

pub(crate) const COMPILERS: [&str; 2] = ["gcc", "clang-19"];

/// The fixture, built, and a folder for its recordings.
pub(crate) struct Steady {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) program: PathBuf,
}

impl Steady {
    pub(crate) fn new(compiler: &str) -> Option<Steady> {
        Steady::built(compiler, "steady")
    }

    /// Another program that is talked to in the same way.
    pub(crate) fn built(compiler: &str, name: &str) -> Option<Steady> {
        if !has(compiler) {
            return None;
        }
        let folder = tempfile::tempdir().expect("there is room for a program");
        let program = folder.path().join("steady");
        let mut compile = Command::new(compiler);
        compile
            .args(["-O2", "-g", "-fopenmp"])
            .arg(repository().join(format!("fixtures/behaviour/{name}.c")))
            .arg("-o");
        process::run(compile.arg(&program)).ok("the compiler");
        Some(Steady { folder, program })
    }

    pub(crate) fn all() -> impl Iterator<Item = Steady> {
        COMPILERS.into_iter().filter_map(Steady::new)
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Starts it under `record`.
    pub(crate) fn record(&self, threads: usize, flags: &[&str], args: &[&str]) -> Dialogue {
        let _ = std::fs::remove_dir_all(self.out());
        let mut record = command::with_threads(threads);
        record.arg("record").args(flags).arg("-o").arg(self.out());
        record.arg("--").arg(&self.program).args(args);
        let mut dialogue = Dialogue::start(&mut record);
        assert_eq!(dialogue.hear(), "ready");
        dialogue
    }

    /// The recording's process and settings.
    pub(crate) fn ctl(&self, args: &[&str]) -> Value {
        let mut all = vec!["ctl".into(), self.out().into_os_string()];
        all.extend(args.iter().map(Into::into));
        all.extend(["--format".into(), "json".into()]);
        let answer = command::json(all);
        assert_eq!(answer["processes"].as_array().map(Vec::len), Some(1));
        answer["processes"][0].clone()
    }

    /// Ends it; it must have said what it says without us. The result are its XUs.
    pub(crate) fn end(
        &self,
        dialogue: Dialogue,
        threads: usize,
        input: &[&str],
    ) -> (Output, Vec<Xu>) {
        let recorded = dialogue.end();
        let alone = loop {
            let mut command = Command::new(&self.program);
            let mut alone = Dialogue::start(process::clean(&mut command, threads));
            assert_eq!(alone.hear(), "ready");
            input.iter().for_each(|line| alone.tell(line));
            let alone = alone.end();
            // Without us it ends early now and then, which tells nothing of us.
            if !alone.is_libomp_bug() {
                break alone;
            }
        };
        assert_eq!(alone.status, 0, "alone: {alone:?}");
        assert_eq!(
            (recorded.status, recorded.text()),
            (0, alone.text()),
            "{recorded:?}"
        );
        let runs = table::runs(&self.out());
        assert_eq!(runs.len(), 1, "{recorded:?}");
        (recorded, table::export(&runs[0]))
    }
}
