//! Programs of a test's own, from a source text or file and a command such as `gcc-12 -O2 -fopenmp`.

use crate::{matrix, process, tools};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiled program in a folder of its own, which is removed with it.
#[derive(Debug)]
pub struct Program {
    /// The folder, with the source.
    pub folder: tempfile::TempDir,
    /// The program.
    pub path: PathBuf,
}

/// Compiles a source text. `None`, and said so, without the compiler.
///
/// # Panics
/// With `CI=true` without the compiler; anywhere if the source doesn't compile.
#[track_caller]
pub fn compile(source: &str, command: &str) -> Option<Program> {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let path = text(folder.path(), "program", source, command)?;
    Some(Program { folder, path })
}

/// Compiles a source text in a folder to a file of this name there, as [`compile`] does.
#[track_caller]
pub fn text(folder: &Path, name: &str, source: &str, command: &str) -> Option<PathBuf> {
    let compiler = command.split_whitespace().next()?;
    let extension = match compiler {
        c if c.contains("++") => "cc",
        c if c.contains("fortran") || c.starts_with("flang") => "f90",
        _ if source.starts_with(".globl") => "s",
        _ => "c",
    };
    let file = folder.join(format!("{name}.{extension}"));
    std::fs::write(&file, source)
        .unwrap_or_else(|e| panic!("cannot write {}: {e}", file.display()));
    let out = folder.join(name);
    files(&[&file], &out, command).then_some(out)
}

/// Compiles files to `out`, and says whether the compiler is there, as [`compile`] does. Libraries come behind the files,
/// where linkers look for them; flags that the matrix says a compiler always needs are added.
#[track_caller]
pub fn files<P: AsRef<Path>>(files: &[P], out: &Path, command: &str) -> bool {
    let mut words = command.split_whitespace();
    let compiler = words.next().expect("a command names a compiler");
    if !tools::has(compiler) {
        return false;
    }
    let (libraries, flags): (Vec<&str>, Vec<&str>) =
        words.partition(|w| w.starts_with("-l") || w.starts_with("-L"));
    let mut compile = Command::new(compiler);
    compile.args(flags).args(matrix::flags_of(compiler));
    compile.arg("-o").arg(out);
    compile
        .args(files.iter().map(AsRef::as_ref))
        .args(libraries);
    // Fortran compilers leave module files where they are started.
    if let Some(folder) = out.parent() {
        compile.current_dir(folder);
    }
    let said = process::run(compile.env("LC_ALL", "C"));
    assert!(said.status == 0, "{command}: {said:?}");
    true
}
