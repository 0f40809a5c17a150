//! Places where lines are short: file and line stay, names lose what is inside of their template arguments.

use super::widest;
use ompfuse_tests::{command, compile, process, table};

/// Two instances of a template with a long name, whose argument is another instance.
const SOURCE: &str = r#"
#include <cstdio>
#include <map>
#include <string>
#include <vector>
namespace linear { namespace algebra {
template <class T> struct Solver {
    [[gnu::noinline]] static long iterate(long n) {
        long sum = 0;
#pragma omp parallel for schedule(dynamic, 7) reduction(+ : sum)
        for (long i = 0; i < n; i++) sum += (long)sizeof(T) + i;
        return sum;
    }
};
}}
int main(int argc, char **) {
    using linear::algebra::Solver;
    long n = argc > 1 ? 10000000 : 1000;
    long s = Solver<std::vector<std::map<std::string, std::vector<double>>>>::iterate(n);
    s += Solver<std::map<std::string, std::vector<std::string>>>::iterate(1000);
    std::printf("%ld\n", s);
}
"#;

/// Every other view that has places, at three widths: no line is too long, no name is told in full, no place lost its line.
#[test]
fn other_tables_keep_them_too() {
    let Some(program) = compile::compile(SOURCE, "g++ -O2 -g -fopenmp") else {
        return;
    };
    let folder = program.folder.path();
    let record = |name: &str, threads: usize| {
        let out = folder.join(name);
        let options = ["--events", "none", "--units", "cost=1"];
        table::record(&program.path, &["many"], threads, &out, &options).ok("record");
    };
    record("one", 1);
    record("two", 2);
    record("other", 2);
    let first = command::report(folder.join("two"))["regions"][0]["id"].to_string();
    let views: [&[&str]; 6] = [
        &["report", "two", "--show", "all"],
        &["report", "two", "--region", &first],
        &["report", "two", "--lines"],
        &["report", "one", "two"],
        &["diff", "two", "other"],
        &["scan", "program"],
    ];
    for (view, columns) in views.iter().flat_map(|v| [40, 80, 120].map(|c| (v, c))) {
        let mut shown = command::with_threads(2);
        shown.current_dir(folder).args(*view);
        let said = process::run(shown.env("COLUMNS", columns.to_string()));
        if said.errors().contains("cannot tell lines") {
            continue;
        }
        let text = match view[0] {
            "diff" => said.text(), // its status tells the difference
            _ => said.ok(&view.join(" ")).text(),
        };
        let case = format!("{columns} {view:?}: {text}");
        assert!(!text.contains("char_traits"), "{case}");
        assert!(text.contains("cc:") || view.contains(&"--lines"), "{case}");
        // A command to copy is one line, and so is a long word.
        let lines = text.lines().filter(|l| !l.contains("ompfuse "));
        let longest = lines.max_by_key(|l| l.chars().count()).unwrap_or_default();
        let is_word = longest.trim().split(' ').count() == 1;
        assert!(
            widest(longest) <= columns || is_word,
            "{longest:?} in {case}"
        );
        for words in ["…rial code", "…onstructs", "… left out"] {
            assert!(!text.contains(words), "{words} in {case}");
        }
    }
}

/// The line of the construct, with the file's name.
fn line() -> String {
    let line = SOURCE.lines().position(|l| l.contains("#pragma omp"));
    format!("program.cc:{}", line.expect("a construct") + 1)
}

#[test]
fn file_and_line_stay() {
    let Some(program) = compile::compile(SOURCE, "g++ -O2 -g -fopenmp") else {
        return;
    };
    let out = program.folder.path().join("out");
    table::record(&program.path, &[], 2, &out, &["--events", "none"]).ok("record");
    for columns in [40, 80, 120] {
        for by in ["line", "site"] {
            let mut report = command::with_threads(2);
            report.arg("report").arg(&out).args(["--by", by]);
            let text = process::run(report.env("COLUMNS", columns.to_string())).ok("report");
            let text = text.text();
            let table = text.lines().skip_while(|l| !l.contains("construct"));
            let table: Vec<&str> = table.skip(1).take_while(|l| !l.is_empty()).collect();
            let rows: Vec<_> = table
                .iter()
                .filter(|l| l.contains("parallel") || l.contains("loop"))
                .collect();
            assert!(rows.len() >= 2, "{columns} {by}: {text}");
            for row in rows {
                let lines = SOURCE.lines().count();
                let is_there = (1..=lines).any(|n| row.contains(&format!("cc:{n}")));
                assert!(is_there, "{columns} {by}: {row}\n{text}");
                // Where 40 columns are too few for the file's name, its end stays.
                assert!(
                    columns == 40 || !row.contains(" …"),
                    "{columns} {by}: {row}"
                );
            }
            assert!(
                widest(&table.join("\n")) <= columns,
                "{columns} {by}: {text}"
            );
        }
    }
    // A sentence doesn't consist of template arguments.
    let mut report = command::with_threads(2);
    report.arg("report").arg(&out).env("COLUMNS", "80");
    let text = process::run(&mut report).ok("report").text();
    let sentences = text.lines().take_while(|l| !l.is_empty());
    let sentences: Vec<&str> = sentences.collect();
    assert!(!sentences.join(" ").contains("char_traits"), "{text}");
    // Without debug information a function's name is shortened, and its address stays.
    let mut strip = std::process::Command::new("strip");
    process::run(strip.arg("-g").arg(&program.path)).ok("strip");
    let out = program.folder.path().join("plain");
    table::record(&program.path, &[], 2, &out, &["--events", "none"]).ok("record");
    let mut report = command::with_threads(2);
    report.arg("report").arg(&out).env("COLUMNS", "100");
    let text = process::run(&mut report).ok("report").text();
    assert!(text.contains("<…>::iterate 0x"), "{text}");
    assert!(!text.contains(&line()), "{text}");
}
