//! How many processors a program that this command starts can use at once: its affinity mask, and its control groups' quotas.

use std::path::{Path, PathBuf};

/// Not always a whole number: a control group may have the time of half a processor. `None`: not known.
pub(crate) fn available() -> Option<f64> {
    let allowed = allowed()?.len() as f64;
    Some(quota_of_group().map_or(allowed, |quota| quota.min(allowed)))
}

/// The least quota of the control groups around this process, in processors; `None`: there is none.
pub(crate) fn quota_of_group() -> Option<f64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    quotas(Path::new("/sys/fs/cgroup"), &groups).reduce(f64::min)
}

/// What processors have been used for since the machine was started, in seconds; `None`: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Used {
    /// Time that the hypervisor took from the whole machine.
    pub(crate) stolen_s: Option<f64>,
    /// Time that other programs used, on the processors that this command may run on.
    pub(crate) others_s: Option<f64>,
    /// Time in which control groups with a quota were stopped.
    pub(crate) throttled_s: Option<f64>,
}

impl Used {
    /// Until now. What this command has started is known as soon as it has waited for its end.
    pub(crate) fn now() -> Used {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let stat = read("/proc/stat");
        let status = read("/proc/self/status");
        let mut lines = status.lines();
        let allowed = lines.find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
        let busy_s = allowed.and_then(|list| busy_s(&stat, list.trim()));
        let groups = read("/proc/self/cgroup");
        let throttled = limited(Path::new("/sys/fs/cgroup"), &groups).filter_map(|group| {
            let text = std::fs::read_to_string(group.join("cpu.stat")).ok()?;
            throttled_s(&text)
        });
        Used {
            stolen_s: stolen_s(&stat),
            others_s: busy_s
                .zip(own_s(&read("/proc/self/stat")))
                .map(|(all, own)| all - own),
            throttled_s: throttled.reduce(f64::max),
        }
    }

    /// What was added since then.
    pub(crate) fn since(self, before: Used) -> Used {
        let added = |now: Option<f64>, before: Option<f64>| Some((now? - before?).max(0.0));
        Used {
            stolen_s: added(self.stolen_s, before.stolen_s),
            others_s: added(self.others_s, before.others_s),
            throttled_s: added(self.throttled_s, before.throttled_s),
        }
    }
}

/// What the kernel counts a second in, on every x86-64 machine (USER_HZ).
const TICKS_PER_S: f64 = 100.0;

/// `steal` in the first line of proc_stat(5).
fn stolen_s(stat: &str) -> Option<f64> {
    let all = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: f64 = all.split_whitespace().nth(7)?.parse().ok()?;
    Some(ticks / TICKS_PER_S)
}

/// Time in which processors of a list like `0-3,8` were used: `user`, `nice`, `system`, `irq` and `softirq` in proc_stat(5).
fn busy_s(stat: &str, list: &str) -> Option<f64> {
    let used = |line: &str| {
        let (name, times) = line.split_once(' ')?;
        let number: u32 = name.strip_prefix("cpu")?.parse().ok()?;
        if !is_in(list, number)? {
            return None;
        }
        let times: Vec<f64> = times
            .split_whitespace()
            .map_while(|t| t.parse().ok())
            .collect();
        let used = [0, 1, 2, 5, 6].map(|at| times.get(at).copied());
        used.into_iter().sum::<Option<f64>>()
    };
    let all: Vec<f64> = stat.lines().filter_map(used).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / TICKS_PER_S)
}

/// Whether a number is in such a list.
fn is_in(list: &str, number: u32) -> Option<bool> {
    let mut is_in = false;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        is_in |= (first.parse().ok()?..=last.parse().ok()?).contains(&number);
    }
    Some(is_in)
}

/// Processor time of a process and of the children that it has waited for: `utime` to `cstime` in proc_pid_stat(5).
fn own_s(stat: &str) -> Option<f64> {
    // The program's name, in parentheses, may be anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields = fields.split_whitespace().skip(11).take(4);
    let ticks = fields.map(|f| f.parse::<f64>().ok()).sum::<Option<f64>>()?;
    Some(ticks / TICKS_PER_S)
}

/// How long a group was stopped because its quota was used up, in seconds, by its `cpu.stat`: version 2 has microseconds, version 1
/// nanoseconds. `None`: it doesn't say.
fn throttled_s(stat: &str) -> Option<f64> {
    let of = |name: &str| {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        lines
            .find(|(key, _)| *key == name)?
            .1
            .trim()
            .parse::<f64>()
            .ok()
    };
    let microseconds = of("throttled_usec").map(|n| n * 1e-6);
    microseconds.or_else(|| of("throttled_time").map(|n| n * 1e-9))
}

/// The processor's model, as the kernel tells it; `None`: it doesn't.
pub(crate) fn model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("model name"))?;
    let (_, model) = line.split_once(':')?;
    let words: Vec<&str> = model.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Size of the largest cache of the first processor, in bytes (sysfs-devices-system-cpu in the kernel's documentation); `None`: not told.
pub(crate) fn cache_bytes() -> Option<u64> {
    let folder = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let size = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path().join("size")).ok()?;
        let kilobytes: u64 = text.trim().strip_suffix('K')?.parse().ok()?;
        kilobytes.checked_mul(1024)
    };
    folder.flatten().filter_map(size).max()
}

/// Length of a kernel's list like `0-3,8`.
pub(crate) fn count_list(list: &str) -> Option<u32> {
    let length = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)? + 1)
    };
    list.split(',').map(length).sum()
}

