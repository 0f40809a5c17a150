//! Whether a variant of a program does what the original does: by its output, or by a command that judges it.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// How two outputs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Difference {
    /// Not at all.
    None,
    /// In digits: of times, or of sums in another order.
    Digits,
    /// In more.
    More,
}

/// What is known of a variant's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Judged {
    /// It is the original's.
    Equal,
    /// Only digits differ, as they do between runs of the original.
    EqualButDigits,
    /// `--check` accepts it.
    Checked,
    /// It differs, or `--check` refuses it.
    Differs,
    /// Digits differ, and those of the original's own runs don't.
    DigitsDiffer,
    /// The exit status is another one.
    Failed,
    /// The original's own outputs differ.
    Unknown,
}

impl Judged {
    pub(super) fn is_good(self) -> bool {
        matches!(
            self,
            Judged::Equal | Judged::EqualButDigits | Judged::Checked
        )
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Judged::Equal => "equal",
            Judged::EqualButDigits => "equal but for digits, as the original's own",
            Judged::Checked => "accepted by --check",
            Judged::Differs => "differs",
            Judged::DigitsDiffer => "other digits",
            Judged::Failed => "another exit status",
            Judged::Unknown => "the original's own differ: --check",
        }
    }
}

/// Compares two files.
pub(super) fn difference(a: &Path, b: &Path) -> Result<Difference> {
    let read = |path: &Path| {
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (a, b) = (read(a)?, read(b)?);
    Ok(match a == b {
        true => Difference::None,
        false if without_numbers(&a) == without_numbers(&b) => Difference::Digits,
        false => Difference::More,
    })
}

/// A text with one sign in the place of each number, and one blank in that of several.
fn without_numbers(text: &[u8]) -> Vec<u8> {
    let mut rest = vec![];
    let mut in_number = false;
    for (at, &byte) in text.iter().enumerate() {
        let before_digit = text.get(at + 1).is_some_and(u8::is_ascii_digit);
        let is_part = byte.is_ascii_digit()
            || in_number && (byte == b'.' || byte == b'e' || byte == b'E')
            || in_number && matches!(byte, b'+' | b'-') && matches!(text[at - 1], b'e' | b'E')
            || matches!(byte, b'-' | b'+' | b'.') && before_digit;
        if is_part {
            if !in_number {
                rest.push(b'#');
            }
        } else if !(byte == b' ' && rest.last() == Some(&b' ')) {
            rest.push(byte);
        }
        in_number = is_part;
    }
    rest
}

/// How the outputs of a variant are judged.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    /// A command that gets an output as its standard input.
    pub(super) check: Option<&'a str>,
    /// Of the original's own runs.
    pub(super) own: Difference,
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
        Ok(match (self.own, difference(original, output)?) {
            (Difference::More, _) => Judged::Unknown,
            (_, Difference::None) => Judged::Equal,
            (Difference::Digits, Difference::Digits) => Judged::EqualButDigits,
            (Difference::None, Difference::Digits) => Judged::DigitsDiffer,
            (_, Difference::More) => Judged::Differs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::without_numbers;

    #[test]
    fn numbers_are_one_sign() {
        let of = |text: &str| String::from_utf8(without_numbers(text.as_bytes())).unwrap();
        assert_eq!(of("time: 1.25e-03 s"), "time: # s");
        assert_eq!(of("time:    12 s"), "time: # s");
        assert_eq!(of("x = -0.5, y"), "x = #, y");
        assert_eq!(of("mesh-a done."), "mesh-a done.");
    }
}
