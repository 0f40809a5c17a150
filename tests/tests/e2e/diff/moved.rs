//! Code that moved into another file, or another namespace on the way, is the same code.

use super::{diff, recorded, text};
use ompfuse_tests::compile;
use serde_json::Value;

/// A template, member functions, and a lambda.
const MOVED: &str = "
namespace NAME {
template<int N> __attribute__((noinline)) void grid() {
    #pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < N; i++) inside += i;
}
struct Mesh {
    int n;
    __attribute__((noinline)) void sweep() {
        #pragma omp parallel
        {
            #pragma omp for schedule(static, 2) nowait
            for (int i = 0; i < n; i++) inside += i;
            #pragma omp for schedule(guided)
            for (int i = 0; i < n / 2; i++) inside += i;
            #pragma omp single
            inside++;
        }
    }
};
__attribute__((noinline)) void user() {
    auto f = [](int m) {
        #pragma omp parallel for schedule(dynamic, 2)
        for (int i = 0; i < m; i++) inside += i;
    };
    f(10);
    f(6);
}
__attribute__((noinline)) void all() { grid<6>(); grid<9>(); Mesh{8}.sweep(); user(); }
}
";

const STAYS: &str = "
__attribute__((noinline)) static void stay() {
    #pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < 7; i++) inside += i;
    #pragma omp parallel
    {
        #pragma omp barrier
    }
}
";

/// The program with what moves in this file and namespace, behind what stays or before it.
fn source(file: &str, namespace: &str) -> String {
    let moved = MOVED.replace("NAME", namespace);
    format!(
        "#include <atomic>\nstatic std::atomic<long> inside;\n# 1 \"two.cc\"\n{STAYS}\n# {} \"{file}\"\n{moved}\n# 1 \"main.cc\"\n\
         int main() {{ for (int r = 0; r < 2; r++) {{ stay(); {namespace}::all(); }} }}\n",
        if file == "two.cc" { 50 } else { 1 },
    )
}

#[test]
fn what_moved_is_matched_and_not_new() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    for compiler in ["g++", "clang++-19"] {
        let record = |name: &str, source: &str| {
            let program = compile::compile(source, &format!("{compiler} -O2 -g -fopenmp"))?;
            let name = format!("{compiler}-{name}");
            let options = ["--events", "none"];
            Some(recorded(folder.path(), &name, &program.path, &options))
        };
        let Some(before) = record("before", &source("one.cc", "space")) else {
            continue;
        };
        let cases = [
            ("two.cc", "space"),
            ("three.cc", "other"),
            ("two.cc", "other"),
        ];
        for (number, (file, namespace)) in cases.into_iter().enumerate() {
            let after = record(&number.to_string(), &source(file, namespace));
            let after = after.expect("it compiles");
            let found = diff(
                [&before, &after],
                &["--format", "json", "--fail-on", "new-regions>0"],
            );
            let json: Value = serde_json::from_str(&text(&found)).expect("JSON");
            let what = format!("{compiler} {file} {namespace}: {json:#}");
            assert_eq!(found.status, 0, "{what}");
            assert_eq!(json["matched"], serde_json::json!([1.0, 1.0]), "{what}");
            let pairs = json["pairs"].as_array().expect("a list");
            for pair in pairs {
                let key = |side: &str| pair[side][0]["schedule"].clone();
                assert_eq!(key("a"), key("b"), "{what}");
                assert_eq!(pair["is_group"], false, "{what}");
            }
            assert!(pairs.iter().any(|p| p["basis"] == "function"), "{what}");
        }
    }
}

/// Two loops and a block of one thread, in one function of a file, or in one of each of two files.
fn steps(is_divided: bool) -> String {
    let first = "    #pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < 40; i++) inside += i;
";
    let second = "    #pragma omp parallel
    {
        #pragma omp for schedule(static, 3)
        for (int i = 0; i < 33; i++) inside += i;
        #pragma omp single
        inside++;
    }
";
    let function = |name: &str, body: &str| {
        format!("__attribute__((noinline)) static void {name}() {{\n{body}}}\n")
    };
    let steps = match is_divided {
        true => format!(
            "# 10 \"halves.cc\"\n{}# 30 \"rest.cc\"\n{}# 1 \"main.cc\"\nstatic void step() {{ half(); rest(); }}\n",
            function("half", first),
            function("rest", second)
        ),
        false => format!(
            "# 1 \"one.cc\"\n{}",
            function("step", &format!("{first}{second}"))
        ),
    };
    format!(
        "#include <atomic>\nstatic std::atomic<long> inside;\n# 1 \"two.cc\"\n{STAYS}\n{steps}\n# 90 \"main.cc\"\n\
         int main() {{ for (int r = 0; r < 2; r++) {{ stay(); step(); }} }}\n"
    )
}

#[test]
fn the_parts_of_a_divided_function_are_told_as_such() {
    let folder = tempfile::tempdir().expect("there is room for runs");
    for compiler in ["g++", "clang++-19"] {
        let record = |name: &str, is_divided: bool| {
            let program =
                compile::compile(&steps(is_divided), &format!("{compiler} -O1 -g -fopenmp"))?;
            let name = format!("{compiler}-{name}");
            Some(recorded(
                folder.path(),
                &name,
                &program.path,
                &["--events", "none"],
            ))
        };
        let (Some(whole), Some(divided)) = (record("whole", false), record("divided", true)) else {
            continue;
        };
        for sides in [[&*whole, &*divided], [&*divided, &*whole]] {
            let found = diff(sides, &["--format", "json", "--fail-on", "new-regions>0"]);
            let json: Value = serde_json::from_str(&text(&found)).expect("JSON");
            let what = format!("{compiler}: {json:#}");
            assert_eq!(found.status, 0, "{what}");
            assert_eq!(json["matched"], serde_json::json!([1.0, 1.0]), "{what}");
            let pairs = json["pairs"].as_array().expect("a list");
            let parts: Vec<&Value> = pairs.iter().filter(|p| p["basis"] == "parts").collect();
            for pair in &parts {
                let key = |side: &str| {
                    (
                        pair[side][0]["construct"].clone(),
                        pair[side][0]["schedule"].clone(),
                    )
                };
                assert_eq!(key("a"), key("b"), "{what}");
            }
            assert!(parts.len() >= 4, "{what}");
        }
    }
}
