//! Whether a variant of a program does what the original does: by its output, or by a command that judges it.

use anyhow::{Context, Result};
use ompfuse_account::model::Judged;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// How two outputs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Difference {
    /// In these numbers, counted from 0: of times, or of sums in another order. None: not at all.
    Numbers(BTreeSet<usize>),
    /// In more.
    More,
}

impl Difference {
    /// Of both.
    pub(super) fn and(self, other: Difference) -> Difference {
        match (self, other) {
            (Difference::Numbers(a), Difference::Numbers(b)) => Difference::Numbers(&a | &b),
            _ => Difference::More,
        }
    }
}

/// Compares two files.
pub(super) fn difference(a: &Path, b: &Path) -> Result<Difference> {
    let read = |path: &Path| {
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
    };
    Ok(between(&read(a)?, &read(b)?))
}

fn between(a: &[u8], b: &[u8]) -> Difference {
    if a == b {
        return Difference::Numbers(BTreeSet::new());
    }
    let ((rest, numbers), (other_rest, others)) = (parts(a), parts(b));
    let pairs = numbers.iter().zip(&others).enumerate();
    let differing: BTreeSet<usize> = pairs.filter(|(_, (a, b))| a != b).map(|(n, _)| n).collect();
    match rest == other_rest && !differing.is_empty() {
        true => Difference::Numbers(differing),
        false => Difference::More,
    }
}

/// A text with one sign in the place of each number, and one blank in that of several; and the numbers.
fn parts(text: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (mut rest, mut numbers) = (vec![], vec![]);
    let mut number = vec![];
    for (at, &byte) in text.iter().enumerate() {
        let in_number = !number.is_empty();
        let before_digit = text.get(at + 1).is_some_and(u8::is_ascii_digit);
        let is_part = byte.is_ascii_digit()
            || in_number && (byte == b'.' || byte == b'e' || byte == b'E')
            || in_number && matches!(byte, b'+' | b'-') && matches!(text[at - 1], b'e' | b'E')
            || matches!(byte, b'-' | b'+' | b'.') && before_digit;
        if is_part {
            number.push(byte);
            continue;
        }
        if in_number {
            rest.push(b'#');
            numbers.push(std::mem::take(&mut number));
        }
        if !(byte == b' ' && rest.last() == Some(&b' ')) {
            rest.push(byte);
        }
    }
    if !number.is_empty() {
        rest.push(b'#');
        numbers.push(number);
    }
    (rest, numbers)
}

/// How the outputs of a variant are judged.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    /// A command that gets an output as its standard input.
    pub(super) check: Option<&'a str>,
    /// Of the original's own runs.
    pub(super) own: Difference,
    /// Of the files that they have written.
    pub(super) own_files: Difference,
}

impl Judge<'_> {
    /// Judges an output beside one of the original's.
    pub(super) fn judge(&self, original: &Path, output: &Path) -> Result<Judged> {
        if let Some(check) = self.check {
            let file = File::open(output);
            let file = file.with_context(|| format!("cannot read {}", output.display()))?;
            let mut shell = Command::new("sh");
            shell.args(["-c", check]).stdin(Stdio::from(file));
            let status = shell.stdout(Stdio::null()).status();
            let status = status.context("cannot start sh for --check")?;
            return Ok(match status.success() {
                true => Judged::Checked,
                false => Judged::Differs,
            });
        }
        compared(&self.own, original, output)
    }

    /// Judges gathered files beside the original's.
    pub(super) fn judge_files(&self, original: &Path, files: &Path) -> Result<Judged> {
        compared(&self.own_files, original, files)
    }
}

/// `own`: how the original's own differ.
fn compared(own: &Difference, original: &Path, other: &Path) -> Result<Judged> {
    Ok(match (own, difference(original, other)?) {
        (Difference::More, _) => Judged::Unknown,
        (_, Difference::More) => Judged::Differs,
        (_, Difference::Numbers(found)) if found.is_empty() => Judged::Equal,
        (Difference::Numbers(own), Difference::Numbers(found)) => match found.is_subset(own) {
            true => Judged::EqualButDigits,
            false => Judged::DigitsDiffer,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{Difference, between, parts};

    #[test]
    fn numbers_are_one_sign() {
        let of = |text: &str| String::from_utf8(parts(text.as_bytes()).0).unwrap();
        assert_eq!(of("time: 1.25e-03 s"), "time: # s");
        assert_eq!(of("time:    12 s"), "time: # s");
        assert_eq!(of("x = -0.5, y"), "x = #, y");
        assert_eq!(of("mesh-a done."), "mesh-a done.");
        assert_eq!(of("sum 5"), "sum #");
    }

    #[test]
    fn numbers_differ_by_place() {
        let of = |a: &str, b: &str| between(a.as_bytes(), b.as_bytes());
        let numbers = |all: &[usize]| Difference::Numbers(all.iter().copied().collect());
        assert_eq!(of("sum 5, 1.5 s", "sum 5, 1.25 s"), numbers(&[1]));
        assert_eq!(of("sum 5, 1.5 s", "sum 6, 1.5 s"), numbers(&[0]));
        assert_eq!(of("sum 5", "sum 5"), numbers(&[]));
        assert_eq!(of("sum 5", "sum  5"), Difference::More);
        assert_eq!(of("sum 5", "sums 5"), Difference::More);
    }
}
