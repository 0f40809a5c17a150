//! Processes that a recorded program starts in a way that keeps the recording from them: without the variables that were given
//! to it (`env -i`, sudo, a program that chooses), or as another user. They are seen while they run, from outside.

use crate::libraries::AUDIT;
use crate::program::PRELOAD;
use ompfuse_format::run::{ENV_DIR, ENV_LIBRARIES};
use rustix::process::getuid;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Processes that are looked at in one go.
const MOST: usize = 256;

/// Names of functions that compilers emit calls of, as they begin in a file's strings.
const CALLS: [&[u8]; 2] = [b"\0GOMP_", b"\0__kmpc_"];

/// Files that hold an OpenMP runtime, as their names begin.
const RUNTIMES: [&str; 3] = ["libgomp", "libomp", "libiomp5"];

/// Why a process is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// It has not got these variables, or others of their name.
    Variables(Vec<&'static str>),
    /// It belongs to this user.
    User(u32),
}

/// A process that is not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stray {
    pub(super) program: PathBuf,
    pub(super) why: Why,
    /// It uses OpenMP, as far as was seen.
    uses_openmp: bool,
}

/// What is seen of the processes of a run.
#[derive(Default)]
pub(super) struct Watcher {
    /// What was given to the program, and must be handed on. Without it nobody is looked at.
    env: RefCell<Vec<(&'static str, OsString)>>,
    seen: RefCell<BTreeMap<u32, Stray>>,
    /// The first time that it looked, and the last.
    looked: Cell<Option<[Instant; 2]>>,
}

/// Of the time that a program runs, as much passes between two looks: those of programs with many threads take time.
const SHARE: u32 = 8;
/// At most so long.
const LONGEST: Duration = Duration::from_secs(2);

/// Variables without which nothing is recorded.
const NEEDED: [&str; 4] = [ENV_DIR, ENV_LIBRARIES, AUDIT, PRELOAD];

impl Watcher {
    /// These variables are given to the program.
    pub(super) fn expect(&self, env: &[(&'static str, OsString)]) {
        let needed = env.iter().filter(|(name, _)| NEEDED.contains(name));
        *self.env.borrow_mut() = needed.cloned().collect();
    }

    /// Looks at a process and those that it has started.
    pub(super) fn look(&self, first: u32) {
        let now = Instant::now();
        let [begin, last] = self.looked.get().unwrap_or([now; 2]);
        let pause = (now - begin) / SHARE;
        let is_early = self.looked.get().is_some() && now - last < pause.min(LONGEST);
        if is_early || self.env.borrow().is_empty() {
            return;
        }
        self.looked.set(Some([begin, now]));
        let mut seen = self.seen.borrow_mut();
        for pid in family(first) {
            let Ok(program) = std::fs::read_link(format!("/proc/{pid}/exe")) else {
                continue; // it has ended, or may not be looked at
            };
            if std::env::current_exe().is_ok_and(|own| own == program) {
                continue; // it patches what the program loads
            }
            match self.why(pid) {
                Some(why) => {
                    let known = seen.get(&pid);
                    let known = known.is_some_and(|k| k.program == program && k.uses_openmp);
                    let uses_openmp = known || has_runtime(pid) || calls_openmp(&program);
                    let stray = Stray {
                        program,
                        why,
                        uses_openmp,
                    };
                    seen.insert(pid, stray);
                }
                // Until then it was the copy of its parent, or is one that was looked at too early.
                None => drop(seen.remove(&pid)),
            }
        }
    }

    /// Who was not recorded although it uses OpenMP: each program once. `recorded`: processes that were.
    pub(super) fn strays(self, recorded: &BTreeSet<u32>) -> Vec<Stray> {
        let mut strays: Vec<Stray> = Vec::new();
        for (pid, stray) in self.seen.into_inner() {
            let is_known = strays.iter().any(|s| s.program == stray.program);
            if stray.uses_openmp && !is_known && !recorded.contains(&pid) {
                strays.push(stray);
            }
        }
        strays
    }

    fn why(&self, pid: u32) -> Option<Why> {
        let user = owner(pid)?;
        if user != getuid().as_raw() {
            return Some(Why::User(user));
        }
        let environment = match std::fs::read(format!("/proc/{pid}/environ")) {
            Ok(text) if text.is_empty() && !has_begun(pid) => return None,
            Ok(text) => text,
            // With other privileges than ours: variables that say what to load are not for it.
            Err(e) if e.kind() == ErrorKind::PermissionDenied => Vec::new(),
            Err(_) => return None,
        };
        let env = self.env.borrow();
        let lacks = |(name, value): &&(&'static str, OsString)| !has(&environment, name, value);
        let lacking: Vec<_> = env.iter().filter(lacks).map(|(n, _)| *n).collect();
        (!lacking.is_empty()).then_some(Why::Variables(lacking))
    }
}

/// Whether a program has its environment, empty or not. While the kernel loads it, it has none yet.
fn has_begun(pid: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // proc_pid_stat(5): env_start is the field 50; the one behind the name in brackets is the third.
    let fields = text.rsplit_once(')').map(|(_, rest)| rest);
    let start = fields.and_then(|f| f.split_whitespace().nth(50 - 3));
    start.is_some_and(|start| start != "0")
}

/// Whether an environment has a variable with this value, or one that it is a part of.
fn has(environment: &[u8], name: &str, value: &OsStr) -> bool {
    let mut variables = environment.split(|&b| b == 0);
    let ours = value.as_bytes();
    variables.any(|variable| {
        let theirs = variable.strip_prefix(name.as_bytes());
        let theirs = theirs.and_then(|rest| rest.strip_prefix(b"="));
        theirs.is_some_and(|theirs| theirs.windows(ours.len().max(1)).any(|w| w == ours))
            || theirs.is_some() && ours.is_empty()
    })
}

/// A process and all that it has started, and what these have.
fn family(first: u32) -> Vec<u32> {
    let mut family = vec![first];
    let mut at = 0;
    while at < family.len() && family.len() < MOST {
        let threads = std::fs::read_dir(format!("/proc/{}/task", family[at]));
        for thread in threads.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(thread.path().join("children"));
            let children = children.unwrap_or_default();
            family.extend(children.split(' ').filter_map(|n| n.parse::<u32>().ok()));
        }
        at += 1;
    }
    family
}

/// The user that a process acts for.
fn owner(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Whether a process has an OpenMP runtime loaded.
fn has_runtime(pid: u32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let files = maps.lines().filter_map(|l| l.rsplit('/').next());
    let mut files = files.filter(|f| f.contains(".so"));
    files.any(|f| RUNTIMES.iter().any(|r| f.starts_with(r)))
}

/// Whether a file is a program whose strings have the names of OpenMP functions.
pub(super) fn calls_openmp(file: &Path) -> bool {
    /// As much is read at a time; names don't get lost between two pieces.
    const PIECE: usize = 1 << 20;
    const OVERLAP: usize = 16;
    const MOST: u64 = 256 << 20;
    let Ok(file) = std::fs::File::open(file) else {
        return false;
    };
    if !file.metadata().is_ok_and(|m| m.is_file()) {
        return false;
    }
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < MOST {
        let Ok(read) = file.read_at(&mut piece, at) else {
            return false;
        };
        let piece = &piece[..read];
        if at == 0 && !piece.starts_with(b"\x7fELF") {
            return false;
        }
        let has = |name: &&[u8]| memchr::memmem::find(piece, name).is_some();
        if CALLS.iter().any(has) {
            return true;
        }
        if read <= OVERLAP {
            return false;
        }
        at += (read - OVERLAP) as u64;
    }
    false
}

impl Stray {
    /// What kept the recording from it. `folder`: of the run.
    pub(super) fn told(&self, folder: &Path) -> String {
        let program = self.program.display();
        match &self.why {
            Why::Variables(names) => format!(
                "{program} was started without {}, which ompfuse sets (env -i, sudo, and programs that choose an environment for what \
                 they start, drop them); have them handed on, or record it by itself: ompfuse record -- {program}",
                names.join(", ")
            ),
            Why::User(user) => format!(
                "{program} ran as user {user}, who can't write into {}; record it as that user",
                folder.display()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_looked_for_with_their_values() {
        let environment = b"A=1\0LD_AUDIT=/x.so:/ours.so\0B=\0";
        for (name, value, is_there) in [
            ("A", "1", true),
            ("A", "2", false),
            ("LD_AUDIT", "/ours.so", true),
            ("LD_AUDIT", "/other.so", false),
            ("B", "", true),
            ("C", "", false),
        ] {
            assert_eq!(has(environment, name, value.as_ref()), is_there, "{name}");
        }
    }

    #[test]
    fn who_dropped_the_variables_is_seen() {
        let env = [(ENV_DIR, OsString::from("x"))];
        let seen = |with: bool| {
            let mut command = std::process::Command::new("/bin/sleep");
            command.arg("100");
            if with {
                command.env(ENV_DIR, "x");
            }
            let mut child = command.spawn().unwrap();
            while !has_begun(child.id()) {
                std::thread::yield_now();
            }
            let watcher = Watcher::default();
            watcher.expect(&env);
            watcher.look(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            watcher.seen.into_inner().into_values().next()
        };
        assert_eq!(seen(true), None);
        let stray = seen(false).unwrap();
        assert_eq!(stray.why, Why::Variables(vec![ENV_DIR]));
        assert!(!stray.uses_openmp);
    }
}
