//! Debug information in other files: found as gdb and addr2line find it, and only if it is of this build.

use super::{addr2line, line, sites};
use ompfuse_tests::{command, compile, process, tools};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Two functions, so that `dwz` finds something in common.
const SOURCE: &str = "struct pair { long a, b; };
double work(int n) { double s = 0;
#pragma omp parallel for reduction(+:s) schedule(static)
for (int i = 0; i < n; i++) s += 1.0 / (1 + i);
return s; }
long other(int n) { struct pair p = {0, 0}; long s = 0;
#pragma omp parallel for reduction(+:s) schedule(dynamic, 10)
for (int i = 0; i < n; i++) s += i;
p.a = s; return p.a + p.b; }
";

/// A library with debug information, and the same without it.
struct Stripped {
    folder: tempfile::TempDir,
    whole: PathBuf,
    stripped: PathBuf,
    debug: PathBuf,
}

fn run(program: &str, args: &[&str], folder: &Path) {
    let mut command = Command::new(program);
    process::run(command.args(args).current_dir(folder)).ok(program);
}

/// `None`, and said so, without the tools.
fn stripped(flags: &str) -> Option<Stripped> {
    if !["objcopy", "strip", "addr2line"]
        .into_iter()
        .all(tools::has)
    {
        return None;
    }
    let folder = tempfile::tempdir().expect("there is room");
    let command = format!("gcc-12 -O2 -g -fopenmp -fPIC -shared {flags}");
    let whole = compile::text(folder.path(), "whole.so", SOURCE, &command)?;
    let at = folder.path();
    run(
        "objcopy",
        &["--only-keep-debug", "whole.so", "lib.debug"],
        at,
    );
    std::fs::copy(&whole, at.join("lib.so")).expect("there is room");
    run("strip", &["lib.so"], at);
    Some(Stripped {
        whole,
        stripped: at.join("lib.so"),
        debug: at.join("lib.debug"),
        folder,
    })
}

impl Stripped {
    fn link(&self) {
        let args = ["--add-gnu-debuglink=lib.debug", "lib.so"];
        run("objcopy", &args, self.folder.path());
    }

    /// Moves the debug information to another place in the folder.
    fn move_to(&self, place: &str) -> PathBuf {
        let to = self.folder.path().join(place);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("there is room");
        std::fs::rename(&self.debug, &to).expect("there is room");
        to
    }

    fn build_id(&self) -> String {
        let scan = command::json(["scan", "--format", "json", self.path(&self.stripped)]);
        let id = scan["binary"]["build_id"].as_str();
        id.expect("gcc makes a build id").to_owned()
    }

    fn path<'a>(&self, path: &'a Path) -> &'a str {
        path.to_str().expect("a path of letters")
    }

    /// The lines of the stripped library's sites; the names with them.
    fn lines(&self, options: &[&str]) -> Vec<Option<(String, u64)>> {
        let sites = sites(&self.stripped, options);
        assert!(!sites.is_empty());
        sites.iter().map(|s| line(&s["source"])).collect()
    }

    /// That its sites have the lines, frames and names of the library as it was.
    fn is_as_whole(&self, options: &[&str]) {
        let (here, whole) = (sites(&self.stripped, options), sites(&self.whole, &[]));
        assert_eq!(here.len(), whole.len());
        for (here, whole) in here.iter().zip(&whole) {
            for what in ["address", "source", "frames", "function"] {
                assert_eq!(here[what], whole[what], "{what}: {here}");
            }
        }
        // And these are the lines that binutils tell.
        let call = |s: &&Value| s["entry"].as_str() == Some("GOMP_loop_end_nowait");
        let call = whole.iter().find(call).expect("a dynamic loop ends");
        let address = call["address"].as_str().expect("a text").to_owned();
        let told = addr2line(&self.whole, std::slice::from_ref(&address));
        assert_eq!(line(&call["source"]).as_ref(), told[&address].first());
    }

    fn has_none(&self, options: &[&str]) {
        assert!(self.lines(options).iter().all(Option::is_none));
    }
}

