//! `report --region`.

use crate::page;
use crate::select::{Selector, means_region, plain};
use anyhow::{Context, Result, bail};
use ompfuse_account::similar::did_you_mean;
use ompfuse_account::{Region, Report};
use ompfuse_report::TextOptions;
use ompfuse_report::view::text::detail::{Beside, detail, name, rows_by};
use std::path::Path;
use std::str::FromStr;

/// Regions that a message names.
const NAMED: usize = 5;

/// The region that is asked for.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    /// By its number in the report.
    Number(u32),
    /// By a selector.
    Selector(Selector),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        match text.strip_prefix('#').unwrap_or(text).parse() {
            Ok(number) => Ok(Wanted::Number(number)),
            Err(_) => text.parse().map(Wanted::Selector),
        }
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wanted::Number(number) => write!(f, "#{number}"),
            Wanted::Selector(pattern) => write!(f, "{pattern}"),
        }
    }
}

/// The text about one region. `input`: where its records are, if they are at hand.
pub(super) fn text(
    report: &Report,
    wanted: &Wanted,
    input: Option<&Path>,
    options: TextOptions,
) -> Result<String> {
    let rows = rows_by(report, options.by);
    let id = find(report, &rows, wanted)?.id;
    let units = match input {
        Some(input) => page::units(report, input)?,
        None => None,
    };
    let sources = page::sources(report, input.and_then(crate::load::begun_at));
    let beside = Beside {
        units: units.as_ref(),
        sources: &sources,
    };
    detail(report, id, beside, options).with_context(|| format!("there is no region #{id}"))
}

fn find<'r>(report: &Report, rows: &'r [Region], wanted: &Wanted) -> Result<&'r Region> {
    let is_it = |region: &&Region| match wanted {
        Wanted::Number(number) => region.id == *number,
        Wanted::Selector(pattern) => means_region(pattern, report, region),
    };
    let found: Vec<&Region> = rows.iter().filter(is_it).collect();
    match found[..] {
        [one] => Ok(one),
        [] => {
            let known = rows.iter().flat_map(names);
            let meant = did_you_mean(wanted.to_string().trim_matches('`'), known);
            bail!("no region is {wanted}{meant}; `ompfuse report` lists them with their numbers")
        }
        _ => {
            let named: Vec<String> = found.iter().take(NAMED).map(|r| name(r)).collect();
            let more = match found.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            bail!(
                "{wanted} means {} regions, {}{more}; give the number of one",
                found.len(),
                named.join(", ")
            )
        }
    }
}

/// What a region can be asked for by: its function, its line, its construct.
fn names(region: &Region) -> impl Iterator<Item = String> {
    let function = region.function.as_deref();
    let function = function.map(plain);
    let line = region.source.as_ref().map(|source| {
        let file = source.file.rsplit('/').next().unwrap_or(&source.file);
        format!("{file}:{}", source.line)
    });
    let construct = region.construct.map(|c| c.name().to_owned());
    [function, line, construct].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_selectors() {
        for text in ["3", "#3"] {
            assert!(matches!(text.parse(), Ok(Wanted::Number(3))), "{text}");
        }
        assert!(matches!("task".parse(), Ok(Wanted::Selector(_))));
        assert!("0xzz".parse::<Wanted>().is_err());
    }
}
