//! The account and the losses of several ranks.

use super::regions::Numbers;
use crate::causes::communication::{busiest, waits_for_work};
use crate::from_summary::efficiency;
use crate::model::{
    Account, Behind, Cause, Loss, LossKind, ProcessTime, Region, State, StatePart, StateTime,
};
use std::collections::{BTreeMap, HashMap};

/// State, region, parallel region, what.
type Place = (State, Option<u32>, Option<u32>, String);

/// Kind, parallel region, and of calls of MPI which.
type LossPlace = (LossKind, Option<u32>, Option<u32>);

/// What each rank's time went to.
#[derive(Debug)]
pub(super) struct Accounts {
    /// Whether all ranks have an account.
    pub(super) is_known: bool,
    own_ns: u64,
    recording_ns: Option<u64>,
    threads: u64,
    available_ns: u64,
    /// What all threads of teams lose alike.
    alike_ns: Option<u64>,
    has_efficiencies: bool,
    processes: Vec<ProcessTime>,
    /// Nanoseconds and occurrences.
    parts: HashMap<Place, (u64, u64)>,
    losses: HashMap<LossPlace, Lost>,
}

impl Default for Accounts {
    fn default() -> Accounts {
        Accounts {
            is_known: true,
            own_ns: 0,
            recording_ns: Some(0),
            threads: 0,
            available_ns: 0,
            alike_ns: Some(0),
            has_efficiencies: true,
            processes: vec![],
            parts: HashMap::new(),
            losses: HashMap::new(),
        }
    }
}

/// A loss of several ranks.
#[derive(Debug)]
struct Lost {
    seconds: f64,
    /// The rank that loses most, if that is known, what it loses, and why.
    most: (Option<u32>, f64, Cause),
    /// What samples tell of it there.
    behind: Option<Behind>,
    /// Calls and their time.
    calls: (u64, f64),
}

impl Accounts {
    /// Adds a rank's. `numbers`: of its regions in this report.
    pub(super) fn add(&mut self, account: Account, numbers: &Numbers) {
        let Account {
            own_ns,
            recording_ns,
            threads,
            available_ns,
            states,
            efficiencies,
            processes,
        } = account;
        self.own_ns += own_ns;
        self.recording_ns = self.recording_ns.zip(recording_ns).map(|(a, b)| a + b);
        self.threads = self.threads.max(threads);
        self.available_ns += available_ns;
        let sums: BTreeMap<State, u64> = states.iter().map(|s| (s.state, s.ns)).collect();
        let alike = efficiencies.as_ref();
        self.has_efficiencies &= alike.is_some();
        let alike = alike.and_then(|e| efficiency::alike(&sums, available_ns, e));
        self.alike_ns = self.alike_ns.zip(alike).map(|(a, b)| a + b);
        self.processes.extend(processes);
        for StateTime {
            state,
            ns,
            parts,
            share: _, // of the sum, later
        } in states
        {
            let told: u64 = parts.iter().map(|p| p.ns).sum();
            for part in parts {
                let StatePart {
                    region,
                    parallel,
                    what,
                    ns,
                    count,
                } = part;
                let id = |id: Option<u32>| numbers.get(&id?).copied();
                self.add_part((state, id(region), id(parallel), what), ns, count);
            }
            // What the summary has no room for.
            if ns > told {
                self.add_part((state, None, None, "other places".to_owned()), ns - told, 0);
            }
        }
    }

    fn add_part(&mut self, place: Place, ns: u64, count: u64) {
        let sum = self.parts.entry(place).or_default();
        sum.0 += ns;
        sum.1 += count;
    }

    /// Adds the losses of some ranks.
    pub(super) fn add_losses(&mut self, losses: Vec<Loss>, numbers: &Numbers, ranks: &[u32]) {
        let rank = (ranks.len() == 1).then(|| ranks[0]);
        for loss in losses {
            let cause = renumbered(&loss.cause, numbers);
            let (at, calls) = match cause {
                Cause::Communication {
                    at, calls, call_s, ..
                } => (Some(at), (calls, calls as f64 * call_s)),
                _ => (None, (0, 0.0)),
            };
            let region = loss.region.and_then(|id| numbers.get(&id).copied());
            let Loss {
                loss,
                region: _,
                seconds,
                share: _, // of the sum, later
                cause: _,
                behind,
            } = loss;
            let lost = self.losses.entry((loss, region, at)).or_insert(Lost {
                seconds: 0.0,
                most: (rank, -1.0, Cause::Unknown),
                behind: None,
                calls: (0, 0.0),
            });
            lost.seconds += seconds;
            lost.calls.0 += calls.0;
            lost.calls.1 += calls.1;
            // Of ranks that lose the same the lowest one stands for all.
            let (known, most, _) = lost.most;
            if seconds > most || seconds == most && rank < known {
                lost.most = (rank, seconds, cause);
                lost.behind = behind;
            }
        }
    }

