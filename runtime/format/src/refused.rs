//! Why the kernel refuses `perf_event_open`, and what helps: told alike by the command and in recorded programs. Neither files nor
//! errors are read here.

/// errno values of perf_event_open(2).
pub const EPERM: i32 = 1;
/// See [`EPERM`].
pub const EACCES: i32 = 13;
/// See [`EPERM`].
pub const ENOSYS: i32 = 38;

/// Where the kernel tells what may be counted. It exists on every kernel that has perf events.
pub const PARANOID_FILE: &str = "/proc/sys/kernel/perf_event_paranoid";
/// Where it tells what a process is allowed to.
pub const STATUS_FILE: &str = "/proc/self/status";

/// What decides whether a process may count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// `kernel.perf_event_paranoid`; `None`: this kernel has no perf events, or the file is hidden.
    pub paranoid: Option<i32>,
    /// A seccomp filter decides about system calls, as containers have one.
    pub filtered: bool,
    /// The process has CAP_PERFMON or CAP_SYS_ADMIN: the setting doesn't hold it back.
    pub privileged: bool,
}

/// Bits in the set of capabilities.
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;

impl Guard {
    /// From the contents of [`PARANOID_FILE`] and [`STATUS_FILE`], as far as they can be read.
    pub fn parse(paranoid: Option<&str>, status: Option<&str>) -> Guard {
        let value = |key: &str| {
            let mut lines = status.unwrap_or_default().lines();
            let line = lines.find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
            line.map(str::trim)
        };
        let capabilities = value("CapEff").and_then(|set| u64::from_str_radix(set, 16).ok());
        Guard {
            paranoid: paranoid.and_then(|text| text.trim().parse().ok()),
            filtered: value("Seccomp") == Some("2"),
            privileged: capabilities.is_some_and(|set| set & (CAP_SYS_ADMIN | CAP_PERFMON) != 0),
        }
    }

    /// The setting, in words.
    pub fn setting(&self) -> String {
        match self.paranoid {
            Some(value) => format!("kernel.perf_event_paranoid is {value}"),
            None => "kernel.perf_event_paranoid can't be read".to_owned(),
        }
    }

    /// Whether the setting alone refuses every event.
    fn forbids_all(&self) -> bool {
        self.paranoid.is_some_and(|p| p > 2) && !self.privileged
    }
}

/// What helps where a container's filter refuses.
const IN_CONTAINER: &str =
    "run the container with --cap-add PERFMON --security-opt seccomp=unconfined";

/// A remedy for a setting.
pub fn lower_paranoid(to: i32) -> String {
    format!("sudo sysctl kernel.perf_event_paranoid={to}")
}

/// Reason and remedy for an error that says that this process may not count; `None`: the error says something else.
pub fn explain(errno: i32, guard: &Guard) -> Option<(String, Option<String>)> {
    let name = match errno {
        EPERM => "EPERM",
        EACCES => "EACCES",
        ENOSYS => "ENOSYS",
        _ => return None,
    };
    let refused = format!("perf_event_open is refused ({name})");
    let container = Some(IN_CONTAINER.to_owned());
    Some(match (errno, guard) {
        (ENOSYS, Guard { paranoid: None, .. }) => (
            "this kernel has no perf events, or hides them".to_owned(),
            guard.filtered.then(|| IN_CONTAINER.to_owned()),
        ),
        // The kernel has it, so somebody else has said that it doesn't.
        (ENOSYS, _) => (
            format!("{refused} by a seccomp filter, as containers have it"),
            container,
        ),
        // The kernel itself says EACCES.
        (EACCES, g) if g.forbids_all() && !g.filtered => (
            format!("not allowed ({})", guard.setting()),
            Some(lower_paranoid(1)),
        ),
        (_, g) if g.forbids_all() && g.filtered => (
            format!(
                "{refused}: {}, and there is a seccomp filter, as containers have it",
                guard.setting()
            ),
            Some(format!("{}; {IN_CONTAINER}", lower_paranoid(1))),
        ),
        (_, g) if g.filtered => (
            format!("{refused} by a seccomp filter, as containers have it"),
            container,
        ),
        (_, g) if g.forbids_all() => (
            format!("{refused}: {}", guard.setting()),
            Some(lower_paranoid(1)),
        ),
        _ => (
            format!(
                "{refused} by the kernel or a security module ({})",
                guard.setting()
            ),
            Some(format!("{}, or as root", lower_paranoid(-1))),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_is_read_from_the_kernels_files() {
        let status = "Name:\tx\nCapEff:\t0000004000000000\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        assert_eq!(
            Guard::parse(Some("3\n"), Some(status)),
            Guard {
                paranoid: Some(3),
                filtered: true,
                privileged: true
            }
        );
        let status = "CapEff:\t0000000000000000\nSeccomp:\t0\n";
        assert_eq!(
            Guard::parse(None, Some(status)),
            Guard {
                paranoid: None,
                filtered: false,
                privileged: false
            }
        );
    }

    #[test]
    fn who_refuses_is_named() {
        let guard = |paranoid, filtered| Guard {
            paranoid,
            filtered,
            privileged: false,
        };
        let why = |errno, guard: Guard| {
            let (reason, remedy) = explain(errno, &guard).unwrap();
            (reason, remedy.unwrap_or_default())
        };
        for errno in [EPERM, EACCES, ENOSYS] {
            let (reason, remedy) = why(errno, guard(Some(2), true));
            assert!(reason.contains("seccomp filter"), "{errno}: {reason}");
            assert!(!reason.contains("paranoid"), "{errno}: {reason}");
            assert!(remedy.contains("--cap-add PERFMON"), "{errno}: {remedy}");
        }
        let (reason, remedy) = why(EACCES, guard(Some(4), false));
        assert_eq!(reason, "not allowed (kernel.perf_event_paranoid is 4)");
        assert_eq!(remedy, "sudo sysctl kernel.perf_event_paranoid=1");
        let (reason, _) = why(EACCES, guard(Some(4), true));
        assert!(
            reason.contains("is 4") && reason.contains("seccomp"),
            "{reason}"
        );
        let (reason, _) = why(ENOSYS, guard(None, false));
        assert!(reason.contains("no perf events"), "{reason}");
        assert_eq!(explain(2, &guard(Some(2), true)), None);
    }
}
