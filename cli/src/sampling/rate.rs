//! `--sampling`.

use std::fmt;
use std::str::FromStr;

/// How often threads are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate(Option<u32>);

/// More often than that no program goes on as it would.
const MOST: u32 = 10_000;

impl Default for Rate {
    /// In a virtual machine a sample takes some 10 us, most of it to set the timer: at 1,000 a second programs needed 3 % more. What repeats
    /// in a program does so in round times, and a sample would meet it at the same place again and again: this is no divisor of them.
    fn default() -> Rate {
        Rate(Some(263))
    }
}

impl Rate {
    /// Samples a second of a thread's processor time; `None`: there are none.
    pub(crate) fn per_second(self) -> Option<u32> {
        self.0
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        match text.parse() {
            _ if text == "off" => Ok(Rate(None)),
            Ok(rate) if (1..=MOST).contains(&rate) => Ok(Rate(Some(rate))),
            _ => Err(format!("a number from 1 to {MOST} is needed, or off")),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) => write!(f, "{rate}"),
            None => f.write_str("off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        for (text, rate) in [("off", None), ("1", Some(1)), ("10000", Some(10_000))] {
            assert_eq!(text.parse(), Ok(Rate(rate)));
            assert_eq!(Rate(rate).to_string(), text);
        }
        for wrong in ["0", "10001", "-1", "", "on"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }
}
