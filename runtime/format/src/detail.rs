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
        const KINDS: [&str; 5] = ["static", "dynamic", "guided", "auto", "runtime"];
        let mut words = self.0.rsplit([' ', ';']);
        words.find(|w| KINDS.iter().any(|k| w.starts_with(k)))
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

    /// Whether variables or a call choose its schedule.
    pub fn is_runtime(self) -> bool {
        self.0.starts_with("runtime")
    }

    /// Whether its schedule is guided.
    pub fn is_guided(self) -> bool {
        self.0.starts_with("guided")
    }
}

#[cfg(test)]
mod tests {
    use super::Detail;

    #[test]
    fn schedules_are_told() {
        let told = |text| Detail(text).schedule_told();
        assert_eq!(told("dynamic,8").as_deref(), Some("dynamic,8"));
        assert_eq!(told("static, bounds").as_deref(), Some("static"));
        assert_eq!(told("static, chunk").as_deref(), Some("static, in chunks"));
        assert_eq!(told("or equivalent"), None);
        assert!(Detail("runtime").is_runtime() && Detail("guided,4").is_guided());
        assert!(Detail("static, bounds; two loops may share this code").is_shared());
    }
}