    /// All of it. `numbers`: of the regions in the report. `host`: of a rank.
    pub(super) fn finish<'h>(
        mut self,
        numbers: &Numbers,
        regions: &[Region],
        host: &impl Fn(Option<u32>) -> Option<&'h str>,
    ) -> (Option<Account>, Vec<Loss>) {
        if !self.is_known || self.available_ns == 0 {
            return (None, vec![]);
        }
        self.processes.sort_by_key(|p| (p.mpi_rank, p.process));
        let id = |id: Option<u32>| numbers.get(&id?).copied();
        let mut states: BTreeMap<State, Vec<StatePart>> = BTreeMap::new();
        for ((state, region, parallel, what), (ns, count)) in self.parts {
            states.entry(state).or_default().push(StatePart {
                region: id(region),
                parallel: id(parallel),
                what,
                ns,
                count,
            });
        }
        let sums: BTreeMap<State, u64> = (states.iter())
            .map(|(state, parts)| (*state, parts.iter().map(|p| p.ns).sum()))
            .collect();
        let efficiencies = self.has_efficiencies.then(|| {
            let mut all = efficiency::of_states(&sums, self.available_ns, self.alike_ns)?;
            efficiency::among_processes(&mut all, &self.processes, host);
            Some(all)
        });
        let available_s = self.available_ns as f64 * 1e-9;
        let state = |(state, mut parts): (State, Vec<StatePart>)| {
            parts.sort_by(|a, b| {
                let place = |p: &StatePart| (p.parallel, p.region, p.what.clone());
                b.ns.cmp(&a.ns).then_with(|| place(a).cmp(&place(b)))
            });
            StateTime {
                state,
                ns: sums[&state],
                share: sums[&state] as f64 / self.available_ns as f64,
                parts,
            }
        };
        let account = Account {
            own_ns: self.own_ns,
            recording_ns: self.recording_ns,
            threads: self.threads,
            available_ns: self.available_ns,
            states: states.into_iter().map(state).collect(),
            efficiencies: efficiencies.flatten(),
            processes: self.processes,
        };
        let known = |id: u32| regions.iter().any(|r| r.id == id);
        let name = |id: u32| regions.iter().find(|r| r.id == id)?.detail.as_deref();
        let mut losses: Vec<Loss> = (self.losses.into_iter())
            .map(|((loss, region, at), lost)| Loss {
                loss,
                region: id(region).filter(|&id| known(id)),
                seconds: lost.seconds,
                share: lost.seconds / available_s,
                behind: lost.behind,
                cause: match (id(at), lost.most) {
                    (Some(at), _) => Cause::Communication {
                        at,
                        calls: lost.calls.0,
                        call_s: lost.calls.1 / lost.calls.0.max(1) as f64,
                        busiest: busiest(&account).filter(|_| waits_for_work(name(at))),
                    },
                    (None, (_, _, Cause::Unknown)) => Cause::Unknown,
                    (None, (Some(rank), _, cause)) => Cause::AtRank {
                        rank,
                        cause: Box::new(renumbered(&cause, numbers)),
                    },
                    (None, (None, _, cause)) => renumbered(&cause, numbers),
                },
            })
            .collect();
        let order = |l: &Loss| (l.region, format!("{:?}", l.loss));
        losses.sort_by(|a, b| {
            let same = || order(a).cmp(&order(b));
            b.seconds.total_cmp(&a.seconds).then_with(same)
        });
        (Some(account), losses)
    }
}

/// A cause with other numbers of regions; [`Cause::Unknown`] if one of them has none.
fn renumbered(cause: &Cause, numbers: &Numbers) -> Cause {
    // Where numbers of regions are in a cause, their names say.
    let find = || -> Option<Cause> {
        let mut value = serde_json::to_value(cause).ok()?;
        let fields = value.as_object_mut()?;
        for name in ["at", "tasks"] {
            if let Some(id) = fields.get_mut(name).filter(|id| !id.is_null()) {
                *id = (*numbers.get(&u32::try_from(id.as_u64()?).ok()?)?).into();
            }
        }
        if let Some(id) = fields.get_mut("function").and_then(|f| f.get_mut(0)) {
            *id = (*numbers.get(&u32::try_from(id.as_u64()?).ok()?)?).into();
        }
        serde_json::from_value(value).ok()
    };
    match cause {
        Cause::AtRank { rank, cause } => Cause::AtRank {
            rank: *rank,
            cause: Box::new(renumbered(cause, numbers)),
        },
        _ => find().unwrap_or(Cause::Unknown),
    }
}
