//! Machine code of compilers that Debian 12 doesn't have, kept as assembly text of small programs that count what they do
//! (`tests/sources/newer`).

use super::executions;
use ompfuse_tests::scan::Scan;
use ompfuse_tests::{compile, fixture, process, repository, table};
use std::process::Command;

fn counts_are_the_programs_own(name: &str) {
    let libraries = match name.contains("clang") {
        true => "-L/usr/lib/llvm-19/lib -lomp -Wl,-rpath,/usr/lib/llvm-19/lib",
        false => "-lgomp",
    };
    let folder = repository().join("tests/sources/newer");
    let source = folder.join(name.replace('_', "-")).with_extension("s");
    let place = tempfile::tempdir().expect("there is room for a program");
    let program = place.path().join(name);
    if !compile::files(&[source], &program, &format!("gcc -pie {libraries}")) {
        return;
    }
    let original = process::run(process::clean(&mut Command::new(&program), 3)).ok(name);
    let own = fixture::counts(&original.text());
    assert!(original.text().starts_with("right\n"), "{original:?}");
    let scan = Scan::of(&program);
    let skipped =
        |s: &&ompfuse_tests::scan::Site| s.outcome == "skipped" && s.construct != "atomic";
    assert_eq!(scan.sites.iter().find(skipped), None, "{name}");

    let out = place.path().join("out");
    let recorded = table::record(&program, &[], 3, &out, &table::ONE_EVENT);
    assert_eq!(recorded.ok(name).text(), original.text());
    let run = table::runs(&out).remove(0);
    let mut found = executions::reported(&run);
    let xus = table::export(&run);
    for unit in ["range", "section", "task"] {
        let of_it = xus.iter().filter(|x| x.construct == unit);
        let number = |x: &table::Xu| match unit {
            "range" => x.number("iterations"),
            _ => 1,
        };
        found.insert(unit.to_owned(), of_it.map(number).sum());
    }
    for (what, wanted) in own {
        assert_eq!(found.get(&what), Some(&wanted), "{what} of {name}");
    }
}

/// One test per file.
macro_rules! of_files {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            counts_are_the_programs_own(stringify!($name));
        })*

        #[test]
        fn every_file_is_tested() {
            let folder = repository().join("tests/sources/newer");
            let files = std::fs::read_dir(folder).expect("it can be listed");
            let names = files.map(|f| f.expect("it can be listed").file_name().into_string());
            let mut there: Vec<String> = names
                .filter_map(|n| Some(n.ok()?.strip_suffix(".s")?.replace('-', "_")))
                .collect();
            there.sort();
            assert_eq!(there, [$(stringify!($name)),*]);
        }
    };
}

of_files!(others_clang_23 others_gcc_16 static_clang_17 static_clang_23 static_gcc_13 static_gcc_14 static_gcc_16);
