//! How many processors a program that this command starts can use at once: its affinity mask, and its control groups' quotas.

use std::path::{Path, PathBuf};

/// Not always a whole number: a control group may have the time of half a processor. `None`: not known.
pub(crate) fn available() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let list = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
    let allowed = f64::from(count_list(list.trim())?);
    Some(quota_of_group().map_or(allowed, |quota| quota.min(allowed)))
}

/// The least quota of the control groups around this process, in processors; `None`: there is none.
pub(crate) fn quota_of_group() -> Option<f64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    quotas(Path::new("/sys/fs/cgroup"), &groups).reduce(f64::min)
}

/// Processor time that the hypervisor has taken from this machine since it was started, in seconds (proc_stat(5)).
pub(crate) fn stolen_s() -> Option<f64> {
    /// What the kernel counts a second in, on every x86-64 machine (USER_HZ).
    const TICKS_PER_S: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let all = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: f64 = all.split_whitespace().nth(7)?.parse().ok()?;
    Some(ticks / TICKS_PER_S)
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

/// The quotas that hold for a process, in processors. `root`: where control groups are mounted; `groups`: the process's, as
/// `/proc/self/cgroup` has them (cgroups(7)). In a container its own group is what is mounted.
fn quotas(root: &Path, groups: &str) -> impl Iterator<Item = f64> {
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
            let all: Vec<PathBuf> = within.map(Path::to_owned).chain([mount.clone()]).collect();
            found.extend(all.iter().filter_map(|at| quota(at, is_second)));
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
