//! Filter files: selections that are kept.
//!
//! ```text
//! # what costs more to measure than it tells
//! skip 0x4011a6        # loop in solve, lu.c:120
//! select lib:liblu.so
//! ```

use super::Selector;
use crate::input;
use ompfuse_fuse::names::quoted;

/// The lines of a filter file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(super) select: Vec<Selector>,
    pub(super) skip: Vec<Selector>,
}

/// Reads the file of a `--filter`.
pub(super) fn read(path: &str) -> Result<Filter, String> {
    let text = input::text(path.as_ref()).map_err(|e| format!("cannot read {}: {e}", path))?;
    parse(path, &text)
}

/// A line without its comment.
pub(crate) fn line(line: &str) -> &str {
    // Names of functions may hold a `#`, but not behind a blank.
    let comment = line.find(" #").or_else(|| line.find("\t#"));
    let line = line[..comment.unwrap_or(line.len())].trim();
    if line.starts_with('#') { "" } else { line }
}

fn parse(path: &str, text: &str) -> Result<Filter, String> {
    let mut filter = Filter::default();
    for (number, text) in (1..).zip(text.lines()) {
        let error = |what: &str| Err(format!("{path}:{number}: {what}"));
        let line = line(text);
        if line.is_empty() {
            continue;
        }
        let Some((word, rest)) = line.split_once([' ', '\t']) else {
            return error(&format!(
                "`{}` is neither `select S` nor `skip S`",
                quoted(line)
            ));
        };
        let pattern = Selector::of_line(rest.trim(), &format!("{path}:{number}"))?;
        match word {
            "select" => filter.select.push(pattern),
            "skip" => filter.skip.push(pattern),
            _ => {
                return error(&format!(
                    "`{}` is neither `select S` nor `skip S`",
                    quoted(line)
                ));
            }
        }
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_comments() {
        let filter = parse(
            "f",
            "# all\n\nselect task # those\n\tskip\t0x10\nskip operator#1 \n",
        )
        .unwrap();
        let texts = |p: &[Selector]| p.iter().map(|p| p.text().to_owned()).collect::<Vec<_>>();
        assert_eq!(texts(&filter.select), ["task"]);
        assert_eq!(texts(&filter.skip), ["0x10", "operator#1"]);
        assert_eq!(filter.skip[0].to_string(), "`0x10` (f:4)");
        assert_eq!(parse("f", "").unwrap(), Filter::default());
    }

    #[test]
    fn errors_name_the_line() {
        for (text, message) in [
            ("task", "f:1: `task` is neither `select S` nor `skip S`"),
            (
                "\ndrop task",
                "f:2: `drop task` is neither `select S` nor `skip S`",
            ),
            ("skip 0xzz", "f:1: `0xzz`: no hexadecimal address"),
        ] {
            assert_eq!(parse("f", text).unwrap_err(), message);
        }
        assert!(
            read("/nonexistent/f")
                .unwrap_err()
                .starts_with("cannot read ")
        );
    }
}
