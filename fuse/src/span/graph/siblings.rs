//! Which of a task's siblings it depends on (OpenMP 5.2, section 15.9.5): from the order of creation, addresses, and kinds.

use ompfuse_format::record::depend::Access;
use rustc_hash::FxHashMap;

/// Tasks that a strand has created so far, as far as others may depend on them.
#[derive(Debug, Default)]
pub(super) struct Siblings {
    addresses: FxHashMap<u64, Group>,
    /// The last that depends on all memory.
    all: Vec<u32>,
}

/// Tasks that name an address in the same way and don't wait for each other.
#[derive(Debug, Clone)]
struct Group {
    access: Access,
    tasks: Vec<u32>,
    /// What they depend on.
    before: Vec<u32>,
}

impl Siblings {
    /// What a task with these accesses waits for.
    pub(super) fn before(&self, accesses: &[(u64, Access)]) -> Vec<u32> {
        let mut before = vec![];
        for &(address, access) in accesses {
            if access == Access::AllMemory {
                before.extend(&self.all);
                before.extend(self.addresses.values().flat_map(|g| &g.tasks));
                continue;
            }
            match self.addresses.get(&address) {
                None => before.extend(&self.all),
                Some(group) if joins(group, access) => before.extend(&group.before),
                Some(group) => before.extend(&group.tasks),
            }
        }
        before.sort_unstable();
        before.dedup();
        before
    }

    /// A task with these accesses was created.
    pub(super) fn add(&mut self, task: u32, accesses: &[(u64, Access)]) {
        if accesses.iter().any(|a| a.1 == Access::AllMemory) {
            self.addresses.clear();
            self.all = vec![task];
            return;
        }
        for &(address, access) in accesses {
            let all = &self.all;
            let group = self.addresses.entry(address).or_insert_with(|| Group {
                access,
                tasks: vec![],
                before: all.clone(),
            });
            // Tasks come in the order of their creation.
            if group.tasks.last() == Some(&task) {
                // Named twice: who writes it has it alone.
                if access == Access::Out && group.access != Access::Out {
                    group
                        .before
                        .extend(group.tasks.drain(..).filter(|&t| t != task));
                    (group.access, group.tasks) = (access, vec![task]);
                }
                continue;
            }
            if !joins(group, access) {
                group.before = std::mem::take(&mut group.tasks);
                group.access = access;
            }
            group.tasks.push(task);
        }
    }
}

/// Whether a task that accesses the group's address so belongs to it.
fn joins(group: &Group, access: Access) -> bool {
    group.tasks.is_empty() || access != Access::Out && access == group.access
}

#[cfg(test)]
mod tests {
    use super::*;
    use Access::{AllMemory, In, InOutSet, MutexInOutSet, Out};

    /// What each of these tasks depends on.
    fn edges(tasks: &[&[(u64, Access)]]) -> Vec<Vec<u32>> {
        let mut siblings = Siblings::default();
        let one = |(task, accesses): (u32, &&[(u64, Access)])| {
            let before = siblings.before(accesses);
            siblings.add(task, accesses);
            before
        };
        (0..).zip(tasks).map(one).collect()
    }

    #[test]
    fn readers_run_between_writers() {
        let tasks: [&[_]; 5] = [&[(1, Out)], &[(1, In)], &[(1, In)], &[(1, Out)], &[(2, In)]];
        assert_eq!(
            edges(&tasks),
            [vec![], vec![0], vec![0], vec![1, 2], vec![]]
        );
    }

    #[test]
    fn sets_wait_for_what_is_before_them_and_not_for_each_other() {
        for set in [MutexInOutSet, InOutSet] {
            let tasks: [&[_]; 5] = [
                &[(1, In)],
                &[(1, set)],
                &[(1, set)],
                &[(1, In)],
                &[(1, Out)],
            ];
            assert_eq!(
                edges(&tasks),
                [vec![], vec![0], vec![0], vec![1, 2], vec![3]]
            );
        }
        let tasks: [&[_]; 2] = [&[(1, MutexInOutSet)], &[(1, InOutSet)]];
        assert_eq!(edges(&tasks), [vec![], vec![0]]);
    }

    #[test]
    fn all_memory_is_between_all_others() {
        let tasks: [&[_]; 5] = [
            &[(1, In)],
            &[(2, Out)],
            &[(0, AllMemory)],
            &[(3, In)],
            &[(3, Out)],
        ];
        assert_eq!(
            edges(&tasks),
            [vec![], vec![], vec![0, 1], vec![2], vec![3]]
        );
    }

    #[test]
    fn an_address_named_twice_is_written() {
        let tasks: [&[_]; 3] = [&[(1, In)], &[(1, In), (1, Out)], &[(1, In)]];
        assert_eq!(edges(&tasks), [vec![], vec![0], vec![1]]);
    }
}
