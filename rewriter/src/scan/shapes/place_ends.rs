//! Adding ends to the list of sites, as [`super::ends`] finds them.

use super::ends::{End, Own};
use super::{Analysis, end_probe};
use crate::model::Action;
use crate::scan::draft::Draft;
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use ompfuse_format::site::Edge;

impl Analysis<'_, '_> {
    /// What a construct is that a draft begins.
    fn own(&self, begin: usize, drafts: &[Draft]) -> Own {
        let division = match &drafts[begin].action {
            Some(Action::Inline(p)) if p.probe == Probe::InlineLoopAgain => {
                usize::try_from(p.param)
                    .ok()
                    .and_then(|d| drafts.get(d))
                    .map(|d| d.address)
            }
            // Behind a barrier, which knows what computed its bounds.
            None => drafts
                .iter()
                .filter_map(|d| d.rare().begins)
                .find(|b| b.0 == begin)
                .map(|b| drafts[b.1].address),
            _ => Some(drafts[begin].address),
        };
        Own {
            construct: drafts[begin].construct,
            division: division.map(|at| self.flow.name(at)),
        }
    }

    fn place_end(&self, begin: usize, end_at: End, drafts: &mut Vec<Draft>) {
        let root = drafts[begin].region.unwrap_or(begin);
        let construct = drafts[begin].construct;
        let end = |address: u64, drafts: &mut Vec<Draft>| {
            let mut draft = Draft::new(address, construct, Edge::End);
            draft.function = self.function();
            draft.region = Some(root);
            draft.detail = drafts[begin].detail.clone();
            drafts.push(draft);
        };
        match end_at {
            End::Implied(places, reason) => {
                for d in places.iter().filter_map(|at| self.calls.get(at)) {
                    if construct != Construct::Master && drafts[*d].construct == Construct::Barrier
                    {
                        drafts[*d].construct = Construct::ImplicitBarrier;
                        drafts[*d].region.get_or_insert(begin);
                    }
                }
                let Some(&at) = places.first() else { return };
                end(at, drafts);
                let implied_by = places
                    .iter()
                    .filter_map(|at| self.calls.get(at).copied())
                    .collect();
                if let Some(draft) = drafts.last_mut() {
                    draft.imply(reason);
                    draft.rare_mut().implied_by = implied_by;
                }
            }
            End::Probes(places) => {
                for at in places {
                    end(at, drafts);
                    if let Some(draft) = drafts.last_mut() {
                        draft.inline(end_probe());
                    }
                }
            }
            End::Nowhere(why) => drafts[begin].skip(format!("no end: {why}")),
        }
    }

    /// Adds the end of the construct begun by draft `begin` ([`Analysis::end_of`]); without a place for it the begin
    /// loses its probe too.
    pub(crate) fn add_end(&self, begin: usize, block: usize, fork: usize, drafts: &mut Vec<Draft>) {
        let own = self.own(begin, drafts);
        let end = self.end_of(block, fork, &own, drafts);
        self.place_end(begin, end, drafts);
    }

    /// Adds the end of a loop that begins at each of these places and has cycles with these headers.
    pub(crate) fn add_end_behind(
        &self,
        begin: usize,
        places: &[u64],
        headers: &[usize],
        drafts: &mut Vec<Draft>,
    ) {
        let end = self.end_behind(places, headers, &self.own(begin, drafts), drafts);
        self.place_end(begin, end, drafts);
    }
}
