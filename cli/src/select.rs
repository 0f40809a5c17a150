//! `--select`, `--skip` and `--filter`: which regions get probes.

mod calls;
mod filter;
mod functions;
pub(crate) mod set;

pub(crate) use calls::CallArgs;
pub(crate) use filter::{Filter, line};
pub(crate) use functions::FunctionArgs;
use functions::exact_event;
pub(crate) use ompfuse_fuse::names::Selector;

use crate::debug::DebugArgs;
use anyhow::{Result, bail};
use ompfuse_account::model::ModuleInfo;
use ompfuse_account::{Region, Report};
use ompfuse_format::site::{Mechanism, SiteInfo};
use ompfuse_fuse::names::{Place, readable};
use std::collections::HashMap;

/// A function's name as people write it, without its parameters.
pub(crate) fn plain(symbol: &str) -> String {
    let name = readable(symbol);
    name.split('(').next().unwrap_or(&name).to_owned()
}

/// The options, as several commands take them.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SelectArgs {
    /// Patch only these regions (may be repeated)
    ///
    /// S is a selector: a construct (`task`), a function (`solve_*`, `MPI_Wait*`), a source line (`lu.c:120`) or file (`lu.c`), an
    /// address (`0x4011a6`), or a library (`lib:libfoo*`, `lib:libfoo*:task`). A function stands for the constructs in it, `fn:solve_*`
    /// for itself.
    #[arg(long, value_name = "S")]
    pub(crate) select: Vec<Selector>,
    /// Don't patch these regions (may be repeated); selectors as for --select
    #[arg(long, value_name = "S")]
    pub(crate) skip: Vec<Selector>,
    /// File with a line `select S` or `skip S` each; `ompfuse report --suggest-filter` writes one
    #[arg(long, value_name = "FILE", value_parser = filter::read)]
    pub(crate) filter: Vec<Filter>,
    /// Have these regions hand over other values to the OpenMP runtime, as 'solve.c:31: chunk=64' (may be repeated)
    ///
    /// `serial` (a team of one), `threads=N` (where the program asks for more), `chunk=N` (of dynamic and guided loops),
    /// `schedule=dynamic` or `schedule=guided` (of such loops of clang's programs), `grainsize=N` or `num_tasks=N` (of taskloops),
    /// `cutoff=DEPTH` (of gcc's tasks).
    /// Regions as for --select.
    #[arg(long, value_name = "S: VALUES")]
    pub(crate) set: Vec<set::Set>,
    #[command(flatten)]
    pub(crate) functions: FunctionArgs,
    #[command(flatten)]
    pub(crate) calls: CallArgs,
    /// Lines and names may come from there.
    #[command(flatten)]
    pub(crate) debug: DebugArgs,
}

/// For each site of a module, given by its path, whether it is to be patched. A region is meant if its begin is, or if an
/// address names one of its sites; all its sites share its fate.
pub(crate) fn selected(
    args: &SelectArgs,
    module: &str,
    sites: &[impl AsRef<SiteInfo>],
) -> Result<Vec<bool>> {
    let regions = |pattern: &Selector| -> Result<Vec<bool>> {
        let is_meant = regions(pattern, module, sites);
        if pattern.is_about(module) && !is_meant.contains(&true) {
            bail!("nothing in {module} matches {pattern}; `ompfuse scan` lists what there is");
        }
        Ok(is_meant)
    };
    let mut chosen = vec![args.selects().next().is_none(); sites.len()];
    // Functions and loops were chosen already, unless something is said of them here.
    if !args.selects().any(Selector::is_about_functions) {
        let all = sites.iter().map(AsRef::as_ref).zip(&mut chosen);
        all.for_each(|(site, chosen)| *chosen |= site.construct.is_code());
    }
    for pattern in args.selects() {
        regions(pattern)?
            .iter()
            .zip(&mut chosen)
            .for_each(|(&meant, chosen)| *chosen |= meant);
    }
    let needs = needs(sites);
    // What ends a chosen region by being there is chosen with it, ...
    needs
        .iter()
        .for_each(|&(region, end)| chosen[end] |= chosen[region]);
    for pattern in args.skips() {
        regions(pattern)?
            .iter()
            .zip(&mut chosen)
            .for_each(|(&meant, chosen)| *chosen &= !meant);
    }
    // ... and where that isn't wanted, the region's numbers would be wrong.
    while needs
        .iter()
        .map(|&(region, end)| chosen[region] && !chosen[end] && std::mem::take(&mut chosen[region]))
        .fold(false, |changed, now| changed | now)
    {}
    Ok(sites
        .iter()
        .map(AsRef::as_ref)
        .map(|s| chosen.get(s.region as usize).copied().unwrap_or(false))
        .collect())
}

