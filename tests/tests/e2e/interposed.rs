//! A program, or a library of its, may define functions with names of the C library's. None of them is ever called by the
//! libraries that are in its process for the recording.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol};
use ompfuse_tests::{command, compile, process, repository, table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Libraries in the place of whose functions no test can put something, since originals need these themselves.
const NEEDED: [&str; 2] = ["libgcc_s.so.1", "libc.so.6"];

/// The C library's files: four before glibc 2.34, then two.
const C_LIBRARY: [&str; 4] = [
    "libc.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "ld-linux-x86-64.so.2",
];

/// Marks a version that takes no definition without version.
const HIDDEN: u16 = 0x8000;

/// An undefined symbol: the file that its version is asked of, and the version's number.
type Wanted = Option<(String, u16)>;

/// A library's undefined symbols.
fn undefined(library: &Path) -> BTreeMap<String, Wanted> {
    let bytes = std::fs::read(library).expect("a library can be read");
    let bytes = &bytes[..];
    let file = ElfFile64::<Endianness>::parse(bytes).expect("a library is an ELF file");
    let (endian, sections) = (file.endian(), file.elf_section_table());
    let strings = file.elf_dynamic_symbol_table().strings();
    let mut versions = BTreeMap::new();
    let needed = sections.gnu_verneed(endian, bytes).expect("versions");
    let (mut needed, _) = needed.expect("it needs versions");
    while let Some((of, mut list)) = needed.next().expect("versions") {
        let from = of.file(endian, strings).expect("a name");
        let from = String::from_utf8_lossy(from).into_owned();
        while let Some(version) = list.next().expect("versions") {
            let number = version.vna_other.get(endian).0;
            versions.insert(number & !HIDDEN, (from.clone(), number));
        }
    }
    let symbols = sections.gnu_versym(endian, bytes).expect("versions");
    let (symbols, _) = symbols.expect("symbols have versions");
    let wanted = file.dynamic_symbols().filter(|s| s.is_undefined());
    let named = wanted.filter_map(|symbol| {
        let name = symbol.name().ok().filter(|n| !n.is_empty())?.to_owned();
        let number = symbols[symbol.index().0].0.get(endian).0 & !HIDDEN;
        Some((name, versions.get(&number).cloned()))
    });
    named.collect()
}

/// The runtime library and the auditing library, as a recorded program has them.
fn libraries() -> [PathBuf; 2] {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let mut recorder = command::with_threads(2);
    recorder
        .args(["record", "--events", "none", "-o"])
        .arg(folder.path().join("out"));
    recorder.args(["--", "sh", "-c"]);
    recorder.arg("echo $LD_AUDIT; readlink $OMPFUSE_LIBRARIES/runtime");
    let said = process::run(&mut recorder).text();
    let mut lines = said.lines().map(PathBuf::from);
    let mut next = || lines.next().expect("a path");
    let [audit, runtime] = [next(), next()];
    [runtime, audit]
}

/// Names that programs may define, since they aren't reserved: all that the libraries need of the C library.
fn names() -> Vec<String> {
    let all: BTreeSet<String> = libraries()
        .iter()
        .flat_map(|l| undefined(l).into_keys())
        .collect();
    // The environment is no function.
    let is_one = |n: &String| !n.starts_with('_') && n != "environ";
    let names: Vec<_> = all.into_iter().filter(is_one).collect();
    assert!(names.len() > 30, "{names:?}");
    names
}

#[derive(serde::Deserialize)]
struct Permitted {
    functions: Vec<Functions>,
}

#[derive(serde::Deserialize)]
struct Functions {
    from: String,
    why: String,
    names: Vec<String>,
}

#[test]
fn every_function_of_others_is_permitted() {
    let permitted: Permitted =
        toml::from_str(include_str!("interposed/permitted.toml")).expect("the list is TOML");
    let mut unused: BTreeSet<&str> = BTreeSet::new();
    for functions in &permitted.functions {
        assert!(!functions.why.is_empty(), "{:?}", functions.names);
        unused.extend(functions.names.iter().map(String::as_str));
    }
    let all = unused.clone();
    for library in libraries() {
        for (name, wanted) in undefined(&library) {
            assert!(
                all.contains(name.as_str()),
                "{} needs {name}",
                library.display()
            );
            unused.remove(name.as_str());
            let is_it = |f: &&Functions| f.names.contains(&name);
            let from = permitted
                .functions
                .iter()
                .find(is_it)
                .map(|f| f.from.as_str());
            let found = match &wanted {
                None => "nobody",
                Some((of, number)) if C_LIBRARY.contains(&of.as_str()) => match number & HIDDEN {
                    0 => "whoever defines it",
                    _ => "libc",
                },
                Some((_, number)) if number & HIDDEN == 0 => "program",
                Some(_) => "libgcc alone",
            };
            assert_eq!(
                Some(found),
                from,
                "{name} {wanted:?} in {}",
                library.display()
            );
        }
    }
    assert_eq!(unused, BTreeSet::new(), "nobody needs these");
}

/// The names that a program can use for what it likes, as its compiler's definition: its own OpenMP runtime needs none of them.
fn own_names(compiler: &str, runtime: &str) -> String {
    let needed = NEEDED.iter().chain([&runtime]);
    let needed = needed.flat_map(|l| undefined_names(&installed(compiler, l)));
    let needed: BTreeSet<String> = needed.collect();
    // By name, what the libraries could need some day.
    let further = "getppid gettid fcntl mmap lseek fstat open openat pread pwrite";
    let further = further.split(' ').map(str::to_owned);
    let all = names().into_iter().chain(further);
    let own: BTreeSet<String> = all.filter(|n| !needed.contains(n)).collect();
    for name in ["write", "gettid", "ioctl", "open64", "getauxval"] {
        assert!(own.contains(name), "{name} isn't tried: {own:?}");
    }
    definition(own.iter().map(|n| format!("X({n})")))
}

/// Where the linker finds a library.
fn installed(compiler: &str, library: &str) -> PathBuf {
    let mut linker = Command::new(compiler);
    let said = process::run(linker.arg(format!("-print-file-name={library}")))
        .ok(compiler)
        .text();
    let path = PathBuf::from(said.trim());
    path.canonicalize()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A definition of the compiler's command line.
fn definition(names: impl Iterator<Item = String>) -> String {
    format!("-DNAMES={}", names.collect::<String>())
}

/// Runs a command as it is and recorded: the same output and status, and so many execution units.
fn same(command: &[&str], out: &Path, units: usize) {
    let mut original = Command::new(command[0]);
    let original = process::run(process::clean(&mut original, 2).args(&command[1..]));
    assert!(original.text().contains("sum "), "{original:?}");
    let mut recorder = command::with_threads(2);
    recorder
        .arg("record")
        .args(table::ONE_EVENT)
        .arg("-o")
        .arg(out);
    let recorded = process::run(recorder.arg("--").args(command));
    let outcome = |o: &process::Output| (o.status, o.text());
    assert_eq!(outcome(&recorded), outcome(&original), "{recorded:?}");
    assert_eq!(
        table::export(&table::runs(out)[0]).len(),
        units,
        "{command:?}"
    );
}

/// All of them at once, in a program and in a library that is preloaded: they do nothing of what is expected of their names, and count
/// their calls.
#[test]
fn programs_and_libraries_with_names_of_their_own() {
    let folder = tempfile::tempdir().expect("there is room for programs");
    let at = |name: &str| folder.path().join(name);
    if !ompfuse_tests::has("gcc") {
        return;
    }
    let source = repository().join("tests/sources/ownnames.c");
    let programs = [("gcc", "libgomp.so.1"), ("clang-19", "libomp.so")];
    for (compiler, runtime) in programs {
        if !ompfuse_tests::has(compiler) {
            continue;
        }
        let names = own_names(compiler, runtime);
        let flags = format!("{compiler} -O2 -fopenmp -rdynamic {names}");
        let program = at(compiler);
        compile::files(&[&source], &program, &flags);
        let out = program.with_extension("runs");
        same(&[program.to_str().expect("text")], &out, 10);
    }
    let library = at("ownnames.so");
    let names = own_names("gcc", "libgomp.so.1");
    let flags = format!("gcc -O2 -fopenmp -shared -fPIC -DLIBRARY {names}");
    compile::files(&[&source], &library, &flags);
    let main = at("main");
    compile::files(
        &[repository().join("tests/plugins/main.c")],
        &main,
        "gcc -O2 -fopenmp",
    );
    let preload = format!("LD_PRELOAD={}", library.display());
    let command = ["env", &preload, main.to_str().expect("text")];
    same(&command, &at("preloaded"), 4);
}

/// The names of a library's undefined symbols; of one that may need none of any version.
fn undefined_names(library: &Path) -> Vec<String> {
    let bytes = std::fs::read(library).expect("a library can be read");
    let file = ElfFile64::<Endianness>::parse(&bytes[..]).expect("a library is an ELF file");
    let wanted = file.dynamic_symbols().filter(|s| s.is_undefined());
    wanted
        .filter_map(|s| Some(s.name().ok()?.to_owned()))
        .collect()
}

/// A program that defines all of them, those that everybody needs as well, and hands on each call to the C library: but not ours.
#[test]
fn a_program_in_front_of_the_c_library() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let names = names().into_iter().enumerate();
    let definition = definition(names.map(|(number, name)| format!("X({number},{name})")));
    let source = repository().join("tests/sources/callers.c");
    for flags in ["", "-Wl,-z,now"] {
        let program = folder.path().join(format!("callers{flags}"));
        let command =
            format!("gcc -O2 -mgeneral-regs-only -fopenmp -rdynamic {flags} {definition}");
        if compile::files(&[&source], &program, &command) {
            let out = program.with_extension("runs");
            same(&[program.to_str().expect("text")], &out, 10);
        }
    }
}
