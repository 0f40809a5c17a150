//! Recording a program with several numbers of threads.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What stands for the number of threads in the program's arguments.
const PLACEHOLDER: &[u8] = b"{threads}";

/// The largest number: more than any machine has processors.
const LARGEST: u32 = 1 << 16;
/// Numbers in a list.
const MOST: usize = 256;

/// Numbers of threads, ascending, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadList(pub(crate) Vec<u32>);

/// A list of numbers and ranges of numbers: `1,2,4,8`, `1-8`.
pub(super) fn parse(text: &str) -> Result<ThreadList, String> {
    let wrong = || "numbers of threads are needed, as 1,2,4,8 or 1-8".to_owned();
    let number = |text: &str| match text.trim().parse() {
        Ok(n @ 1..=LARGEST) => Ok(n),
        Ok(_) => Err(format!("a number from 1 to {LARGEST} is needed")),
        Err(_) => Err(wrong()),
    };
    let mut list = vec![];
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(format!("{part} ends before it begins"));
        }
        if list.len() + (last - first) as usize >= MOST {
            return Err(format!("these are more than {MOST} numbers of threads"));
        }
        list.extend(first..=last);
    }
    list.sort_unstable();
    list.dedup();
    Ok(ThreadList(list))
}

/// A program's arguments with this number of threads.
pub(super) fn with_threads(args: &[OsString], threads: u32) -> Vec<OsString> {
    args.iter().map(|arg| replaced(arg, threads)).collect()
}

fn replaced(arg: &OsStr, threads: u32) -> OsString {
    let mut rest = arg.as_bytes();
    let mut made = vec![];
    while let Some(at) = memchr::memmem::find(rest, PLACEHOLDER) {
        made.extend_from_slice(&rest[..at]);
        made.extend_from_slice(threads.to_string().as_bytes());
        rest = &rest[at + PLACEHOLDER.len()..];
    }
    made.extend_from_slice(rest);
    OsString::from_vec(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let list = |text: &str| parse(text).map(|l| l.0);
        assert_eq!(list("1,2,4,8"), Ok(vec![1, 2, 4, 8]));
        assert_eq!(list("4, 1-3,2"), Ok(vec![1, 2, 3, 4]));
        for wrong in ["", "0", "1,,2", "3-1", "a", "-2", "1-", "70000", "1-9999"] {
            assert!(list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments_may_hold_the_number() {
        let args = ["-n{threads}", "x", "{threads}:{threads}", "{thread}"];
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        let wanted: Vec<OsString> = ["-n12", "x", "12:12", "{thread}"]
            .iter()
            .map(Into::into)
            .collect();
        assert_eq!(with_threads(&args, 12), wanted);
    }
}
