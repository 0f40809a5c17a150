//! The constructs that a stack was in, where no records tell: a file's calls of the runtime, and the functions that a compiler has made of
//! constructs' blocks.

use crate::binary;
use crate::debug::Found;
use ompfuse_format::site::{Mechanism, SiteInfo};
use ompfuse_fuse::samples::{Mark, SampledPlaces};
use ompfuse_fuse::table::Site;
use ompfuse_progress::Progress;
use ompfuse_rewriter::addresses::CodePlace;
use ompfuse_rewriter::scan::{ScanOptions, scan_chosen};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// No call instruction is longer.
const CALL: u64 = 8;

/// The constructs of a file.
pub(super) struct Constructs {
    /// Its build id, or its path.
    module: String,
    sites: Vec<SiteInfo>,
    /// By address of the call.
    calls: BTreeMap<u64, usize>,
    /// By address of the function.
    bodies: HashMap<u64, usize>,
    /// Those that stacks were in: positions in the run's places.
    known: HashMap<usize, u32>,
}

impl Constructs {
    /// Those of a file; `None`: it has none, or can't be read.
    pub(super) fn read(path: &str, bytes: &[u8], debug: &Found) -> Option<Constructs> {
        let patched = binary::description(Path::new(path), bytes).ok()?;
        let (binary, sites) = match patched {
            Some(description) => (description.binary, description.sites),
            None => {
                let options = ScanOptions {
                    only_look: true,
                    ..ScanOptions::default()
                };
                let progress = Progress::default();
                let scan = scan_chosen(bytes, path, debug.files(), options, progress).ok()?;
                (
                    scan.binary,
                    scan.sites.into_iter().map(|s| s.info).collect(),
                )
            }
        };
        let numbered = || sites.iter().enumerate();
        let is_call = |s: &SiteInfo| s.mechanism != Mechanism::Inline && s.entry.is_some();
        let calls = numbered().filter(|(_, s)| is_call(s));
        let body = |(at, s): (usize, &SiteInfo)| Some((s.outlined?.0, at));
        Some(Constructs {
            calls: calls.map(|(at, s)| (s.address.0, at)).collect(),
            bodies: numbered().filter_map(body).collect(),
            module: binary.build_id.unwrap_or(binary.path),
            known: HashMap::new(),
            sites,
        })
    }

    /// What a place tells of constructs.
    pub(super) fn mark(&mut self, place: &CodePlace, places: &mut SampledPlaces) -> Option<Mark> {
        let body = place.begin.and_then(|begin| self.bodies.get(&begin));
        let call = || {
            let address = place.address?;
            let (at, number) = self.calls.range(..=address).next_back()?;
            (address - at < CALL).then_some(number)
        };
        let (inside, calls) = (body.copied(), call().copied());
        let mut site = |number: usize| {
            let region = self.sites[number].region as usize;
            let region = if region < self.sites.len() {
                region
            } else {
                number
            };
            *self.known.entry(region).or_insert_with(|| {
                let site = Site::of(self.module.clone(), &self.sites[region]);
                places.sites.push(site);
                places.sites.len() as u32 - 1
            })
        };
        let mark = Mark {
            inside: inside.map(&mut site),
            calls: calls.map(&mut site),
        };
        (mark != Mark::default()).then_some(mark)
    }
}