/// For each site that begins a region, whether it is meant.
fn regions(pattern: &Selector, module: &str, sites: &[impl AsRef<SiteInfo>]) -> Vec<bool> {
    let mut is_meant = vec![false; sites.len()];
    if !pattern.is_about(module) {
        return is_meant;
    }
    let matches = |site| pattern.matches(&Place::of_site(module, site));
    // A region has several sites: it is compared once.
    let mut is_asked = vec![false; sites.len()];
    for site in sites.iter().map(AsRef::as_ref) {
        let begin = site.region as usize;
        let (Some(region), Some(asked)) = (sites.get(begin), is_asked.get_mut(begin)) else {
            continue;
        };
        let by_region = !std::mem::replace(asked, true) && matches(region.as_ref());
        let by_address = pattern.is_address() && matches(site);
        is_meant[begin] |= by_region || by_address;
    }
    is_meant
}

/// For each site of a module, whether its region is meant.
pub(crate) fn meant(pattern: &Selector, module: &str, sites: &[SiteInfo]) -> Vec<bool> {
    let regions = regions(pattern, module, sites);
    let of = |site: &SiteInfo| regions.get(site.region as usize).copied();
    sites.iter().map(|s| of(s).unwrap_or(false)).collect()
}

/// Whether a region of a report is meant.
pub(crate) fn means_region(selector: &Selector, report: &Report, region: &Region) -> bool {
    let name = region.module.as_deref();
    let is_its = |m: &&ModuleInfo| m.build_id.as_deref() == name || Some(&*m.path) == name;
    let module = name.and_then(|_| report.modules.iter().find(is_its));
    let path = module.map(|m| &m.path).or(region.file.as_ref());
    selector.matches(&Place {
        module: path.unwrap_or(&report.program),
        construct: region.construct,
        address: region.address.map(|a| a.0),
        file: region.source.as_ref().map(|s| &*s.file),
        line: region.source.as_ref().map(|s| s.line),
        function: region.function.as_deref(),
        names: Place::names_in(region.construct, region.detail.as_deref()),
        ..Place::default()
    })
}

/// Regions whose end is implied by another region's probe (a barrier's), and that region.
fn needs(sites: &[impl AsRef<SiteInfo>]) -> Vec<(usize, usize)> {
    let all = || sites.iter().map(AsRef::as_ref);
    let at: HashMap<_, _> = all().map(|s| (s.address, s.region as usize)).collect();
    let implied = all().filter(|s| s.mechanism == Mechanism::Implied);
    let pairs = implied.filter_map(|site| {
        // The end stands at the first of the sites that imply it.
        let end = *at
            .get(&site.address)
            .filter(|end| **end != site.region as usize)?;
        Some((site.region as usize, end))
    });
    pairs
        .filter(|(region, end)| *region < sites.len() && *end < sites.len())
        .collect()
}

/// A selection, and what its functions count, where `--events` means nothing else.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CountingArgs {
    #[command(flatten)]
    pub(crate) selection: SelectArgs,
    /// What --count counts: names of events with `:exact`, separated by commas (default: instructions:exact)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = exact_event, requires = "count")]
    pub(crate) events: Vec<usize>,
}

impl CountingArgs {
    /// Both.
    pub(crate) fn whole(&self) -> SelectArgs {
        let mut selection = self.selection.clone();
        selection.functions.count_events.extend(&self.events);
        selection
    }
}

