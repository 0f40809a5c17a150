//! Which construct of the source an address is of, by other means than ompfuse's: the preprocessor says where directives are,
//! binutils where code is from.
//!
//! clang gives each call of the runtime its directive's line. gcc gives it none at all: line tables then tell the line of whatever
//! comes before. So what gcc made is known by the code behind it, which is the construct's body, and by the outlined function that
//! is handed over.

use super::directives::Directives;
use super::file_name;
use crate::lines::addr2line;
use ompfuse_tests::process;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::process::Command;

/// What a region is in the source: its kind, file and the line of its directive; the line itself where the source has a call.
pub(super) type Place = (String, String, u64);

/// Regions by kind and address, as JSON has it.
pub(super) type Regions = BTreeSet<(String, String)>;

/// Kinds whose bodies are functions that the runtime is given.
const OUTLINED: [&str; 4] = ["parallel", "task", "taskloop", "teams"];

/// Instructions behind a place among which the body of its construct is.
const BODY: usize = 60;

/// The places of regions in a build.
pub(super) struct Places(BTreeMap<(String, String), Option<Place>>);

impl Places {
    /// Of regions in a program with debug information. `is_gcc`: what compiled it.
    pub(super) fn of(
        program: &Path,
        is_gcc: bool,
        source: &Directives,
        regions: &Regions,
    ) -> Places {
        let code = Code::of(program);
        // What is looked at for each region, the most telling first, in several ways.
        let looked_at = |(kind, address): &(String, String)| -> Vec<Vec<u64>> {
            let at = hexadecimal(address).expect("an address");
            match kind.as_str() {
                _ if !is_gcc => vec![vec![at]],
                _ if code.is_combined(at) || OUTLINED.contains(&kind.as_str()) => {
                    let entry = code.outlined(at);
                    entry.into_iter().map(|e| code.entered(e)).collect()
                }
                "lock" => vec![vec![at]],
                _ => {
                    let before = match kind.as_str() {
                        "loop" | "distribute" => code.before(at),
                        _ => vec![],
                    };
                    let whole = |way| [before.clone(), code.behind(at, way)].concat();
                    [Way::Nearest, Way::Straight].map(whole).to_vec()
                }
            }
        };
        let wanted: BTreeMap<&(String, String), Vec<Vec<u64>>> =
            regions.iter().map(|r| (r, looked_at(r))).collect();
        let own = |(_, address): &(String, String)| hexadecimal(address);
        let addresses: BTreeSet<u64> = (wanted.values().flatten().flatten().copied())
            .chain(regions.iter().filter_map(own))
            .collect();
        let addresses: Vec<String> = addresses.iter().map(|a| format!("{a:#x}")).collect();
        let frames = addr2line(program, &addresses);
        let lines = |at: u64| -> Vec<(&str, u64)> {
            let of_rows = code.rows.get(&at).into_iter().flatten();
            let of_frames = frames.get(&format!("{at:#x}"));
            of_rows
                .chain(of_frames.into_iter().flatten())
                .map(|(file, line)| (file_name(file), *line))
                .collect()
        };
        let place = |region: &(String, String)| -> Option<Place> {
            let (kind, address) = region;
            let told = |(file, line): (&str, u64)| {
                Some((kind.clone(), file.to_owned(), source.at(kind, file, line)?))
            };
            let own = lines(hexadecimal(address)?);
            let is_call = |f: &&(&str, u64)| source.is_call(kind, f.0, f.1);
            let is_line = kind == "lock" || (!is_gcc && !source.has(kind));
            let call = own
                .iter()
                .find(is_call)
                .or_else(|| own.iter().find(|f| is_line && f.1 > 0));
            if let Some((file, line)) = call {
                return Some((kind.clone(), (*file).to_owned(), *line));
            }
            // Scheduling moves instructions: all ways, and where statements begin or any code does, have to tell the same.
            let mut told_by = BTreeSet::new();
            for way in &wanted[region] {
                let statements = way.iter().filter(|at| code.rows.contains_key(at));
                told_by.extend(statements.flat_map(|at| lines(*at)).find_map(told));
                told_by.extend(way.iter().flat_map(|at| lines(*at)).find_map(told));
            }
            told_by.pop_first().filter(|_| told_by.is_empty())
        };
        let known = regions.iter().map(|r| (r.clone(), place(r)));
        Places(known.collect())
    }

    /// What the source has there; `None`: nothing tells.
    pub(super) fn get(&self, kind: &str, address: &str) -> Option<&Place> {
        let key = (kind.to_owned(), address.to_owned());
        self.0.get(&key)?.as_ref()
    }
}

/// What is looked at first of what may be executed next.
#[derive(Clone, Copy)]
enum Way {
    /// As few instructions as possible away.
    Nearest,
    /// What is behind a jump, or where a jump back leads to.
    Straight,
}

