//! What can be told of a process that runs already.

use super::{Check, Diagnosis, State};
use crate::sampling::Files;
use crate::sampling::places::is_runtime;
use crate::{attached, processors, sampling};
use ompfuse_account::units::several;
use std::collections::BTreeSet;

/// Looks at a process; nothing of it changes.
pub(crate) fn diagnose(pid: u32) -> Diagnosis {
    let checks = match attached::program_of(pid) {
        Err(error) => {
            let found = crate::one_line(&error);
            vec![Check::new("process", State::Missing, found).needed()]
        }
        Ok(exe) => {
            let threads = sampling::threads(pid);
            let processors = processors::allowed_of(pid).map_or(0, |all| all.len());
            let all = format!(
                "{}, {}, may run on {}",
                exe.display(),
                several(threads.len() as u64, "thread"),
                several(processors as u64, "processor")
            );
            vec![
                Check::new("process", State::Ok, all),
                samples(pid),
                stopped(pid),
                files(pid),
            ]
        }
    };
    Diagnosis {
        can_record: checks.iter().all(|check| !check.is_lacking()),
        checks,
    }
}

fn samples(pid: u32) -> Check {
    let name = "samples";
    match sampling::refusal_of(pid) {
        None => Check::new(name, State::Ok, "perf events on its threads")
            .means("shares by region, function and line"),
        Some(refusal) => {
            let check = Check::new(name, State::Missing, refusal.reason).needed();
            match refusal.remedy {
                Some(remedy) => check.helps(remedy),
                None => check,
            }
        }
    }
}

/// Whether its threads may be asked where they have stopped.
fn stopped(pid: u32) -> Check {
    let name = "stopped threads";
    match std::fs::read(format!("/proc/{pid}/syscall")) {
        Ok(_) => Check::new(name, State::Ok, "system calls and stacks can be read")
            .means("what threads wait for is told"),
        Err(error) => Check::new(
            name,
            State::Limited,
            format!("/proc/{pid}/syscall: {error}"),
        )
        .means("how long threads wait is told, not for what")
        .helps("sysctl kernel.yama.ptrace_scope=0 as the process's user, or root"),
    }
}

/// Whether the files with its code are there, and which runtime it has.
fn files(pid: u32) -> Check {
    let name = "files";
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let code = maps.lines().filter(|line| {
        let rights = line.split_ascii_whitespace().nth(1);
        rights.is_some_and(|rights| rights.contains('x'))
    });
    let paths: BTreeSet<&str> = code
        .filter_map(|line| Some(&line[line.find('/')?..]))
        .collect();
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let runtimes = paths.iter().map(|p| file(p));
    let runtimes: Vec<String> = runtimes.filter(|name| is_runtime(name)).collect();
    let runtime = match &runtimes[..] {
        [] => "no OpenMP runtime beside the program".to_owned(),
        all => all.join(", "),
    };
    let found = format!("{} with code; {runtime}", paths.len());
    let files = match Files::of(&[pid]) {
        Ok(files) => files,
        Err(error) => return Check::new(name, State::Missing, crate::one_line(&error)).needed(),
    };
    match paths.iter().find(|path| path.ends_with(" (deleted)")) {
        Some(gone) => Check::new(name, State::Limited, format!("{found}; {gone}"))
            .means("code of a file that was replaced or removed since has no names")
            .helps("start the program again"),
        None if files.is_foreign() => Check::new(name, State::Ok, found)
            .means("they are another user's or a container's: debug information is found by build id only, sources aren't read"),
        None => Check::new(name, State::Ok, found),
    }
}