/// The numbers of the logical processors that this command may run on.
pub(crate) fn allowed() -> Option<Vec<usize>> {
    allowed_by("/proc/self/status")
}

/// Those that a process may run on.
pub(crate) fn allowed_of(pid: u32) -> Option<Vec<usize>> {
    allowed_by(&format!("/proc/{pid}/status"))
}

fn allowed_by(status: &str) -> Option<Vec<usize>> {
    let status = std::fs::read_to_string(status).ok()?;
    let list = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
    numbers(list.trim())
}

fn numbers(list: &str) -> Option<Vec<usize>> {
    let mut out = vec![];
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        out.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(out)
}

/// The quotas that hold for a process, in processors.
fn quotas(root: &Path, groups: &str) -> impl Iterator<Item = f64> {
    groups_around(root, groups).filter_map(|(at, is_second)| quota(&at, is_second))
}

/// The groups around a process that have a quota.
fn limited(root: &Path, groups: &str) -> impl Iterator<Item = PathBuf> {
    let all = groups_around(root, groups);
    all.filter_map(|(at, is_second)| quota(&at, is_second).map(|_| at))
}

/// The control groups around a process, and whether each is of version 2. `root`: where they are mounted; `groups`: the process's, as
/// `/proc/self/cgroup` has them (cgroups(7)). In a container its own group is what is mounted.
fn groups_around(root: &Path, groups: &str) -> impl Iterator<Item = (PathBuf, bool)> + use<> {
    let mut found = vec![];
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let is_second = controllers.is_empty();
        if !is_second && !controllers.split(',').any(|c| c == "cpu") {
            continue;
        }
        let mounts: &[&str] = match is_second {
            true => &["", "unified"],
            false => &["cpu", "cpu,cpuacct"],
        };
        for mount in mounts {
            let mount = root.join(mount);
            let group = mount.join(group.trim_start_matches('/'));
            // A group's own and those of the groups that it is in; the mount itself, whatever the group is called outside.
            let within = group.ancestors().take_while(|at| at.starts_with(&mount));
            let all = within.map(Path::to_owned).chain([mount.clone()]);
            found.extend(all.map(|at| (at, is_second)));
        }
    }
    found.into_iter()
}

/// A group's own quota.
fn quota(group: &Path, is_second: bool) -> Option<f64> {
    let read = |name: &str| std::fs::read_to_string(group.join(name)).ok();
    let (quota, period): (f64, f64) = if is_second {
        let text = read("cpu.max")?;
        let (quota, period) = text.trim().split_once(' ')?;
        (quota.parse().ok()?, period.parse().ok()?) // `max` is no number
    } else {
        let number = |name| read(name)?.trim().parse().ok();
        (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_group_that_was_stopped_was_throttled() {
        let second = "usage_usec 812345\nuser_usec 800000\nsystem_usec 12345\nnr_periods 41\nnr_throttled 7\nthrottled_usec 250000\n";
        assert_eq!(throttled_s(second), Some(0.25));
        let first = "nr_periods 12\nnr_throttled 0\nthrottled_time 0\n";
        assert_eq!(throttled_s(first), Some(0.0));
        let first = first.replace("throttled_time 0", "throttled_time 1500000000");
        assert_eq!(throttled_s(&first), Some(1.5));
        assert_eq!(throttled_s("usage_usec 812345\n"), None);
    }

    #[test]
    fn what_others_use_is_what_is_not_ours() {
        let stat = "cpu  150 20 40 900 9 3 4 77 0 0\ncpu0 100 10 20 400 5 1 2 30 0 0\ncpu1 40 5 10 300 4 1 1 30 0 0\n\
            cpu2 10 5 10 200 0 1 1 17 0 0\nintr 12 0\n";
        assert_eq!(busy_s(stat, "0,2"), Some(1.6));
        assert_eq!(busy_s(stat, "0-2"), Some(2.17));
        assert_eq!(busy_s(stat, "7"), None);
        assert_eq!(stolen_s(stat), Some(0.77));
        let own = "71 (a) b (c) S 1 71 71 0 -1 4194304 90 1200 0 0 10 20 300 40 20 0 1 0 555 1 2";
        assert_eq!(own_s(own), Some(3.7));
    }

    #[test]
    fn lists_are_counted() {
        assert_eq!(count_list("0-3,8"), Some(5));
        assert_eq!(count_list("0"), Some(1));
        assert_eq!(count_list("3-0"), None);
    }

    #[test]
    fn the_quotas_of_all_groups_around_a_process_hold() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let of = |groups: &str| quotas(root.path(), groups).reduce(f64::min);
        assert_eq!(of("0::/a/b\n"), None);
        write("a/cpu.max", "150000 100000\n");
        write("a/b/cpu.max", "max 100000\n");
        assert_eq!(of("0::/a/b\n"), Some(1.5));
        write("cpu.max", "50000 100000\n"); // a container's own group, whatever it is called outside
        assert_eq!(of("0::/docker/1234\n"), Some(0.5));
        write("cpu,cpuacct/c/cpu.cfs_quota_us", "400000\n");
        write("cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
        assert_eq!(of("4:cpu,cpuacct:/c\n3:memory:/c\n"), Some(4.0));
        write("cpu,cpuacct/c/cpu.cfs_quota_us", "-1\n");
        assert_eq!(of("4:cpu,cpuacct:/c\n"), None);
        assert_eq!(of("3:memory:/a\n"), None);
        assert_eq!(of("nonsense"), None);
    }

    #[test]
    fn there_is_a_processor_here() {
        assert!(available().is_some_and(|n| n > 0.0));
    }
}
