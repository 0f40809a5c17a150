//! Locks, turns of ordered blocks, and iterations of doacross loops.

use super::{Frame, Sim};
use crate::span::graph::{Graph, Step};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// By lock, whether somebody holds it, and who waits.
#[derive(Debug)]
pub(super) struct Locks(Vec<(bool, VecDeque<u32>)>);

impl Locks {
    pub(super) fn new(graph: &Graph) -> Locks {
        Locks((0..graph.locks).map(|_| Default::default()).collect())
    }

    /// Whether the thread has it now; else it has it when it goes on.
    pub(super) fn enter(&mut self, lock: u32, thread: u32) -> bool {
        let (is_held, waiting) = &mut self.0[lock as usize];
        if std::mem::replace(is_held, true) {
            waiting.push_back(thread);
            return false;
        }
        true
    }

    /// Who has it next.
    pub(super) fn leave(&mut self, lock: u32) -> Option<u32> {
        let (is_held, waiting) = &mut self.0[lock as usize];
        let next = waiting.pop_front();
        *is_held = next.is_some();
        next
    }
}

/// Orders that the program wants.
#[derive(Debug)]
pub(super) struct Orders {
    /// By sharing, whose turn it is.
    turns: Vec<u32>,
    waiting: FxHashMap<(u32, u32), u32>,
    /// Iterations that are posted at all, and those that were.
    posts: FxHashSet<u64>,
    posted: FxHashSet<u64>,
    awaiting: FxHashMap<u64, Vec<u32>>,
}

impl Orders {
    pub(super) fn new(graph: &Graph) -> Orders {
        let posts = graph.steps.iter().filter_map(|step| match step {
            Step::Post { vector } => Some(*vector),
            _ => None,
        });
        Orders {
            turns: vec![0; graph.sharings.len()],
            waiting: FxHashMap::default(),
            posts: posts.collect(),
            posted: FxHashSet::default(),
            awaiting: FxHashMap::default(),
        }
    }
}

impl Sim<'_> {
    /// Whether the thread goes on at once.
    pub(super) fn order(&mut self, thread: u32, frame: Frame, step: Step) -> bool {
        let orders = &mut self.orders;
        let mut free = vec![];
        match step {
            Step::Turn { sharing, turn } if orders.turns[sharing as usize] < turn => {
                orders.waiting.insert((sharing, turn), thread);
                return false;
            }
            Step::Turned { sharing, turn } => {
                orders.turns[sharing as usize] = turn + 1;
                free.extend(orders.waiting.remove(&(sharing, turn + 1)));
            }
            Step::Post { vector } => {
                orders.posted.insert(vector);
                free = orders.awaiting.remove(&vector).unwrap_or_default();
            }
            // What is outside of the loop is never posted.
            Step::Await { vector }
                if orders.posts.contains(&vector) && !orders.posted.contains(&vector) =>
            {
                orders.awaiting.entry(vector).or_default().push(thread);
                return false;
            }
            _ => {}
        }
        for other in free {
            let at = self.threads[other as usize].stack.last().map(|f| f.at);
            if let Some(cause) = at.and_then(|at| self.played.causes.get_mut(at as usize)) {
                *cause = (frame.strand, frame.at);
            }
            self.due.push(Reverse((self.now, other)));
        }
        self.next(thread)
    }
}
