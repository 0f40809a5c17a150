//! Whether programs can load our libraries, and which OpenMP runtimes and C library they have.

use super::{Check, State};
use crate::{cache, input};
use anyhow::{Context, Result, ensure};
use goblin::elf::Elf;
use memchr::memmem;
use ompfuse_format::abi::RUNTIME_LIBRARY;
use ompfuse_patterns::is_runtime_library;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The oldest C library with `_dl_find_object`.
const WITH_CONTEXTS: (u32, u32) = (2, 35);

/// Tries whether a program loads what recorded programs load: this one.
pub(super) fn loading() -> Check {
    let name = "recording";
    match try_out() {
        Ok(()) => Check::new(name, State::Ok, "a program has loaded the runtime library")
            .means("programs can be recorded"),
        Err(error) => Check::new(name, State::Missing, format!("{error:#}"))
            .means("no program can be recorded")
            .helps("set XDG_CACHE_HOME to a folder on a file system that isn't mounted noexec"),
    }
    .needed()
}

fn try_out() -> Result<()> {
    let own = cache::own_libraries()?;
    let command = std::env::current_exe().context("cannot find this command itself")?;
    let output = Command::new(command)
        .arg("--version")
        .env("LD_AUDIT", &own.program)
        .env("LD_PRELOAD", own.program.with_file_name(RUNTIME_LIBRARY))
        .stdin(Stdio::null())
        .output()
        .context("cannot start a program")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default();
    ensure!(
        output.status.success() && first.is_empty(),
        "a program cannot load it: {first}"
    );
    Ok(())
}

/// The OpenMP runtimes in the loader's folders, a line each.
pub(super) fn runtimes() -> Vec<Check> {
    let mut found: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for folder in folders() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_one = is_runtime_library(&name) && name.contains(".so");
            if let Some(file) = entry.path().canonicalize().ok().filter(|_| is_one) {
                let names = found.entry(file).or_default();
                let stem = name.split(['.', '-']).next().unwrap_or(&name).to_owned();
                if !names.contains(&stem) {
                    names.push(stem);
                }
            }
        }
    }
    let of = |(file, mut names): (PathBuf, Vec<String>)| {
        names.sort();
        let version = version(&file).map_or_else(String::new, |v| format!(", {v}"));
        let found = format!("{}{version}", file.display());
        Check::new("OpenMP runtime", State::Ok, found).means(format!("as {}", names.join(" and ")))
    };
    let checks: Vec<Check> = found.into_iter().map(of).collect();
    match checks.is_empty() {
        false => checks,
        true => vec![
            Check::new(
                "OpenMP runtime",
                State::Limited,
                "none in the loader's folders",
            )
            .means("only programs that bring their own can run")
            .helps("apt-get install libgomp1, or the runtime of your compiler"),
        ],
    }
}

/// Where the loader looks for libraries, and where compilers have theirs.
fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let list = |folder: &str| {
        let listing = std::fs::read_dir(folder).into_iter().flatten();
        listing.filter_map(|entry| Some(entry.ok()?.path()))
    };
    for file in list("/etc/ld.so.conf.d") {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        folders.extend(
            text.lines()
                .filter(|l| l.starts_with('/'))
                .map(PathBuf::from),
        );
    }
    let fixed = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"];
    folders.extend(fixed.map(PathBuf::from));
    folders.extend(
        list("/usr/lib")
            .filter(|f| is_called(f, "llvm-"))
            .map(|f| f.join("lib")),
    );
    folders.extend(list("/opt/intel/oneapi/compiler").map(|f| f.join("lib")));
    folders.retain(|f| f.is_absolute());
    folders
}

fn is_called(path: &Path, beginning: &str) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with(beginning)
}

/// What a runtime says of its version: LLVM's and Intel's in a text, gcc's by the names of its interfaces.
fn version(file: &Path) -> Option<String> {
    let bytes = input::map(file).ok()?;
    for begin in ["LLVM OMP version: ", "Intel(R) OMP version: "] {
        if let Some(at) = memmem::find(&bytes, begin.as_bytes()) {
            let text = bytes[at..].split(|&b| b == 0).next()?;
            let text = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
            return Some(text.replace(" OMP version: ", " "));
        }
    }
    let newest = newest_interface(&bytes, "GOMP_")?;
    Some(format!("gcc, interface GOMP_{newest}"))
}

/// The highest version of the interfaces with names that begin so.
fn newest_interface(bytes: &[u8], beginning: &str) -> Option<String> {
    let elf = Elf::parse(bytes).ok()?;
    let definitions = elf.verdef.as_ref()?.iter();
    let names = definitions.flat_map(|definition| {
        let names: Vec<&str> = definition
            .iter()
            .filter_map(|aux| elf.dynstrtab.get_at(aux.vda_name))
            .collect();
        names
    });
    let numbers = |text: &str| {
        text.split('.')
            .map(|n| n.parse().ok())
            .collect::<Option<Vec<u32>>>()
    };
    let versions = names.filter_map(|name| {
        let version = name.strip_prefix(beginning)?;
        Some((numbers(version)?, version.to_owned()))
    });
    versions.max().map(|(_, version)| version)
}

/// The C library that this command itself has loaded.
pub(super) fn c_library() -> Check {
    let name = "C library";
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let paths = maps
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]));
    let libc = paths.into_iter().find(|path| path.ends_with("/libc.so.6"));
    let version =
        libc.and_then(|path| newest_interface(&input::map(Path::new(path)).ok()?, "GLIBC_"));
    let Some(version) = version else {
        return Check::new(name, State::Limited, "no glibc was found")
            .means("recorded programs need glibc");
    };
    let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
    let has_contexts = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= WITH_CONTEXTS;
    let found = format!("glibc {version}");
    match has_contexts {
        true => {
            Check::new(name, State::Ok, found).means("calling contexts of regions are recorded")
        }
        false => Check::new(name, State::Limited, found)
            .means("calling contexts of regions are not recorded: they need glibc 2.35")
            .helps("record on a system with a newer glibc; nothing else is missing"),
    }
}
