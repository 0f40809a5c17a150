//! Names and arguments come from the program: no terminal may obey what is in them.

use ompfuse_tests::{command, compile, process};
use std::path::Path;

const PROGRAM: &str = r"
int main(void)
{
    int sum = 0;
#pragma omp parallel reduction(+ : sum)
    sum += 1;
    return sum < 1;
}
";

/// Sets a title, and clears the screen, in two ways.
const ARGUMENT: &str = "\x1b]0;title\x07\u{9b}2J\x1b[2J";

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let Some(program) = compile::compile(PROGRAM, "gcc -O1 -g -fopenmp") else {
        return;
    };
    let out = program.folder.path().join("out");
    let file = program.folder.path().join("report.txt");
    let mut profile = command::with_threads(2);
    profile.args(["profile", "-o"]).arg(&out);
    profile.arg("--report").arg(&file);
    profile.arg("--").arg(&program.path).arg(ARGUMENT);
    let recorded = process::run(&mut profile).ok("profile");
    let told = command::ok([Path::new("report"), &out]).text();
    let written = std::fs::read_to_string(&file).expect("it was written");
    for text in [told, written, recorded.errors()] {
        let is_wild = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(is_wild), "{text:?}");
    }
    let json = command::json([Path::new("report"), &out, Path::new("--format=json")]);
    assert_eq!(json["args"][0], ARGUMENT);
}
