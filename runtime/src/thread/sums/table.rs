//! A thread's table of sums, and how its entries are found.

use crate::syscall;
use crate::thread::Thread;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};
use ompfuse_format::Construct;
use ompfuse_format::record::sums::{self, Kind, interval};

/// Bytes of the table's first piece in the file; each further one is as large as all before it, up to [`LARGEST_PIECE`].
const FIRST_PIECE: usize = 64 << 10;
/// Most bytes of a piece.
const LARGEST_PIECE: usize = 4 << 20;
/// Pieces; with them all a thread has room for several hundred MB.
const PIECES: usize = 64;
/// Bytes that the table has from the start where records come behind it in the file: it can't grow then.
const BESIDE_RECORDS: usize = 4 << 20;
/// Places of a new index; a power of two.
const PLACES: usize = 256;

/// What an entry is found by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) kind: Kind,
    pub(super) construct: Construct,
    pub(super) site: u32,
    pub(super) team: u64,
    pub(super) member: u64,
}

impl Key {
    /// The first word of its entry, without the length: never 0.
    #[inline(always)]
    fn word(&self) -> u64 {
        sums::head(self.kind, self.construct, 0, self.site)
    }

    #[inline(always)]
    fn hash(word: u64, team: u64, member: u64) -> usize {
        let mixed = word.rotate_left(23) ^ team.rotate_left(41) ^ member;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
    }
}

/// Where an entry is, by its key.
#[derive(Debug)]
struct Place {
    /// 0: the place is free.
    word: Cell<u64>,
    team: Cell<u64>,
    member: Cell<u64>,
    entry: Cell<*const AtomicU64>,
}

/// The table; zeros are an empty one, with its road ([`Table::init`]).
#[derive(Debug)]
pub(in crate::thread) struct Table {
    /// The index, and its number of places less 1.
    places: Cell<*mut Place>,
    mask: Cell<usize>,
    used: Cell<usize>,
    /// Where the next entry comes, and the words that are left there.
    next: Cell<*mut u8>,
    left: Cell<usize>,
    /// Bytes of the table in the file.
    len: Cell<usize>,
    pieces: [Cell<(*mut u8, usize)>; PIECES],
    /// The road of the interval that is added, where that isn't told by what is open.
    pub(super) road: Cell<Option<u16>>,
    /// The road to the region that was joined last.
    pub(super) fork: Cell<u16>,
    pub(super) recent: [super::roads::Recent; super::roads::RECENT],
    pub(super) behind: Cell<*const super::team::Part>,
    pub(super) block: Cell<*mut super::team::Block>,
}

crate::thread::zeroed! {
    Table {
        places, mask, used, next, left, len, pieces, fork, recent, behind, block,
    }
    written { road }
}

impl Table {
    /// Initialises the table at this place, whose bytes are zero.
    ///
    /// # Safety
    /// `at` is valid, and nobody else uses it.
    pub(in crate::thread) unsafe fn init(at: *mut Table) {
        // SAFETY: the caller's promise. Zero bytes are values of all other fields (`zeroed!`).
        unsafe { (&raw mut (*at).road).write(Cell::new(None)) };
    }

    fn place(&self, at: usize) -> &Place {
        // SAFETY: inside the index, whose zeroed bytes are free places; only this thread has it.
        unsafe { &*self.places.get().add(at & self.mask.get()) }
    }
}

/// The words of an entry. They are this thread's; atomic since the file may be read meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry(*const AtomicU64);

