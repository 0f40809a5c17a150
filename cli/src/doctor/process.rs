//! What the system allows processes.

use super::{Check, State};
use crate::{memory, processors};
use ompfuse_account::units::bytes;
use ompfuse_format::refused::STATUS_FILE;
use rustix::process::{Resource, getrlimit};

/// Descriptors of a program with many threads and a full set of events, with room for its own.
const DESCRIPTORS: u64 = 1024;
/// Less memory makes reading large runs slow.
const MEMORY: u64 = 256 << 20;

pub(super) fn all() -> Vec<Check> {
    vec![
        tracing(),
        filter(),
        descriptors(),
        locked(),
        file_size(),
        available(),
        quota(),
        preloaded(),
    ]
}

/// Whether processes may be attached to.
fn tracing() -> Check {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    let found = match scope.as_deref().map(str::trim) {
        None => "no Yama in this kernel".to_owned(),
        Some(scope) => format!("kernel.yama.ptrace_scope is {scope}"),
    };
    Check::new("ptrace", State::Ok, found)
        .means("ompfuse traces no process; only a debugger needs more")
}

/// Whether a filter decides about system calls, as in containers.
fn filter() -> Check {
    let status = std::fs::read_to_string(STATUS_FILE).unwrap_or_default();
    let mode = status.lines().find_map(|l| l.strip_prefix("Seccomp:"));
    match mode.map(str::trim) {
        Some("2") => Check::new(
            "seccomp",
            State::Limited,
            "a filter decides about system calls",
        )
        .means("containers have one, and most refuse perf_event_open")
        .helps("run the container with --cap-add PERFMON --security-opt seccomp=unconfined"),
        _ => Check::new("seccomp", State::Ok, "no filter"),
    }
}

fn limit(resource: Resource) -> Option<u64> {
    getrlimit(resource).current
}

fn descriptors() -> Check {
    let name = "open files";
    match limit(Resource::Nofile) {
        Some(most) if most < DESCRIPTORS => {
            Check::new(name, State::Limited, format!("at most {most}"))
                .means("each counter of each thread takes one: threads beyond that have no counts")
                .helps("ulimit -n 4096")
        }
        Some(most) => Check::new(name, State::Ok, format!("at most {most}")),
        None => Check::new(name, State::Ok, "no limit"),
    }
}

/// Counters that are read without a system call need locked pages.
fn locked() -> Check {
    let name = "locked memory";
    let own = std::fs::read_to_string("/proc/sys/kernel/perf_event_mlock_kb").ok();
    let of_perf = own.and_then(|kb| kb.trim().parse::<u64>().ok());
    let of_perf = of_perf.map_or_else(String::new, |kb| format!(", {kb} kB more for perf"));
    match limit(Resource::Memlock) {
        Some(most) => Check::new(name, State::Ok, format!("{}{of_perf}", bytes(most))).means(
            "each counter of a thread takes two pages; without them it is read by system calls",
        ),
        None => Check::new(name, State::Ok, "no limit"),
    }
}

fn file_size() -> Check {
    let name = "file size";
    match limit(Resource::Fsize) {
        Some(most) => Check::new(name, State::Limited, format!("at most {}", bytes(most)))
            .means("records beyond that are lost, which the report says")
            .helps("ulimit -f unlimited"),
        None => Check::new(name, State::Ok, "no limit"),
    }
}

fn available() -> Check {
    let free = memory::available();
    let found = format!("{} for ompfuse", bytes(free));
    match free < MEMORY {
        true => Check::new("memory", State::Limited, found)
            .means("large runs are read in several passes")
            .helps("end other programs, or give the container more"),
        false => Check::new("memory", State::Ok, found),
    }
}

/// How much processor time programs get.
fn quota() -> Check {
    let name = "processors";
    let Some(allowed) = processors::allowed().map(|list| list.len()) else {
        return Check::new(name, State::Ok, "not known");
    };
    match processors::quota_of_group() {
        Some(quota) if quota < allowed as f64 => Check::new(
            name,
            State::Limited,
            format!("a control group's quota is the time of {quota:.2} of {allowed}"),
        )
        .means("threads beyond the quota are stopped again and again, which looks like waiting")
        .helps(format!(
            "OMP_NUM_THREADS={:.0}, or a larger quota (docker run --cpus)",
            quota.floor().max(1.0)
        )),
        Some(_) => Check::new(
            name,
            State::Ok,
            format!("{allowed}; the control group's quota allows all"),
        ),
        None => Check::new(name, State::Ok, format!("{allowed}, without quota")),
    }
}

/// Variables that change what programs load.
fn preloaded() -> Check {
    let set = |name: &&str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let set: Vec<&str> = ["LD_PRELOAD", "LD_AUDIT"].into_iter().filter(set).collect();
    match set.is_empty() {
        true => Check::new(
            "loader",
            State::Ok,
            "neither LD_PRELOAD nor LD_AUDIT is set",
        ),
        false => Check::new(
            "loader",
            State::Limited,
            format!("{} set", set.join(" and ")),
        )
        .means("other tools are loaded into recorded programs too, and their cost is in the times")
        .helps(format!("unset {}", set.join(" "))),
    }
}
