//! `--select` and `--skip`: which regions get probes.

use anyhow::{Result, bail};
use ompfuse_format::Construct;
use ompfuse_format::site::SiteInfo;
use std::str::FromStr;

/// The options, as several commands take them.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SelectArgs {
    /// Patch only these regions: a construct's name (`task`), a function (`solve_*`), a source line (`lu.c:120`)
    /// or an address (`0x4011a6`)
    #[arg(long, value_name = "S")]
    pub(crate) select: Vec<Pattern>,
    /// Leave these regions alone; as --select
    #[arg(long, value_name = "S")]
    pub(crate) skip: Vec<Pattern>,
}

/// One `--select` or `--skip`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// As the user wrote it.
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Construct(Construct),
    Address(u64),
    Line { file: String, line: u32 },
    Function(String),
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        let kind = if let Some(digits) = text.strip_prefix("0x") {
            Kind::Address(
                u64::from_str_radix(digits, 16).map_err(|_| "no hexadecimal address".to_owned())?,
            )
        } else if let Some(&construct) = Construct::ALL.iter().find(|c| c.name() == text) {
            Kind::Construct(construct)
        } else if let Some((file, line)) = text.rsplit_once(':')
            && let Ok(line) = line.parse()
        {
            Kind::Line {
                file: file.to_owned(),
                line,
            }
        } else if text.is_empty() {
            return Err("empty; give a construct, a function, FILE:LINE or an address".to_owned());
        } else {
            Kind::Function(text.to_owned())
        };
        Ok(Pattern {
            text: text.to_owned(),
            kind,
        })
    }
}

impl Pattern {
    /// Whether a site is meant.
    fn matches(&self, site: &SiteInfo) -> bool {
        match &self.kind {
            Kind::Construct(c) => site.construct == *c,
            Kind::Address(a) => site.address.0 == *a,
            Kind::Line { file, line } => site
                .source
                .as_ref()
                .is_some_and(|s| s.line == *line && is_path_suffix(file, &s.file)),
            Kind::Function(glob) => site
                .function
                .as_ref()
                .is_some_and(|f| matches_glob(glob, f)),
        }
    }
}

/// For each site, whether it is to be patched. A region is meant if its begin is, or if an address names one of its
/// sites; all its sites share its fate.
pub(crate) fn selected(args: &SelectArgs, sites: &[SiteInfo]) -> Result<Vec<bool>> {
    let regions = |pattern: &Pattern| -> Result<Vec<bool>> {
        let mut is_meant = vec![false; sites.len()];
        for site in sites {
            let begin = site.region as usize;
            let by_address = matches!(pattern.kind, Kind::Address(_)) && pattern.matches(site);
            if by_address || sites.get(begin).is_some_and(|b| pattern.matches(b)) {
                *is_meant.get_mut(begin).unwrap_or(&mut false) = true;
            }
        }
        if !is_meant.contains(&true) {
            bail!(
                "nothing in the program matches `{}`; `ompfuse scan` lists what there is",
                pattern.text
            );
        }
        Ok(is_meant)
    };
    let mut chosen = vec![args.select.is_empty(); sites.len()];
    for pattern in &args.select {
        regions(pattern)?
            .iter()
            .zip(&mut chosen)
            .for_each(|(&meant, chosen)| *chosen |= meant);
    }
    for pattern in &args.skip {
        regions(pattern)?
            .iter()
            .zip(&mut chosen)
            .for_each(|(&meant, chosen)| *chosen &= !meant);
    }
    Ok(sites
        .iter()
        .map(|s| chosen.get(s.region as usize).copied().unwrap_or(false))
        .collect())
}

impl SelectArgs {
    /// Whether everything is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.select.is_empty() && self.skip.is_empty()
    }

    /// The options in one line: equal for equal selections.
    pub(crate) fn fingerprint(&self) -> String {
        let join = |p: &[Pattern]| {
            p.iter()
                .map(|p| p.text.as_str())
                .collect::<Vec<_>>()
                .join("\x1f")
        };
        format!("select={} skip={}", join(&self.select), join(&self.skip))
    }
}

