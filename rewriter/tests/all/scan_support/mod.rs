//! Compiles small programs, scans them, and asks `objdump` for a second opinion.
use ompfuse_format::Construct;
use ompfuse_format::site::{Edge, Mechanism, Outcome};
use ompfuse_rewriter::model::{Action, Scan, Site};
use ompfuse_rewriter::scan;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// What constructs are made of in the programs under test.
pub(crate) const HEADER: &str = "
extern int omp_get_thread_num(void);
extern int omp_get_num_threads(void);
double a[1024], b[1024];
__attribute__((noinline)) double g(long x) { __asm__ volatile(\"\"); return x * 2.0; }
__attribute__((noinline)) void pre(void) { __asm__ volatile(\"\"); }
__attribute__((noinline)) void post(void) { __asm__ volatile(\"\"); }
";

/// A compiled program.
pub(crate) struct Program {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

/// Compiles a source text with `command` (compiler and flags). Without that compiler the kit says so, and fails in
/// continuous integration.
#[track_caller]
pub(crate) fn compile(source: &str, command: &str) -> Option<Program> {
    let ompfuse_kit::Program { folder, path } = ompfuse_kit::compile(source, command)?;
    let bytes = std::fs::read(&path).unwrap();
    Some(Program {
        _folder: folder,
        path,
        bytes,
    })
}

/// The source by each of these commands: a loop that fails if it compiles nothing.
#[track_caller]
pub(crate) fn programs<C: AsRef<str>>(
    source: &str,
    commands: impl IntoIterator<Item = C>,
) -> impl Iterator<Item = (C, Program)> {
    ompfuse_kit::each(commands, move |command| compile(source, command.as_ref()))
}

impl Program {
    pub(crate) fn scan(&self) -> Scan {
        let scan = scan(&self.bytes, "program").unwrap_or_else(|e| panic!("{e}"));
        check(&scan);
        scan
    }

    pub(crate) fn objdump(&self) -> Vec<Line> {
        let run = Command::new("objdump")
            .args(["-d", "--no-show-raw-insn"])
            .arg(&self.path)
            .output()
            .unwrap();
        String::from_utf8_lossy(&run.stdout)
            .lines()
            .filter_map(|line| {
                let (at, text) = line.trim_start().split_once(":\t")?;
                let at = u64::from_str_radix(at, 16).ok()?;
                Some(Line {
                    at,
                    text: text.trim().to_owned(),
                })
            })
            .collect()
    }
}

/// An instruction in `objdump`'s words.
pub(crate) struct Line {
    pub(crate) at: u64,
    pub(crate) text: String,
}

impl Line {
    /// The runtime's function that it calls or jumps to.
    pub(crate) fn entry(&self) -> Option<&str> {
        let mut words = self.text.split_whitespace();
        let is_branch = words.any(|w| w == "call" || w.starts_with('j'));
        let symbol = self.text.rsplit_once('<')?.1;
        let name = symbol.split(['@', '>', '+']).next()?;
        let is_runtime = name.starts_with("GOMP_") || name.starts_with("__kmpc_");
        let stub = self.text.contains("(%rip)");
        let inside = symbol.contains('+') || symbol.contains('-');
        (is_branch && is_runtime && !stub && !inside).then_some(name)
    }

    /// Where it branches to.
    pub(crate) fn target(&self) -> Option<u64> {
        let mut words = self.text.split_whitespace();
        words.find(|w| w.starts_with('j') || w.starts_with("call") || *w == "xbegin")?;
        u64::from_str_radix(words.next()?, 16).ok()
    }
}

/// What holds for every scan.
pub(crate) fn check(scan: &Scan) {
    let mut previous = 0;
    for (i, site) in scan.sites.iter().enumerate() {
        let info = &site.info;
        assert_eq!(info.id as usize, i);
        assert!(info.address.0 >= previous, "{i}: not in order of addresses");
        previous = info.address.0;
        assert!(
            (info.region as usize) < scan.sites.len(),
            "{i}: no such region"
        );
        match info.outcome {
            Outcome::Patched => panic!("{i}: nothing is patched yet"),
            Outcome::Skipped | Outcome::Service => {
                assert!(info.reason.is_some() && site.action.is_none(), "{i}")
            }
            Outcome::Patchable => assert_eq!(
                site.action.is_none(),
                info.mechanism == Mechanism::Implied,
                "{i}"
            ),
        }
        if info.edge == Edge::End && info.mechanism == Mechanism::Implied {
            let begin = &scan.sites[info.region as usize].info;
            assert_eq!(
                begin.outcome,
                Outcome::Patchable,
                "{i}: ends what has no probe"
            );
        }
    }
    let mut placed = BTreeSet::new();
    let mut end = 0;
    for window in &scan.windows {
        assert!(window.start.0 >= end, "windows overlap");
        end = window.start.0 + u64::from(window.len);
        let islands = scan.windows.iter().filter_map(|w| w.island);
        let holds = islands
            .filter(|at| (window.start.0..end).contains(&at.0))
            .inspect(|at| assert!(at.0 >= window.start.0 + 5 && at.0 + 5 <= end));
        assert!(holds.count() > 0 || !window.sites.is_empty());
        let least = if window.island.is_some() { 2 } else { 5 };
        assert!(window.len >= least);
        let mut at = 0;
        for &id in &window.sites {
            let site = &scan.sites[id as usize];
            assert!(matches!(site.action, Some(Action::Inline(_))));
            assert!((window.start.0..end).contains(&site.info.address.0));
            assert!(site.info.address.0 >= at, "probes not in order");
            at = site.info.address.0;
            assert!(placed.insert(id), "{id} is in two windows");
        }
    }
    let mut relayed = BTreeSet::new();
    for relay in &scan.relays {
        assert!(!relay.loads.is_empty() && !relay.sites.is_empty());
        assert!(relay.loads.is_sorted() && relay.sites.is_sorted());
        for &id in &relay.sites {
            assert!(relayed.insert(id), "{id} has two relays");
        }
    }
    for site in &scan.sites {
        let is_relayed = matches!(site.action, Some(Action::Call { relayed: true, .. }));
        assert_eq!(
            is_relayed,
            relayed.contains(&site.info.id),
            "{:?}",
            site.info
        );
        let inline = matches!(site.action, Some(Action::Inline(_)));
        assert_eq!(inline, placed.contains(&site.info.id), "{:?}", site.info);
    }
}

/// The begins of a construct that no call makes.
pub(crate) fn begins(scan: &Scan, construct: Construct) -> Vec<&Site> {
    scan.sites
        .iter()
        .filter(|s| s.info.construct == construct && s.info.edge == Edge::Begin)
        .collect()
}

/// The ends of the construct that a site begins.
pub(crate) fn ends<'s>(scan: &'s Scan, begin: &Site) -> Vec<&'s Site> {
    scan.sites
        .iter()
        .filter(|s| s.info.edge == Edge::End && s.info.region == begin.info.id)
        .collect()
}

/// Number of patchable constructs of a kind that have an end.
pub(crate) fn complete(scan: &Scan, construct: Construct) -> usize {
    begins(scan, construct)
        .iter()
        .filter(|b| b.info.outcome == Outcome::Patchable && !ends(scan, b).is_empty())
        .count()
}