/// What objdump says of a program.
#[derive(Default)]
struct Code {
    /// First addresses of functions.
    functions: BTreeSet<u64>,
    /// Instructions by their addresses: mnemonic and operands.
    instructions: BTreeMap<u64, String>,
    /// Files and lines of statements by the addresses where they begin.
    rows: BTreeMap<u64, Vec<(String, u64)>>,
    /// Where any code begins that is of another line than what is before it, statements or not.
    begins: BTreeSet<u64>,
}

impl Code {
    fn of(program: &Path) -> Code {
        let objdump = |flags: &[&str]| {
            let mut command = Command::new("objdump");
            process::run(command.args(flags).arg(program).env("LC_ALL", "C"))
                .ok("objdump")
                .text()
        };
        let mut code = Code::default();
        for line in objdump(&["-d", "--no-show-raw-insn"]).lines() {
            // 0000000000001840 <once>:
            let head = line.strip_suffix(">:").and_then(|l| l.split_once(" <"));
            if let Some(at) = head.and_then(|(at, _)| hexadecimal(at)) {
                code.functions.insert(at);
            } else if let Some((at, text)) = line.trim_start().split_once(":\t")
                && let Some(at) = hexadecimal(at)
            {
                code.instructions.insert(at, text.trim().to_owned());
            }
        }
        for line in objdump(&["--dwarf=decodedline"]).lines() {
            // shapes.c    209    0x1840    1    x
            let words: Vec<&str> = line.split_whitespace().collect();
            if let [file, line, at, ..] = words[..]
                && let (Ok(line), Some(at)) = (line.parse(), hexadecimal(at))
            {
                code.begins.insert(at);
                if words.last() == Some(&"x") {
                    let rows = code.rows.entry(at).or_default();
                    rows.push((file.to_owned(), line));
                }
            }
        }
        code
    }

    /// The outlined function that a call hands over in its first argument.
    fn outlined(&self, call: u64) -> Option<u64> {
        let start = *self.functions.range(..=call).next_back()?;
        let mut register = "%rdi".to_owned();
        for (_, text) in self.instructions.range(start..call).rev() {
            let (text, comment) = text.split_once(" # ").unwrap_or((text, ""));
            let Some(head) = text.trim_end().strip_suffix(register.as_str()) else {
                continue;
            };
            // lea    0x1045(%rip),%rdi        # 2890 <once._omp_fn.0>
            if head.starts_with("lea") && comment.contains("_omp_fn.") {
                return hexadecimal(comment.split_whitespace().next()?);
            }
            let source = head.strip_prefix("mov")?.trim().strip_suffix(',')?;
            source.strip_prefix('%')?;
            source.clone_into(&mut register);
        }
        None
    }

    /// Where the first lines of a function begin.
    fn entered(&self, entry: u64) -> Vec<u64> {
        self.rows.range(entry..).take(3).map(|r| *r.0).collect()
    }

    /// Whether a place is a call that begins several constructs at once.
    fn is_combined(&self, at: u64) -> bool {
        let text = self.instructions.get(&at);
        text.is_some_and(|t| t.contains("<GOMP_parallel_"))
    }

    /// Where lines begin in the basic block of a place, up to there, the nearest first.
    fn before(&self, from: u64) -> Vec<u64> {
        let before = self.instructions.range(..=from).rev();
        let is_end = |text: &str| text.starts_with('j') || text.starts_with("call");
        let block = before
            .take_while(|(at, text)| **at == from || !is_end(text))
            .map(|(at, _)| *at);
        block.filter(|at| self.begins.contains(at)).collect()
    }

    /// Where lines begin behind a place. A call of the runtime begins something else.
    fn behind(&self, from: u64, way: Way) -> Vec<u64> {
        let mut found = vec![];
        let mut seen = BTreeSet::new();
        let mut next = VecDeque::from([from]);
        while let Some(at) = next.pop_front() {
            let text = self.instructions.get(&at);
            let Some(text) = text.filter(|_| seen.len() < BODY && seen.insert(at)) else {
                continue;
            };
            let is_runtime = ["<GOMP_", "<omp_"].iter().any(|n| text.contains(n));
            if is_runtime && at != from {
                continue;
            }
            found.extend((at != from && self.begins.contains(&at)).then_some(at));
            let mut words = text.split_whitespace();
            let mnemonic = words.next().unwrap_or_default();
            let target = words.next().and_then(hexadecimal);
            let target = target.filter(|_| mnemonic.starts_with('j'));
            let goes_on = !["jmp", "ret", "hlt", "ud2"].contains(&mnemonic);
            let after = self.instructions.range(at + 1..).next();
            let after = after.map(|(at, _)| *at).filter(|_| goes_on);
            match way {
                Way::Nearest => next.extend(after.into_iter().chain(target)),
                Way::Straight => {
                    let is_back = target.is_some_and(|t| t <= at);
                    let (first, second) = if is_back {
                        (target, after)
                    } else {
                        (after, target)
                    };
                    for at in [second, first].into_iter().flatten() {
                        next.push_front(at);
                    }
                }
            }
        }
        found
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}
