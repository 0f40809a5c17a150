//! What a site's detail tells a program: it is a text for people, and all that is read in it is read here.

use crate::site::SHARED_CODE;

/// A [`SiteInfo::detail`](crate::site::SiteInfo::detail).
#[derive(Debug, Clone, Copy)]
pub struct Detail<'a>(pub &'a str);

impl<'a> Detail<'a> {
    /// Whether it isn't certain that a loop is one.
    pub fn is_shared(self) -> bool {
        self.0.contains(SHARED_CODE)
    }

    /// The schedule as it is told, as `dynamic,8`, or `static,` of one whose chunk is told apart.
    pub fn schedule(self) -> Option<&'a str> {
        let mut words = self.0.rsplit([' ', ';']);
        words.find(|w| KINDS.iter().any(|(_, k)| w.starts_with(k)))
    }

    /// The same for people.
    pub fn schedule_told(self) -> Option<String> {
        let told = self.schedule()?;
        // What gcc computes in place has no number.
        Some(match told.strip_suffix(',') {
            Some(kind) if self.0.ends_with("chunk") => format!("{kind}, in chunks"),
            Some(kind) => kind.to_owned(),
            None => told.to_owned(),
        })
    }

    /// The kind of its schedule.
    pub fn kind(self) -> Option<Kind> {
        let word = self.schedule()?.split(',').next()?;
        KINDS.iter().find(|k| k.1 == word).map(|k| k.0)
    }

    /// The largest number of iterations that are handed out at once, where it is known.
    pub fn chunk(self) -> Option<u64> {
        self.schedule()?.split_once(',')?.1.parse().ok()
    }

    /// Whether iterations wait for earlier ones: `ordered`, or `doacross`, which is `ordered` with a number.
    pub fn is_ordered(self) -> bool {
        self.0.contains("ordered") || self.0.contains("doacross")
    }
}

/// A kind of schedule (OpenMP 5.2, section 11.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Ranges are divided before the loop begins.
    Static,
    /// Ranges of one size, for whoever asks.
    Dynamic,
    /// Ranges that become smaller, for whoever asks.
    Guided,
    /// The runtime's choice.
    Auto,
    /// What `OMP_SCHEDULE` or a call says.
    Runtime,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Static, "static"),
    (Kind::Dynamic, "dynamic"),
    (Kind::Guided, "guided"),
    (Kind::Auto, "auto"),
    (Kind::Runtime, "runtime"),
];

#[cfg(test)]
mod tests {
    use super::{Detail, Kind};

    #[test]
    fn schedules_are_told() {
        let told = |text| Detail(text).schedule_told();
        assert_eq!(told("dynamic,8").as_deref(), Some("dynamic,8"));
        assert_eq!(told("static, bounds").as_deref(), Some("static"));
        assert_eq!(told("static, chunk").as_deref(), Some("static, in chunks"));
        assert_eq!(told("or equivalent"), None);
        let kind = |text| (Detail(text).kind(), Detail(text).chunk());
        assert_eq!(kind("runtime, doacross"), (Some(Kind::Runtime), None));
        assert_eq!(kind("guided,4"), (Some(Kind::Guided), Some(4)));
        assert_eq!(kind("static, bounds"), (Some(Kind::Static), None));
        assert_eq!(kind("point"), (None, None));
        assert!(Detail("static, bounds; two loops may share this code").is_shared());
    }
}
