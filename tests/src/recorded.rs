//! Runs of fixtures that many tests look at. Each is made once by whoever asks for it first, and then only read: those who
//! ask meanwhile wait, and others go on.
//!
//! Patched copies and runs lie in `<target>/recorded/<process>`. Nothing runs at a test program's end, so the next one
//! removes them.

use crate::fixture::Build;
use crate::process::{self, Output};
use crate::schema;
use crate::table::{self, Xu};
use std::collections::HashMap;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, OnceLock};

/// Values that are made once.
struct Shared<K: 'static, V: 'static>(LazyLock<Mutex<HashMap<K, &'static OnceLock<V>>>>);

impl<K: Eq + Hash, V> Shared<K, V> {
    const fn new() -> Self {
        Shared(LazyLock::new(Mutex::default))
    }

    /// If making it panics, the next one tries again, and fails in its own name.
    fn get(&self, key: K, make: impl FnOnce() -> V) -> &'static V {
        let mut known = self.0.lock().expect("nobody panics with it");
        let cell: &'static OnceLock<V> = known
            .entry(key)
            .or_insert_with(|| Box::leak(Box::default()));
        drop(known);
        cell.get_or_init(make)
    }
}

/// A run of the original with this many threads.
pub fn original(build: &Build, threads: usize) -> &'static Output {
    static KNOWN: Shared<(PathBuf, usize), Output> = Shared::new();
    KNOWN.get((build.path.clone(), threads), || {
        process::run(process::clean(&mut Command::new(&build.path), threads))
    })
}

/// The copy that `ompfuse patch` makes without options.
pub fn patched(build: &Build) -> &'static Path {
    static KNOWN: Shared<PathBuf, PathBuf> = Shared::new();
    KNOWN.get(build.path.clone(), || {
        let copy = table::patch(build, &folder(build, "patched"), &[]);
        share(&copy.with_file_name("libompfuse_runtime.so"));
        copy
    })
}

/// Keeps one runtime library for all copies: it has a megabyte, and there are hundreds of them.
fn share(library: &Path) {
    static FIRST: OnceLock<PathBuf> = OnceLock::new();
    let first = FIRST.get_or_init(|| library.to_owned());
    if first != library {
        std::fs::remove_file(library).expect("it lies beside the program");
        std::fs::hard_link(first, library).expect("all are in one folder");
    }
}

/// A recorded run of the patched copy, with one event.
pub struct Run {
    build: String,
    /// What the program said.
    pub output: Output,
    /// Its folder.
    pub folder: PathBuf,
    xus: OnceLock<Vec<Xu>>,
    report: OnceLock<String>,
}

/// The run with this many threads that has only records.
pub fn run(build: &Build, threads: usize) -> &'static Run {
    of(build, threads, &[])
}

/// Another one, which has sums beside them.
pub fn run_with_sums(build: &Build, threads: usize) -> &'static Run {
    of(build, threads, &["--units=with-sums"])
}

fn of(build: &Build, threads: usize, options: &'static [&'static str]) -> &'static Run {
    static KNOWN: Shared<(PathBuf, usize, &[&str]), Run> = Shared::new();
    KNOWN.get((build.path.clone(), threads, options), || {
        let out = folder(build, &[&["runs"], options].concat().join(""));
        let out = out.join(threads.to_string());
        let flags = [&table::ONE_EVENT, options].concat();
        let output = table::record(patched(build), &[], threads, &out, &flags);
        let mut runs = table::runs(&out);
        assert_eq!(
            runs.len(),
            1,
            "runs of {build}, {threads} threads: {output:?}"
        );
        Run {
            build: format!("{build}, {threads} threads"),
            output,
            folder: runs.remove(0),
            xus: OnceLock::new(),
            report: OnceLock::new(),
        }
    })
}

impl Run {
    /// Itself, if the program's status is 0.
    #[track_caller]
    pub fn ok(&self) -> &Run {
        assert!(self.output.status == 0, "{}: {:?}", self.build, self.output);
        self
    }

    /// The table of its units.
    pub fn xus(&self) -> &[Xu] {
        self.xus.get_or_init(|| table::export(&self.folder))
    }

    /// Its report as JSON.
    pub fn json(&self) -> &str {
        self.report.get_or_init(|| schema::printed(&self.folder))
    }

    /// Its report.
    pub fn report(&self) -> serde_json::Value {
        serde_json::from_str(self.json()).expect("JSON was asked for")
    }
}

/// A new folder for what is made of a build.
fn folder(build: &Build, what: &str) -> PathBuf {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let all = crate::target().0.join("recorded");
        for old in std::fs::read_dir(&all).into_iter().flatten().flatten() {
            if !Path::new("/proc").join(old.file_name()).exists() {
                // Another process may be about it too.
                let _ = std::fs::remove_dir_all(old.path());
            }
        }
        all.join(std::process::id().to_string())
    });
    // Of a fixture and all that it was made with, and whether it is stripped.
    let mut parts = build.path.iter().rev();
    let (file, of) = (parts.next(), parts.next());
    let folder = ROOT
        .join(of.unwrap_or_default())
        .join(file.unwrap_or_default());
    let folder = folder.join(what);
    std::fs::create_dir_all(&folder).expect("the target directory is writable");
    folder
}
