//! A generated program while it is written: its text, and what is known of each place in it.

use crate::hostile::Random;

/// The word of places at which a thread works beside the one that executes serial code.
pub const BESIDE: &str = "beside";

/// What a place's units, or the waits for it, are in a report.
#[derive(Debug, Clone)]
pub struct Place {
    /// Words for the cause (`super::judge` has the report's names of them); each is right.
    pub words: Vec<&'static str>,
    /// Lines that are right.
    pub lines: Vec<u32>,
    /// Phase that it is in.
    pub phase: usize,
    /// Places that exclude each other have the same number.
    pub mutex: Option<usize>,
    /// Whether its units may be executed by the OpenMP runtime, so that no report knows of them.
    pub is_hidden: bool,
}

/// What the program does from one serial moment to the next.
#[derive(Debug, Clone)]
pub struct Phase {
    /// Threads; `None`: code outside of parallel regions.
    pub team: Option<usize>,
    /// Line of its region.
    pub line: u32,
    /// What all that is lost in it is lost by, if it isn't found by looking at who came last: words and lines.
    pub whole: Option<(Vec<&'static str>, Vec<u32>)>,
}

/// A program, with the number of its threads and what is known of it.
#[derive(Debug, Clone)]
pub struct Writer {
    /// Draws.
    pub random: Random,
    /// Threads of a team that the source doesn't give another number.
    pub threads: usize,
    /// Whether it is C++.
    pub is_cxx: bool,
    /// Whether clang can't compile it.
    pub only_gcc: bool,
    /// Whether it has the same work with any number of threads, which the environment decides.
    pub scales: bool,
    /// Whether its units compute.
    pub computes: bool,
    /// Variables of its environment.
    pub environment: Vec<(&'static str, String)>,
    /// Options of its recording.
    pub options: Vec<&'static str>,
    /// Places, by number.
    pub places: Vec<Place>,
    /// Phases, by number.
    pub phases: Vec<Phase>,
    /// Sentences that must not be said of it: parts of advice.
    pub never: Vec<&'static str>,
    /// Calls in `main`, before it, and behind it.
    pub calls: Vec<String>,
    lines: Vec<String>,
    mutexes: usize,
}

impl Writer {
    pub(super) fn new(random: Random, threads: usize) -> Writer {
        let mut writer = Writer {
            random,
            threads,
            is_cxx: false,
            only_gcc: false,
            scales: true,
            computes: false,
            environment: vec![],
            options: vec![],
            places: vec![],
            phases: vec![],
            never: vec![],
            calls: vec![],
            lines: vec![],
            mutexes: 0,
        };
        for line in [
            "#include \"own_clock.h\"",
            "#include <omp.h>",
            "#include <pthread.h>",
            "#include <stdlib.h>",
        ] {
            writer.line(line);
        }
        writer
    }

    /// Writes a line, and tells its number.
    pub(super) fn line(&mut self, text: impl AsRef<str>) -> u32 {
        self.lines.push(text.as_ref().to_owned());
        self.lines.len() as u32
    }

    /// The number of the next line.
    pub(super) fn next(&self) -> u32 {
        self.lines.len() as u32 + 1
    }

    /// The text.
    pub fn source(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    /// One of `below` numbers from `from` on.
    pub(super) fn number(&mut self, from: usize, below: usize) -> usize {
        from + self.random.below(below.saturating_sub(from))
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.random.below(100) < percent
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len())]
    }

    /// Begins the function of a phase. `team`: its threads.
    pub(super) fn begin(&mut self, team: Option<usize>) -> usize {
        self.scales &= team.is_none_or(|team| team == self.threads);
        let number = self.phases.len();
        self.phases.push(Phase {
            team,
            line: 0,
            whole: None,
        });
        number
    }

    /// Writes the head of a phase's function, behind what it needs before it.
    pub(super) fn head(&mut self, phase: usize) {
        self.line("");
        self.line(format!(
            "__attribute__((noinline)) static void phase_{phase}(void)"
        ));
        self.line("{");
        self.line("    double since = at();");
    }

    /// Ends it, and has it called so many times.
    pub(super) fn end(&mut self, phase: usize, times: usize) {
        self.line(format!("    phase({phase}, since);"));
        self.line("}");
        self.calls.push(match times {
            1 => format!("phase_{phase}();"),
            n => format!("for (int s = 0; s < {n}; s++) phase_{phase}();"),
        });
    }

    /// A region's line.
    pub(super) fn region(&mut self, phase: usize, text: impl AsRef<str>) -> u32 {
        let line = self.line(text);
        self.phases[phase].line = line;
        line
    }

    /// A new place.
    pub(super) fn place(&mut self, phase: usize, words: &[&'static str], lines: &[u32]) -> usize {
        self.places.push(Place {
            words: words.to_vec(),
            lines: lines.to_vec(),
            phase,
            mutex: None,
            is_hidden: false,
        });
        self.places.len() - 1
    }

    /// The number that the next place will have.
    pub(super) fn next_place(&self) -> usize {
        self.places.len()
    }

    pub(super) fn mutex(&mut self) -> usize {
        self.mutexes += 1;
        self.mutexes
    }

    /// Milliseconds of a place's iterations, as an array.
    pub(super) fn costs(&mut self, costs: &[f64]) -> usize {
        let number = self.lines.len();
        let list: Vec<String> = costs.iter().map(|ms| format!("{ms:.2}")).collect();
        self.line(format!(
            "static const double cost_{number}[] = {{{}}};",
            list.join(", ")
        ));
        number
    }
}

impl Writer {
    /// Replaces a part of the text, which is there once.
    pub(super) fn replace(&mut self, old: &str, new: &str) {
        let line = self.lines.iter_mut().find(|l| l.contains(old));
        let line = line.expect("the text is there");
        *line = line.replace(old, new);
    }
}
