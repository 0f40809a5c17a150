//! The JSON of `ompfuse scan`.

use crate::command;
use crate::fixture::ExpectedRegion;
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What `scan --format json` prints.
#[derive(Debug, Deserialize)]
pub struct Scan {
    /// The binary.
    pub binary: Binary,
    /// Its sites.
    pub sites: Vec<Site>,
}

/// The binary.
#[derive(Debug, Deserialize)]
pub struct Binary {
    /// `pie`, `executable` or `library`.
    pub kind: String,
    /// Whether the symbol table is gone.
    pub stripped: bool,
    /// OpenMP runtimes.
    pub runtimes: Vec<String>,
}

/// A site.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Site {
    /// Number.
    pub id: u32,
    /// Link-time address.
    #[serde(deserialize_with = "address")]
    pub address: u64,
    /// Name of the construct.
    pub construct: String,
    /// What the site does to it: `begin`, `end`, `encloses` or `next`.
    pub edge: String,
    /// The site where the construct begins.
    pub region: u32,
    /// The function that it is in, where there are symbols.
    pub function: Option<String>,
    /// Runtime function.
    pub entry: Option<String>,
    /// How it is patched.
    pub mechanism: String,
    /// Source line.
    pub source: Option<Source>,
    /// What kind of the construct it is.
    pub detail: Option<String>,
    /// `patched`, `patchable` or `skipped`.
    pub outcome: String,
    /// Why it is skipped.
    pub reason: Option<String>,
}

/// A source line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Source {
    /// File.
    pub file: String,
    /// Line.
    pub line: u32,
}

fn address<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    let text = String::deserialize(d)?;
    let digits = text
        .strip_prefix("0x")
        .ok_or_else(|| serde::de::Error::custom("no 0x"))?;
    u64::from_str_radix(digits, 16).map_err(serde::de::Error::custom)
}

impl Scan {
    /// Whether all sections of some construct that a thread executes are one unit: clang's, where the optimiser left no cycle of them.
    pub fn merges_sections(&self) -> bool {
        let merged = |s: &Site| s.detail.as_deref().is_some_and(|d| d.contains("one unit"));
        self.sites.iter().any(merged)
    }

    /// Scans a binary.
    ///
    /// # Panics
    /// If `ompfuse scan` fails, or prints something else.
    #[track_caller]
    pub fn of(path: &Path) -> Scan {
        let json = command::json([
            Path::new("scan"),
            Path::new("--format"),
            Path::new("json"),
            path,
        ]);
        serde_json::from_value(json).unwrap_or_else(|e| panic!("not the JSON of scan: {e}"))
    }

    /// The sites where a construct begins, with their lines in this file, by line and address.
    fn begins(&self, construct: &str) -> Vec<(u32, u64)> {
        let begins = |s: &&Site| match s.edge.as_str() {
            "begin" | "encloses" => true,
            // gcc's combined constructs: one call begins both, and is listed as the parallel region's.
            "next" => self
                .sites
                .get(s.region as usize)
                .is_some_and(|r| r.construct != construct),
            _ => false,
        };
        let here = self
            .sites
            .iter()
            .filter(|s| s.construct == construct)
            .filter(begins);
        let mut begins: Vec<_> = here
            .filter_map(|s| Some((s.source.as_ref()?.line, s.address)))
            .collect();
        begins.sort_unstable();
        begins
    }

    /// Finds the sites of expected regions. clang gives every call the line of its pragma, or of the loop behind it.
    ///
    /// gcc gives the runtime's calls no line of their own, so that debug information has that of a statement which may
    /// be far away: there only the number of sites can be checked, and the n-th region of a construct is taken for the
    /// n-th site of it (where optimisation duplicated sites, for the nearest).
    pub fn regions(&self, expected: &[ExpectedRegion], compiler: &str) -> Regions {
        let exact = compiler == "clang";
        let mut regions = Regions::default();
        let constructs: BTreeSet<&str> = expected.iter().map(|e| e.construct.as_str()).collect();
        for construct in constructs {
            let wanted = expected.iter().filter(|e| e.construct == construct);
            let lines: BTreeSet<u32> = wanted.map(|e| e.line).collect();
            let sites = self.begins(construct);
            if !exact && sites.len() < lines.len() {
                let (found, wanted) = (sites.len(), lines.len());
                regions
                    .missing
                    .push(format!("{found} of {construct}, not {wanted}"));
            }
            let mut found: BTreeSet<u32> = BTreeSet::new();
            for (n, &(line, address)) in sites.iter().enumerate() {
                let nearest = if !exact && sites.len() == lines.len() {
                    lines.iter().nth(n)
                } else {
                    lines.iter().min_by_key(|l| l.abs_diff(line))
                };
                if let Some(&nearest) = nearest.filter(|l| !exact || l.abs_diff(line) <= 1) {
                    regions.lines.insert(address, nearest);
                    found.insert(nearest);
                }
            }
            if exact {
                let missing = lines.difference(&found);
                regions
                    .missing
                    .extend(missing.map(|l| format!("no {construct} on line {l}")));
            }
        }
        regions
    }
}

/// Expected regions and their sites.
#[derive(Debug, Default)]
pub struct Regions {
    /// Line of the pragma by the site's address.
    pub lines: BTreeMap<u64, u32>,
    /// What was expected and not found.
    pub missing: Vec<String>,
}
