//! Sizes of the models.

use core::fmt;
use core::str::FromStr;

/// A cache's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Lines (or pages, for a TLB) that it holds.
    pub lines: u64,
    /// Lines in one set.
    pub ways: u64,
}

/// Bytes of a cache line.
pub const LINE: u64 = 64;
/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Sizes of all models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// First-level instruction cache.
    pub l1i: Size,
    /// First-level data cache.
    pub l1d: Size,
    /// Second-level cache, of both, one per thread.
    pub l2: Size,
    /// Data TLB.
    pub dtlb: Size,
    /// Bits of branch history: the predictor has two to this power counters.
    pub history: u32,
    /// Whether the C library's code counts where the program calls it. What an allocation costs, say, depends on all others.
    pub libraries: bool,
}

impl Default for Options {
    fn default() -> Options {
        let cache = |kib: u64, ways| Size {
            lines: kib * 1024 / LINE,
            ways,
        };
        Options {
            l1i: cache(32, 8),
            l1d: cache(32, 8),
            l2: cache(256, 8),
            dtlb: Size { lines: 64, ways: 4 },
            history: 12,
            libraries: true,
        }
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |size: Size| size.lines * LINE / 1024;
        write!(
            f,
            "l1i={}/{},l1d={}/{},l2={}/{},dtlb={}/{},history={},libraries={}",
            kib(self.l1i),
            self.l1i.ways,
            kib(self.l1d),
            self.l1d.ways,
            kib(self.l2),
            self.l2.ways,
            self.dtlb.lines,
            self.dtlb.ways,
            self.history,
            if self.libraries { "yes" } else { "no" }
        )
    }
}

impl Options {
    /// Sets one option.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn set(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| format!("`{option}` has no `=`"))?;
        let number = |text: &str| -> Result<u64, String> {
            text.parse()
                .map_err(|_| format!("`{text}` in `{option}` is no number"))
        };
        if name == "history" {
            self.history = match number(value)? {
                bits @ 1..=20 => bits as u32,
                _ => return Err(format!("`{option}`: from 1 to 20 bits")),
            };
            return Ok(());
        }
        if name == "libraries" {
            self.libraries = match value {
                "yes" => true,
                "no" => false,
                _ => return Err(format!("`{option}`: yes or no")),
            };
            return Ok(());
        }
        let (first, ways) = value
            .split_once('/')
            .ok_or_else(|| format!("`{option}` must be of the form {name}=SIZE/WAYS"))?;
        let (first, ways) = (number(first)?, number(ways)?);
        let (place, per_unit) = match name {
            "l1i" => (&mut self.l1i, 1024 / LINE),
            "l1d" => (&mut self.l1d, 1024 / LINE),
            "l2" => (&mut self.l2, 1024 / LINE),
            "dtlb" => (&mut self.dtlb, 1),
            _ => {
                return Err(format!(
                    "no model is called `{name}`; there are l1i, l1d, l2, dtlb, history and libraries"
                ));
            }
        };
        let lines = first.saturating_mul(per_unit);
        if !(1..=1 << 24).contains(&lines)
            || ways == 0
            || lines % ways != 0
            || !(lines / ways).is_power_of_two()
        {
            return Err(format!(
                "`{option}`: the number of sets must be a power of two"
            ));
        }
        *place = Size { lines, ways };
        Ok(())
    }
}

impl FromStr for Options {
    type Err = String;

    fn from_str(text: &str) -> Result<Options, String> {
        let mut options = Options::default();
        for option in text.split(',').filter(|o| !o.is_empty()) {
            options.set(option)?;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_they_are_shown() {
        let options: Options = "l1d=48/12,l2=2048/16,dtlb=96/6,history=9,libraries=no"
            .parse()
            .unwrap();
        assert_eq!((options.l1d.lines, options.l1d.ways), (768, 12));
        assert_eq!(options.l1i, Options::default().l1i);
        assert_eq!(options.to_string().parse(), Ok(options));
        assert_eq!("".parse(), Ok(Options::default()));
    }

    #[test]
    fn wrong_options_are_named() {
        for (wrong, word) in [
            ("l3=1/1", "no model"),
            ("l1d=32", "SIZE/WAYS"),
            ("l1d=32/7", "power of two"),
            ("l1d=0/1", "power of two"),
            ("l1d=x/1", "no number"),
            ("history=0", "from 1"),
            ("libraries=1", "yes or no"),
            ("l1d", "no `=`"),
        ] {
            let error = wrong.parse::<Options>().unwrap_err();
            assert!(error.contains(word), "{wrong}: {error}");
        }
    }
}
