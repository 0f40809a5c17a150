//! How far a long piece of work is: for whoever waits for it, and for whoever holds the memory that it reads.
//!
//! A library takes a [`Progress`] and tells it of shares of its work. The command decides who sees them; the library knows no
//! terminal and no clock.
#![forbid(unsafe_code)]

/// Is told which further shares of a piece of work are done. By default nobody asks, and nothing is counted.
#[derive(Clone, Copy, Default)]
pub struct Progress<'p> {
    tell: Option<&'p (dyn Fn(f64) + Sync)>,
    /// What the piece of work is of the whole that `tell` knows.
    share: f64,
    give_back: Option<&'p (dyn Fn() + Sync)>,
}

impl<'p> Progress<'p> {
    /// Tells this, on any thread: the sum of all shares is at most 1.
    pub fn new(tell: &'p (dyn Fn(f64) + Sync)) -> Progress<'p> {
        Progress {
            tell: Some(tell),
            share: 1.0,
            give_back: None,
        }
    }

    /// Calls this too, on any thread, whenever much of the input was read that isn't read again soon: memory that holds pages
    /// of a file can be given back.
    #[must_use]
    pub fn releasing(self, give_back: &'p (dyn Fn() + Sync)) -> Progress<'p> {
        Progress {
            give_back: Some(give_back),
            ..self
        }
    }

    /// Much was read that isn't read again soon.
    pub fn release(self) {
        if let Some(give_back) = self.give_back {
            give_back();
        }
    }

    /// For a part of the work, which is such a share of it.
    #[must_use]
    pub fn part(self, share: f64) -> Progress<'p> {
        Progress {
            share: self.share * share,
            ..self
        }
    }

    /// Such a share of it is done.
    pub fn advance(self, share: f64) {
        if let Some(tell) = self.tell {
            tell(self.share * share);
        }
    }

    /// Steps of those that there are, done.
    pub fn steps(self, done: usize, of: usize) {
        self.advance(done as f64 / of.max(1) as f64);
    }
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}
