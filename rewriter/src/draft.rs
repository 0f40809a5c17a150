//! A plan in the making: what is patched is taken apart and checked, but has no place yet.

use crate::cutoff::{Creation, Setter};
use crate::describe::stub_numbers;
use crate::dynamic::Needed;
use crate::image::Image;
use crate::model::{Action, LinkVa, Scan, Window};
use crate::patch_error::PatchError;
use crate::plan::PlanOptions;
use crate::relay::{self, RelayCode};
use crate::settings;
use crate::stubs::{JUMP_LEN, Redirect, SHORT_JUMP_LEN, check_site};
use crate::trampoline::{Placing, Trampoline};
use crate::unwind::Frames;
use ompfuse_format::site::{Parameter, SCHEDULES, Setting, Text};
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// What is patched, taken apart.
pub(crate) struct Draft<'a> {
    pub image: &'a Image<'a>,
    pub scan: Cow<'a, Scan>,
    pub options: &'a PlanOptions,
    pub selected: BTreeSet<u32>,
    /// Stubs and redirected calls; their addresses are filled in by `assemble`.
    pub calls: Vec<Redirect>,
    /// By position in `calls`, what changes arguments.
    pub setters: BTreeMap<u32, Setter>,
    /// Calls that are made from a trampoline: their instruction lies in a window.
    pub inside: BTreeSet<u32>,
    pub trampolines: Vec<Trampoline>,
    pub relays: Vec<RelayCode>,
    /// The new library; none in a dormant patch.
    pub needed: Option<Needed>,
    /// The original's unwind information.
    pub frames: Option<Frames<'a>>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(
        image: &'a Image<'a>,
        scan: Cow<'a, Scan>,
        options: &'a PlanOptions,
        selected: BTreeSet<u32>,
    ) -> Result<Draft<'a>, PatchError> {
        let needed = match options.dormant {
            true => None,
            false => Some(Needed::new(image, &options.runtime_library)?),
        };
        let mut draft = Draft {
            image,
            scan,
            options,
            calls: Vec::new(),
            setters: BTreeMap::new(),
            inside: BTreeSet::new(),
            trampolines: Vec::new(),
            relays: Vec::new(),
            needed,
            frames: Frames::read(image),
            selected,
        };
        draft.take_calls()?;
        draft.take_windows()?;
        draft.take_relays()?;
        draft.take_settings()?;
        Ok(draft)
    }

    fn take_calls(&mut self) -> Result<(), PatchError> {
        let selected: Vec<u32> = self.selected.iter().copied().collect();
        let calls = selected.par_iter().map(|&id| self.call(id).transpose());
        let calls: Vec<Option<Result<Redirect, PatchError>>> = calls.collect();
        // Of several errors the first is told.
        for call in calls.into_iter().flatten() {
            self.calls.push(call?);
        }
        let mut places: Vec<LinkVa> = self.calls.iter().map(|c| c.at).collect();
        places.sort_unstable();
        match places.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(self.site_error(pair[0], "it is listed twice")),
            None => Ok(()),
        }
    }

    /// The call at a site, if that is one: its instruction is what the scan says.
    fn call(&self, id: u32) -> Result<Option<Redirect>, PatchError> {
        let site = &self.scan.sites[id as usize];
        let at = LinkVa(site.info.address.0);
        let Some(Action::Call {
            len,
            tail,
            relayed,
            target,
            ..
        }) = site.action
        else {
            return Ok(None);
        };
        match relayed {
            true => relay::check_site(self.image, at, len, tail)?,
            false => check_site(self.image, at, len, tail, target)?,
        }
        Ok(Some(Redirect {
            site: id,
            at,
            len: u32::from(len),
            tail,
            relayed,
            target,
            stub: LinkVa(0),
            setter: None,
        }))
    }

    fn take_windows(&mut self) -> Result<(), PatchError> {
        let stubs = stub_numbers(&self.calls);
        let entries: Vec<u32> = self.selected.iter().copied().collect();
        let mut placed = BTreeSet::new();
        let mut added = 0;
        let mut end = 0;
        let counts = &self.scan.increments;
        let counted = |w: &Window| {
            let first = counts.partition_point(|i| i.at < w.start.0);
            let behind = w.start.0.saturating_add(u64::from(w.len));
            let len = counts[first..].partition_point(|i| i.at < behind);
            &counts[first..first + len]
        };
        let probed =
            |w: &&Window| !counted(w).is_empty() || w.sites.iter().any(|&id| self.is_inline(id));
        let islands = self.scan.windows.iter().filter(probed);
        let mut islands: Vec<LinkVa> = islands.filter_map(|w| w.island).collect();
        islands.sort_unstable();
        for window in &self.scan.windows {
            let probes: Vec<_> = window
                .sites
                .iter()
                .filter(|id| self.is_inline(**id))
                .filter_map(|&id| {
                    Some(Placing {
                        site: id,
                        entry: entries.binary_search(&id).ok()? as u32,
                        at: LinkVa(self.scan.sites[id as usize].info.address.0),
                    })
                })
                .collect();
            let first = islands.partition_point(|&at| at < window.start);
            let behind = window.start.0.saturating_add(u64::from(window.len));
            let makes_room = islands.get(first).is_some_and(|at| at.0 < behind);
            let increments = counted(window);
            if probes.is_empty() && increments.is_empty() && !makes_room {
                continue;
            }
            if window.start.0 < end {
                return Err(self.site_error(window.start, "its window overlaps another"));
            }
            end = window.start.0.saturating_add(u64::from(window.len));
            let trampoline = Trampoline::new(self.image, window, (&probes, increments), &stubs)?;
            added += increments.len();
            let within = stubs.range(LinkVa(window.start.0.saturating_sub(15))..LinkVa(end));
            for (&at, &n) in within {
                let call = &self.calls[n as usize];
                if at >= window.start {
                    self.inside.insert(call.site);
                } else if at.0 + u64::from(call.len) > window.start.0 {
                    return Err(self.site_error(at, "a window begins within its instruction"));
                }
            }
            placed.extend(probes.iter().map(|p| p.site));
            self.trampolines.push(trampoline);
        }
        self.check_islands(&islands)?;
        if added != self.scan.increments.len() {
            let what = "some of the constants that count instructions lie in no window";
            return Err(self.image.format_error(what));
        }
        let lost = self
            .selected
            .iter()
            .find(|&&id| self.is_inline(id) && !placed.contains(&id));
        if let Some(&id) = lost {
            let at = LinkVa(self.scan.sites[id as usize].info.address.0);
            return Err(self.site_error(at, "it lies in no window"));
        }
        Ok(())
    }

    /// Every island stands in a window, behind the jump there and apart from the others, and is in reach. `islands`: ascending.
    fn check_islands(&self, islands: &[LinkVa]) -> Result<(), PatchError> {
        for pair in islands.windows(2) {
            if pair[1].0 - pair[0].0 < u64::from(JUMP_LEN) {
                return Err(self.site_error(pair[1], "its island overlaps another"));
            }
        }
        for &island in islands {
            let host = self.trampolines.partition_point(|t| t.window <= island);
            let host = host.checked_sub(1).map(|i| &self.trampolines[i]);
            let holds = |t: &Trampoline| {
                let own = match t.island {
                    Some(_) => SHORT_JUMP_LEN,
                    None => JUMP_LEN,
                };
                island.0 - t.window.0 >= u64::from(own)
                    && island.0.saturating_add(u64::from(JUMP_LEN)) <= t.window_end()
            };
            if !host.is_some_and(holds) {
                return Err(self.site_error(island, "its island lies in no window"));
            }
        }
        for t in &self.trampolines {
            if t.island.is_some() && t.window_bytes(LinkVa(0)).is_err() {
                return Err(self.site_error(t.window, "its island is out of reach"));
            }
        }
        Ok(())
    }

    fn take_relays(&mut self) -> Result<(), PatchError> {
        let relayed = self.calls.iter().zip(0..).filter(|(c, _)| c.relayed);
        let mut stubs: BTreeMap<u32, u32> = relayed.map(|(c, n)| (c.site, n)).collect();
        let mut loads = BTreeSet::new();
        for relay in &self.scan.relays {
            let mut calls = Vec::new();
            for site in &relay.sites {
                let Some(n) = stubs.remove(site) else {
                    continue;
                };
                let call = &self.calls[n as usize];
                let twice = call.tail && calls.iter().any(|(_, c): &(u32, &Redirect)| c.tail);
                if call.target != relay.target || twice {
                    return Err(self.site_error(call.at, "its relay is another's"));
                }
                calls.push((n, call));
            }
            if calls.is_empty() {
                continue;
            }
            let code = RelayCode::new(relay, calls.into_iter());
            for load in code.changed() {
                let holds = |t: &Trampoline| (t.window.0..t.window_end()).contains(&load.0);
                if !loads.insert(load) || self.trampolines.iter().any(holds) {
                    return Err(self.site_error(load, "it is changed twice"));
                }
            }
            self.relays.push(code);
        }
        match stubs.first_key_value() {
            None => Ok(()),
            Some((&site, _)) => {
                let at = LinkVa(self.scan.sites[site as usize].info.address.0);
                Err(self.site_error(at, "no relay leads to it"))
            }
        }
    }

    fn take_settings(&mut self) -> Result<(), PatchError> {
        let settings = &self.options.settings;
        if settings.is_empty() {
            return Ok(());
        }
        let cutoffs = settings.iter();
        let cutoffs = cutoffs.filter(|s| s.parameter == Parameter::Cutoff);
        let deepest = cutoffs.map(|s| s.value).max().unwrap_or(0);
        let sites: BTreeSet<u32> = settings.iter().map(|s| s.site).collect();
        for site in sites {
            let number = self.calls.iter().position(|call| call.site == site);
            let number = number.filter(|&n| !self.calls[n].relayed && !self.inside.contains(&site));
            let own: Vec<Setting> = settings
                .iter()
                .copied()
                .filter(|s| s.site == site)
                .collect();
            let set = self.scan.sites.get(site as usize);
            let setter = set.and_then(|set| settings::setter(set, &own, deepest));
            let (Some(number), Some(setter)) = (number, setter) else {
                let at = LinkVa(set.map_or(0, |set| set.info.address.0));
                return Err(self.site_error(at, "no argument of its call can be set"));
            };
            self.setters.insert(number as u32, setter);
        }
        if deepest > 0 {
            self.count_depths(deepest);
        }
        let scan = self.scan.to_mut();
        scan.binary.settings = settings.clone();
        // The copy's loops are what their settings say.
        for set in settings
            .iter()
            .filter(|s| s.parameter == Parameter::Schedule)
        {
            let mut names = SCHEDULES.iter().filter(|s| s.1 == set.value);
            scan.sites[set.site as usize].info.detail = names.next().map(|s| Text::from(s.0));
        }
        Ok(())
    }

    /// Where there is a cutoff, all of the file's tasks count.
    fn count_depths(&mut self, deepest: u32) {
        for (call, n) in self.calls.iter().zip(0..) {
            if call.relayed || self.inside.contains(&call.site) || self.setters.contains_key(&n) {
                continue;
            }
            let site = &self.scan.sites[call.site as usize];
            if let Some(creation) = Creation::new(site, None, deepest) {
                self.setters.insert(n, Setter::Creation(creation));
            }
        }
    }

    fn is_inline(&self, id: u32) -> bool {
        let action = self
            .scan
            .sites
            .get(id as usize)
            .and_then(|s| s.action.as_ref());
        self.selected.contains(&id) && matches!(action, Some(Action::Inline(_)))
    }

    pub(crate) fn site_error(&self, at: LinkVa, what: &str) -> PatchError {
        PatchError::Site {
            path: self.image.path.into(),
            at,
            what: what.into(),
        }
    }

    pub(crate) fn too_far(&self, at: LinkVa) -> impl Fn(LinkVa) -> PatchError {
        move |to| PatchError::TooFar {
            path: self.image.path.into(),
            at,
            to,
        }
    }
}