#[test]
fn debug_links_lead_to_it() {
    for flags in ["", "-Wl,--build-id=none", "-gz=zlib", "-gdwarf-4"] {
        let Some(lib) = stripped(flags) else { return };
        lib.has_none(&[]);
        lib.link();
        lib.is_as_whole(&[]);
        let place = lib.move_to(".debug/lib.debug");
        lib.is_as_whole(&[]);
        std::fs::rename(&place, &lib.debug).expect("there is room");
        let place = lib.move_to("elsewhere/lib.debug");
        lib.has_none(&[]);
        let folder = place.parent().expect("a folder");
        lib.is_as_whole(&["--debug-path", lib.path(folder)]);
        lib.is_as_whole(&["--debug-path", lib.path(&place)]);
    }
}

#[test]
fn build_ids_lead_to_it() {
    let Some(lib) = stripped("") else { return };
    let id = lib.build_id();
    let (first, rest) = id.split_at(2);
    lib.move_to(&format!("root/.build-id/{first}/{rest}.debug"));
    lib.has_none(&[]);
    let root = lib.folder.path().join("root");
    lib.is_as_whole(&["--debug-path", lib.path(&root)]);
    let run = |variable: &str, value: &Path| {
        let mut command = Command::new(command::path());
        command
            .args(["scan", "--format", "json"])
            .arg(&lib.stripped);
        let said = process::run(command.env(variable, value)).ok("scan").text();
        let scan: Value = serde_json::from_str(&said).expect("JSON");
        let sites = scan["sites"].as_array().expect("a list").clone();
        sites.iter().any(|s| line(&s["source"]).is_some())
    };
    assert!(run("OMPFUSE_DEBUG_PATH", &root));
    assert!(!run("OMPFUSE_DEBUG_PATH", Path::new("/nowhere")));
    // As debuginfod's client keeps it.
    let cache = lib.folder.path().join("cache");
    let kept = cache.join(&id);
    std::fs::create_dir_all(&kept).expect("there is room");
    let from = root.join(format!(".build-id/{first}/{rest}.debug"));
    std::fs::copy(from, kept.join("debuginfo")).expect("there is room");
    assert!(run("DEBUGINFOD_CACHE_PATH", &cache));
}

#[test]
fn another_builds_is_not_used() {
    for flags in ["", "-Wl,--build-id=none"] {
        let Some(lib) = stripped(flags) else { return };
        lib.link();
        let Some(other) = stripped(&format!("{flags} -DOTHER -O1")) else {
            return;
        };
        std::fs::copy(&other.debug, &lib.debug).expect("there is room");
        lib.has_none(&[]);
        lib.has_none(&["--debug-path", lib.path(&lib.debug)]);
    }
}

#[test]
fn what_files_have_in_common_is_read() {
    if !tools::has("dwz") {
        return;
    }
    let Some(lib) = stripped("") else { return };
    let at = lib.folder.path();
    std::fs::copy(&lib.debug, at.join("second.debug")).expect("there is room");
    run(
        "dwz",
        &[
            "-m",
            "common.dwz",
            "-M",
            "common.dwz",
            "lib.debug",
            "second.debug",
        ],
        at,
    );
    assert!(at.join("common.dwz").is_file());
    std::fs::remove_file(at.join("second.debug")).expect("it is there");
    // The checksum is another one: the build id tells.
    lib.link();
    lib.is_as_whole(&[]);
    std::fs::remove_file(at.join("common.dwz")).expect("it is there");
    // Names of functions are in the file that is gone; reading goes on.
    lib.lines(&[]);
}

#[test]
fn verification_does_without_it() {
    let Some(lib) = stripped("") else { return };
    lib.link();
    let out = lib.folder.path().join("out.so");
    let (old, new) = (lib.path(&lib.stripped), lib.path(&out));
    command::ok(["patch", old, "-o", new]);
    let verified = || {
        let answer = command::json(["verify", "--format", "json", old, new]);
        assert_eq!(answer["reproduced"], true, "{answer}");
    };
    verified();
    lib.move_to("elsewhere/lib.debug");
    verified();
    // The patched copy knows the lines by itself.
    let known = sites(&out, &[]);
    assert!(known.iter().any(|s| line(&s["source"]).is_some()));
}