impl SelectArgs {
    /// What of it is about this module and no other one.
    pub(crate) fn naming(&self, module: &str) -> Option<&Selector> {
        self.selects().chain(self.skips()).find(|p| p.names(module))
    }

    /// What selects something, if anything does, in none of these modules: paths and sites.
    pub(crate) fn without_match<'a>(
        &'a self,
        modules: &[(&str, &[SiteInfo])],
    ) -> Vec<&'a Selector> {
        let matches = |pattern: &&Selector| {
            let mut modules = modules.iter();
            modules.any(|(module, sites)| meant(pattern, module, sites).contains(&true))
        };
        let of_files = self.selects().filter(|p| !p.is_about_user());
        of_files.filter(|p| !matches(p)).collect()
    }

    fn selects(&self) -> impl Iterator<Item = &Selector> {
        let kept = self.filter.iter().flat_map(|f| &f.select);
        self.select.iter().chain(kept)
    }

    fn skips(&self) -> impl Iterator<Item = &Selector> {
        let kept = self.filter.iter().flat_map(|f| &f.skip);
        self.skip.iter().chain(kept)
    }

    /// Whether everything is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.selects().chain(self.skips()).next().is_none()
    }

    /// Whether it leaves a module out on purpose: by its name.
    pub(crate) fn leaves_out(&self, module: &str) -> bool {
        let all = |p: &Selector| p.library().is_some() && p.is_about(module) && p.matches_all();
        let mut selects = self.selects().peekable();
        let elsewhere = selects.peek().is_some() && selects.all(|p| !p.is_about(module));
        elsewhere || self.skips().any(all)
    }

    /// The options as arguments of a command.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let selects = self.selects().map(|p| format!("--select={}", p.text()));
        let skips = self.skips().map(|p| format!("--skip={}", p.text()));
        let calls = self.calls.text().map(|c| format!("--calls={c}"));
        let sets = self.set.iter().map(|s| format!("--set={}", s.text));
        let all = selects
            .chain(skips)
            .chain(sets)
            .chain(self.functions.arguments());
        let all = all.chain(calls);
        all.chain(self.debug.arguments()).collect()
    }

    /// What of a whole program's selection is about a library that it has loaded; `None`: nothing in it is selected.
    pub(crate) fn for_library(
        &self,
        module: &str,
        sites: &[impl AsRef<SiteInfo>],
    ) -> Option<SelectArgs> {
        let fits = |pattern: &&Selector| {
            let alone = SelectArgs {
                select: vec![(*pattern).clone()],
                ..SelectArgs::default()
            };
            selected(&alone, module, sites).is_ok_and(|chosen| chosen.contains(&true))
        };
        let sets = |set: &&set::Set| fits(&&set.regions);
        let select: Vec<Selector> = self.selects().filter(fits).cloned().collect();
        let skip = self.skips().filter(fits).cloned().collect();
        (!select.is_empty() || self.selects().next().is_none()).then(|| SelectArgs {
            select,
            skip,
            filter: Vec::new(),
            set: self.set.iter().filter(sets).cloned().collect(),
            functions: self.functions.clone(),
            calls: self.calls,
            debug: self.debug.clone(),
        })
    }

    /// The options in one line: equal for equal selections.
    pub(crate) fn fingerprint(&self) -> String {
        fn join<'a>(patterns: impl Iterator<Item = &'a Selector>) -> String {
            let texts: Vec<_> = patterns.map(Selector::text).collect();
            texts.join("\x1f")
        }
        let functions: String = (self.functions.arguments())
            .map(|argument| format!(" {argument}\x1f"))
            .collect();
        let calls = self.calls.text().map(|c| format!(" calls={c}"));
        let calls = calls.unwrap_or_default();
        let sets: String = (self.set.iter())
            .map(|set| format!(" set={}\x1f", set.text))
            .collect();
        format!(
            "select={} skip={}{functions}{calls}{sets}",
            join(self.selects()),
            join(self.skips())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_format::Construct;
    use ompfuse_format::site::{Edge, HexAddress, Outcome, Source};

    fn site(id: u32, region: u32, construct: Construct, function: &str, line: u32) -> SiteInfo {
        SiteInfo {
            id,
            address: HexAddress(0x1000 + u64::from(id)),
            function: Some(function.into()),
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
            frames: None,
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
                ..SelectArgs::default()
            },
            "bin/lu.x",
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
    fn a_library_takes_what_is_about_it() {
        let patterns = |p: &[&str]| p.iter().map(|p| p.parse().unwrap()).collect();
        let kept = |select: &[&str], skip: &[&str]| {
            let args = SelectArgs {
                select: patterns(select),
                skip: patterns(skip),
                ..SelectArgs::default()
            };
            let own = args.for_library("lib/libx.so", &sites());
            own.map(|own| own.arguments())
        };
        assert_eq!(kept(&[], &[]), Some(vec![]));
        let some = kept(&["loop", "nowhere"], &["ns::*", "elsewhere", "lib:y*"]);
        assert_eq!(some.unwrap(), ["--select=loop", "--skip=ns::*"]);
        assert_eq!(kept(&["nowhere"], &[]), None);
        assert_eq!(kept(&["lib:liby*"], &[]), None);
        assert_eq!(kept(&["lib:libx*"], &[]).unwrap(), ["--select=lib:libx*"]);
    }

    #[test]
    fn what_matches_nothing_is_an_error() {
        let message = format!("{}", chosen(&[], &["solve.part.0"]).unwrap_err());
        assert_eq!(
            message,
            "nothing in bin/lu.x matches `solve.part.0`; `ompfuse scan` lists what there is"
        );
        assert!(chosen(&["u.c:10"], &[]).is_err());
    }

    #[test]
    fn an_implied_end_comes_with_what_implies_it() {
        let mut sites = sites();
        // The loop's end is the barrier's call.
        (sites[1].mechanism, sites[1].address) = (Mechanism::Implied, sites[3].address);
        let chosen = |select: &str, skip: &str| {
            let patterns = |p: &str| p.split_whitespace().map(|p| p.parse().unwrap()).collect();
            let args = SelectArgs {
                select: patterns(select),
                skip: patterns(skip),
                ..SelectArgs::default()
            };
            selected(&args, "lu.x", &sites).unwrap()
        };
        assert_eq!(chosen("loop", ""), [true, true, false, true]);
        assert_eq!(chosen("", "barrier"), [false, false, true, false]);
        assert_eq!(chosen("barrier", ""), [false, false, false, true]);
    }

    #[test]
    fn modules_and_files() {
        assert_eq!(
            chosen(&["lu.c"], &["0x1003"]).unwrap(),
            [true, true, true, false]
        );
        assert_eq!(
            chosen(&["lib:lu*:task"], &[]).unwrap(),
            [false, false, true, false]
        );
        // Other modules are left out, which is no mistake.
        assert_eq!(chosen(&["lib:libx*"], &[]).unwrap(), [false; 4]);
        assert_eq!(chosen(&[], &["lib:libx*:flush"]).unwrap(), [true; 4]);
        assert!(chosen(&[], &["lib:lu.x:flush"]).is_err());
        let parse = |select: &[&str], skip: &[&str]| SelectArgs {
            select: select.iter().map(|p| p.parse().unwrap()).collect(),
            skip: skip.iter().map(|p| p.parse().unwrap()).collect(),
            ..SelectArgs::default()
        };
        assert!(parse(&["lib:libx*"], &[]).leaves_out("lu.x"));
        assert!(parse(&[], &["lib:lu.x"]).leaves_out("/a/lu.x"));
        assert!(!parse(&[], &["lib:lu.x:task"]).leaves_out("lu.x"));
        assert!(!parse(&["task", "lib:libx*"], &[]).leaves_out("lu.x"));
        assert!(!parse(&[], &[]).leaves_out("lu.x"));
    }
}
