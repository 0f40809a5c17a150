//! Names of code that a program has made while it ran. Such programs tell profilers in `/tmp/perf-PID.map` (the kernel's
//! `tools/perf/Documentation/jit-interface.txt`): a line for each function, with begin and size in hexadecimal, and a name.

use ompfuse_fuse::samples::SampledPlace;
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// No such file that is read is longer.
const LONGEST: u64 = 64 << 20;

/// Names addresses in code that this process has made. `object`: what stands for the code's file.
pub(super) fn names(pid: u32, addresses: &BTreeSet<u64>, object: &str) -> Vec<SampledPlace> {
    let text = map(pid).unwrap_or_default();
    let mut functions: Vec<(u64, u64, &str)> = text.lines().filter_map(function).collect();
    functions.sort_by_key(|(begin, ..)| *begin); // stable: of one place the last one is meant
    let name = |address: u64| {
        let behind = functions.partition_point(|(begin, ..)| *begin <= address);
        let (begin, size, name) = *functions.get(behind.checked_sub(1)?)?;
        (address - begin < size).then(|| name.to_owned())
    };
    let place = |address: &u64| SampledPlace {
        function: name(*address),
        object: Some(object.to_owned()),
        ..SampledPlace::default()
    };
    addresses.iter().map(place).collect()
}

fn function(line: &str) -> Option<(u64, u64, &str)> {
    let mut words = line.splitn(3, ' ');
    let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
    let (begin, size) = (number()?, number()?);
    Some((begin, size, words.next()?.trim()))
}

/// The text of the process's map. Anybody may write files there: it must be this user's own, and no link.
fn map(pid: u32) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(format!("/tmp/perf-{pid}.map"), flags, Mode::empty()).ok()?;
    let file = File::from(opened);
    let metadata = file.metadata().ok()?;
    let is_own = metadata.uid() == geteuid().as_raw();
    if !metadata.is_file() || !is_own || metadata.len() > LONGEST {
        return None;
    }
    let mut bytes = vec![];
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_begin_size_and_name() {
        let lines = [
            "7f00 10 lambda at x:3",
            "0x7f10 0x8 f",
            "7f10 f",
            "",
            "zz 1 f",
        ];
        let expected = [
            Some((0x7f00, 0x10, "lambda at x:3")),
            Some((0x7f10, 8, "f")),
            None,
            None,
            None,
        ];
        assert_eq!(lines.map(function), expected);
    }
}
