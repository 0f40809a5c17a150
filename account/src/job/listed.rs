//! Lists of which ranks have entries in common.

/// Entries of several ranks, each once, in the order of the lowest rank that has them: in which order ranks come makes no difference.
#[derive(Debug)]
pub(super) struct Listed<T>(Vec<((u32, usize), T)>);

impl<T> Default for Listed<T> {
    fn default() -> Listed<T> {
        Listed(vec![])
    }
}

impl<T> Listed<T> {
    /// Adds a rank's. Two that are `same` become one: `join` gets that of the lower rank first.
    pub(super) fn add(
        &mut self,
        rank: u32,
        entries: impl IntoIterator<Item = T>,
        same: impl Fn(&T, &T) -> bool,
        mut join: impl FnMut(&mut T, T),
    ) {
        for (at, mut entry) in entries.into_iter().enumerate() {
            let mut known = self.0.iter_mut();
            let Some((place, known)) = known.find(|(_, known)| same(known, &entry)) else {
                self.0.push(((rank, at), entry));
                continue;
            };
            if (rank, at) < *place {
                *place = (rank, at);
                std::mem::swap(known, &mut entry);
            }
            join(known, entry);
        }
    }

    /// All of them.
    pub(super) fn finish(mut self) -> Vec<T> {
        self.0.sort_by_key(|(place, _)| *place);
        self.0.into_iter().map(|(_, entry)| entry).collect()
    }
}