/// Whether a path ends with another one, whole components only.
fn is_path_suffix(suffix: &str, path: &str) -> bool {
    path.strip_suffix(suffix)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('/') || suffix.starts_with('/'))
}

/// Shell-like matching of a whole name: `*` is any text, `?` any character.
fn matches_glob(glob: &str, text: &str) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let (mut g, mut t) = (0, 0);
    let mut star = None; // the last star, and the text position up to which it has eaten
    while t < text.len() {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, t));
                g += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => {
                g += 1;
                t += 1;
            }
            _ => {
                let Some((at, eaten)) = star else {
                    return false;
                };
                star = Some((at, eaten + 1));
                (g, t) = (at + 1, eaten + 1);
            }
        }
    }
    glob[g..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_format::site::{Edge, HexAddress, Mechanism, Outcome, Source};

    fn site(id: u32, region: u32, construct: Construct, function: &str, line: u32) -> SiteInfo {
        SiteInfo {
            id,
            address: HexAddress(0x1000 + u64::from(id)),
            function: Some(function.to_owned()),
            construct,
            edge: if id == region { Edge::Begin } else { Edge::End },
            region,
            entry: None,
            mechanism: Mechanism::CallSite,
            outlined: None,
            source: Some(Source {
                file: "/src/lu.c".to_owned(),
                line,
            }),
            detail: None,
            outcome: Outcome::Patchable,
            reason: None,
        }
    }

    fn sites() -> Vec<SiteInfo> {
        vec![
            site(0, 0, Construct::Loop, "solve", 10),
            site(1, 0, Construct::Loop, "solve.part.0", 12),
            site(2, 2, Construct::Task, "ns::walk(int)", 20),
            site(3, 3, Construct::Barrier, "solve", 30),
        ]
    }

    fn chosen(select: &[&str], skip: &[&str]) -> Result<Vec<bool>> {
        let patterns = |p: &[&str]| p.iter().map(|p| p.parse().unwrap()).collect();
        selected(
            &SelectArgs {
                select: patterns(select),
                skip: patterns(skip),
            },
            &sites(),
        )
    }

    #[test]
    fn a_region_is_chosen_as_a_whole() {
        assert_eq!(chosen(&[], &[]).unwrap(), [true; 4]);
        assert_eq!(chosen(&["loop"], &[]).unwrap(), [true, true, false, false]);
        assert_eq!(
            chosen(&["0x1001"], &[]).unwrap(),
            [true, true, false, false]
        );
        assert_eq!(
            chosen(&["lu.c:10", "src/lu.c:20"], &[]).unwrap(),
            [true, true, true, false]
        );
        assert_eq!(
            chosen(&["sol*"], &["lu.c:10"]).unwrap(),
            [false, false, false, true]
        );
        assert_eq!(chosen(&[], &["ns::*"]).unwrap(), [true, true, false, true]);
    }

    #[test]
    fn what_matches_nothing_is_an_error() {
        let message = format!("{}", chosen(&[], &["solve.part.0"]).unwrap_err());
        assert_eq!(
            message,
            "nothing in the program matches `solve.part.0`; `ompfuse scan` lists what there is"
        );
        assert!(chosen(&["u.c:10"], &[]).is_err());
        assert!("0xzz".parse::<Pattern>().is_err() && "".parse::<Pattern>().is_err());
    }

    #[test]
    fn globs() {
        for (glob, text) in [
            ("a", "a"),
            ("*", ""),
            ("a*c", "abbc"),
            ("a*b*", "aab"),
            ("?b", "ab"),
            ("a**", "a"),
        ] {
            assert!(matches_glob(glob, text), "{glob} {text}");
        }
        for (glob, text) in [
            ("a", "b"),
            ("", "a"),
            ("a*c", "abcd"),
            ("?", ""),
            ("a", "ab"),
        ] {
            assert!(!matches_glob(glob, text), "{glob} {text}");
        }
    }
}