impl Entry {
    #[inline(always)]
    fn word(self, at: usize) -> &'static AtomicU64 {
        // SAFETY: entries are as long as their kind says, and stay mapped until the thread's end, when nothing is added any more.
        unsafe { &*self.0.add(at) }
    }

    #[inline(always)]
    pub(super) fn get(self, at: usize) -> u64 {
        self.word(at).load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn set(self, at: usize, value: u64) {
        self.word(at).store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(super) fn add(self, at: usize, value: u64) {
        self.set(at, self.get(at).wrapping_add(value));
    }

    /// What is not known in a part is not known of the whole: that is the largest number.
    #[inline(always)]
    pub(super) fn saturating_add(self, at: usize, value: u64) {
        self.set(at, self.get(at).saturating_add(value));
    }

    #[inline(always)]
    pub(super) fn least(self, at: usize, value: u64) {
        if value < self.get(at) {
            self.set(at, value);
        }
    }

    #[inline(always)]
    pub(super) fn most(self, at: usize, value: u64) {
        if value > self.get(at) {
            self.set(at, value);
        }
    }
}

impl Thread {
    /// An empty table.
    pub(super) fn begin_table(&self, mode: u64) {
        self.buffer.begin_sums(mode);
        if mode == sums::BESIDE {
            self.new_piece(BESIDE_RECORDS);
        }
    }

    /// The entry of a key; a new one of so many words, if there is none yet. `None` (and the loss is counted) without space.
    #[inline(always)]
    pub(super) fn entry(&self, key: Key, words: impl FnOnce() -> usize) -> Option<Entry> {
        let word = key.word();
        if !self.sums.places.get().is_null() {
            let mut at = Key::hash(word, key.team, key.member);
            loop {
                let place = self.sums.place(at);
                if place.word.get() == word
                    && place.team.get() == key.team
                    && place.member.get() == key.member
                {
                    return Some(Entry(place.entry.get()));
                }
                if place.word.get() == 0 {
                    break;
                }
                at += 1;
            }
        }
        self.new_entry(word, key.team, key.member, words())
    }

    #[cold]
    #[inline(never)]
    fn new_entry(&self, word: u64, team: u64, member: u64, words: usize) -> Option<Entry> {
        let made = self.make_entry(word, (team, member), words);
        if made.is_none() {
            self.buffer.lose();
        }
        made
    }

    /// `word`: the first one, but for the length.
    fn make_entry(&self, word: u64, (team, member): (u64, u64), words: usize) -> Option<Entry> {
        let table = &self.sums;
        let is_full = 2 * table.used.get() >= table.mask.get();
        if is_full && !self.enlarge_index() {
            return None;
        }
        let bytes = 8 * words;
        if table.left.get() < bytes && !self.next_piece(bytes) {
            return None;
        }
        let at = table.next.get().cast::<AtomicU64>().cast_const();
        table.next.set(table.next.get().wrapping_add(bytes));
        table.left.set(table.left.get() - bytes);
        let entry = Entry(at);
        entry.set(sums::TEAM, team);
        entry.set(sums::MEMBER, member);
        if word as u8 == Kind::Intervals as u8 {
            entry.set(interval::MIN, u64::MAX);
        }
        // Release: who reads on finds the rest.
        let first = word | (words as u64) << 16;
        entry.word(0).store(first, Ordering::Release);
        table.len.set(table.len.get() + bytes);
        self.buffer.commit_sums(table.len.get());
        self.enter_key(word, team, member, at);
        Some(entry)
    }

    /// Enters a key that the index doesn't have.
    fn enter_key(&self, word: u64, team: u64, member: u64, entry: *const AtomicU64) {
        let mut at = Key::hash(word, team, member);
        while self.sums.place(at).word.get() != 0 {
            at += 1;
        }
        let place = self.sums.place(at);
        place.team.set(team);
        place.member.set(member);
        place.entry.set(entry);
        place.word.set(word);
        self.sums.used.set(self.sums.used.get() + 1);
    }

    /// Makes the index twice as large. False without memory.
    fn enlarge_index(&self) -> bool {
        let table = &self.sums;
        let before = match table.places.get().is_null() {
            true => 0,
            false => table.mask.get() + 1,
        };
        let len = (2 * before).max(PLACES);
        let Some(memory) = syscall::map_present_memory(len * size_of::<Place>()) else {
            return false;
        };
        let old = table.places.replace(memory.cast());
        table.mask.set(len - 1);
        table.used.set(0);
        for at in 0..before {
            // SAFETY: inside the former index, which only this thread has.
            let place = unsafe { &*old.add(at) };
            if place.word.get() != 0 {
                let (word, team) = (place.word.get(), place.team.get());
                self.enter_key(word, team, place.member.get(), place.entry.get());
            }
        }
        if before > 0 {
            // SAFETY: nothing refers to it any more.
            unsafe { syscall::unmap(old.cast(), before * size_of::<Place>()) };
        }
        true
    }

    /// Goes on in a new piece of the file, with room for an entry of so many bytes.
    fn next_piece(&self, bytes: usize) -> bool {
        let len = self.sums.len.get() + self.sums.left.get();
        let len = len.next_power_of_two().clamp(FIRST_PIECE, LARGEST_PIECE);
        if bytes > len {
            return false; // never: the longest entry is shorter
        }
        self.fill_up();
        self.new_piece(len)
    }

    /// Fills the rest of a piece, so that the next entry is behind it.
    fn fill_up(&self) {
        let table = &self.sums;
        while table.left.get() > 0 {
            // The length of one entry is limited.
            let words = (table.left.get() / 8).min(usize::from(u16::MAX));
            let pad = sums::head(Kind::Pad, Construct::Program, words, 0);
            Entry(table.next.get().cast::<AtomicU64>().cast_const()).set(0, pad);
            table.next.set(table.next.get().wrapping_add(8 * words));
            table.left.set(table.left.get() - 8 * words);
            table.len.set(table.len.get() + 8 * words);
        }
    }

    fn new_piece(&self, len: usize) -> bool {
        let mut pieces = self.sums.pieces.iter();
        let Some(free) = pieces.find(|piece| piece.get().0.is_null()) else {
            return false;
        };
        let Some(at) = self.buffer.room_for_sums(len) else {
            return false;
        };
        free.set((at, len));
        self.sums.next.set(at);
        self.sums.left.set(len);
        true
    }

    /// Gives the memory back.
    pub(in crate::thread) fn release_sums(&self) {
        super::team::give_back(self.sums.block.replace(core::ptr::null_mut()));
        for piece in &self.sums.pieces {
            let (at, len) = piece.replace((core::ptr::null_mut(), 0));
            if !at.is_null() {
                // SAFETY: the thread is ending, and nothing is added any more.
                unsafe { syscall::unmap(at, len) };
            }
        }
        let places = self.sums.places.replace(core::ptr::null_mut());
        if !places.is_null() {
            let len = (self.sums.mask.get() + 1) * size_of::<Place>();
            // SAFETY: as above.
            unsafe { syscall::unmap(places.cast(), len) };
        }
    }
}
