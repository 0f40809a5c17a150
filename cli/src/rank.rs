//! The job that this command is a rank of: `mpirun -n 2 ompfuse profile -- ./program`.
//!
//! Launchers tell each rank its number, how many there are, and which job it is of, by variables of the environment.

use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// A rank of a job of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    /// Equal in all ranks of the job, and in no other job that runs at the same time.
    id: String,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// The command that starts such jobs.
    launcher: &'static str,
}

/// How a launcher tells it. In the order in which they count: Slurm's variables are there under `mpirun` too.
struct Launcher {
    rank: &'static str,
    /// The first that is there.
    sizes: &'static [&'static str],
    /// Variables that are there together, and tell the job; the first of these groups counts.
    jobs: &'static [&'static [&'static str]],
    command: &'static str,
}

/// Tells the job where a launcher doesn't: the user sets it, where ranks are on several hosts.
const GIVEN: &str = "OMPFUSE_JOB";

const LAUNCHERS: [Launcher; 5] = [
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        sizes: &["OMPI_COMM_WORLD_SIZE"],
        jobs: &[&["PMIX_NAMESPACE"], &["OMPI_MCA_ess_base_jobid"]],
        command: "mpirun",
    },
    Launcher {
        rank: "MV2_COMM_WORLD_RANK",
        sizes: &["MV2_COMM_WORLD_SIZE"],
        jobs: &[&["PMI_JOBID"]],
        command: "mpirun",
    },
    Launcher {
        rank: "PMIX_RANK",
        sizes: &["SLURM_STEP_NUM_TASKS", "PMI_SIZE"],
        jobs: &[&["PMIX_NAMESPACE"]],
        command: "srun",
    },
    Launcher {
        rank: "PMI_RANK",
        sizes: &["PMI_SIZE", "SLURM_STEP_NUM_TASKS"],
        jobs: &[&["SLURM_JOB_ID", "SLURM_STEP_ID"], &["PMI_JOBID"]],
        command: "mpirun",
    },
    // A batch script has a rank too, but is no step of several tasks.
    Launcher {
        rank: "SLURM_PROCID",
        sizes: &["SLURM_STEP_NUM_TASKS"],
        jobs: &[&["SLURM_JOB_ID", "SLURM_STEP_ID"]],
        command: "srun",
    },
];

/// The number of this command's rank, as its launcher tells it.
pub(crate) fn rank_of_this() -> Option<u32> {
    let number = |l: &Launcher| std::env::var(l.rank).ok()?.parse().ok();
    LAUNCHERS.iter().find_map(number)
}

/// The variables that tell ranks apart.
pub(crate) fn is_of_rank(variable: &str) -> bool {
    const OTHERS: [&str; 5] = [
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_NODE_RANK",
        "MPI_LOCALRANKID",
        "SLURM_LOCALID",
        "MV2_COMM_WORLD_LOCAL_RANK",
    ];
    OTHERS.contains(&variable) || LAUNCHERS.iter().any(|l| l.rank == variable)
}

impl Job {
    /// The job of this process; `None`: it is of none, or alone.
    pub(crate) fn of_this() -> Option<Job> {
        let variable = |name: &str| std::env::var(name).ok();
        Job::of(variable, launching_process)
    }

    /// `above`: what tells the process that has started the ranks, whose environment has no such variable.
    fn of(
        variable: impl Fn(&str) -> Option<String>,
        above: impl FnOnce(&str) -> Option<String>,
    ) -> Option<Job> {
        let number = |name: &str| variable(name)?.parse::<u32>().ok();
        let (launcher, rank, size) = LAUNCHERS.iter().find_map(|launcher| {
            let rank = number(launcher.rank)?;
            let size = launcher.sizes.iter().find_map(|name| number(name))?;
            Some((launcher, rank, size))
        })?;
        if size < 2 || rank >= size {
            return None;
        }
        let given = variable(GIVEN).map(|id| format!("given {id}"));
        let told = || {
            let mut groups = launcher.jobs.iter();
            groups.find_map(|names| {
                let values = names.iter().map(|name| variable(name));
                Some(values.collect::<Option<Vec<String>>>()?.join("."))
            })
        };
        Some(Job {
            id: given.or_else(told).or_else(|| above(launcher.rank))?,
            rank,
            size,
            launcher: launcher.command,
        })
    }

    /// For one of the ranks on a host, which speaks for the others as long as it keeps this.
    pub(crate) fn voice(&self) -> Option<UnixListener> {
        let address = SocketAddr::from_abstract_name(format!("ompfuse-{}", self.key())).ok()?;
        UnixListener::bind_addr(&address).ok()
    }

    /// Names a file.
    pub(crate) fn key(&self) -> String {
        let user = rustix::process::geteuid().as_raw();
        let hash = Sha256::digest(format!("{user} {} {}", self.size, self.id));
        hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// How to start the launcher by this command, which may then do so several times. `program`: with its arguments.
    pub(crate) fn instead(&self, program: &[OsString]) -> String {
        let all: Vec<String> = std::env::args_os()
            .skip(1)
            .map(|a| a.to_string_lossy().into_owned())
            .collect();
        let (options, program) = all.split_at(all.len().saturating_sub(program.len()));
        let options = match options {
            [rest @ .., dashes] if dashes == "--" => rest,
            all => all,
        };
        format!(
            "ompfuse {} -- {} -n {} {}",
            options.join(" "),
            self.launcher,
            self.size,
            program.join(" ")
        )
    }
}

/// The nearest process above this one that is no rank itself: by number and start, on this host.
fn launching_process(rank: &str) -> Option<String> {
    const DEPTH: usize = 100;
    let start = format!("{rank}=");
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..DEPTH {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let is_rank = environment
            .split(|&b| b == 0)
            .any(|v| v.starts_with(start.as_bytes()));
        if !is_rank {
            break;
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?; // a name may have anything in it
        pid = rest.split_whitespace().nth(1)?.parse().ok()?;
    }
    let started = crate::process::start_time(pid)?;
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    Some(format!("process {pid} of {host} since {started}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<(String, u32, u32)> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Job::of(variable, |_| Some("above".to_owned())).map(|j| (j.id, j.rank, j.size))
    }

    #[test]
    fn ranks_of_every_launcher() {
        let slurm = [
            ("SLURM_JOB_ID", "7"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_PROCID", "3"),
            ("SLURM_STEP_NUM_TASKS", "4"),
        ];
        assert_eq!(of(&slurm), Some(("7.0".to_owned(), 3, 4)));
        let open_mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("PMIX_RANK", "1"),
            ("PMIX_NAMESPACE", "660340737"),
        ];
        let both = [&slurm[..], &open_mpi[..]].concat();
        assert_eq!(of(&both), Some(("660340737".to_owned(), 1, 2)));
        let hydra = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
        assert_eq!(of(&hydra), Some(("above".to_owned(), 0, 2)));
        let given = [&hydra[..], &[("OMPFUSE_JOB", "x")]].concat();
        assert_eq!(of(&given), Some(("given x".to_owned(), 0, 2)));
        let pmix = [
            ("PMIX_RANK", "1"),
            ("PMIX_NAMESPACE", "slurm.pmix.7.0"),
            ("SLURM_STEP_NUM_TASKS", "2"),
        ];
        assert_eq!(of(&pmix), Some(("slurm.pmix.7.0".to_owned(), 1, 2)));
    }

    #[test]
    fn what_is_alone_is_no_job() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None);
        assert_eq!(of(&[("PMI_RANK", "2"), ("PMI_SIZE", "2")]), None);
        assert_eq!(of(&[("PMI_RANK", "x"), ("PMI_SIZE", "2")]), None);
        // A batch script of Slurm.
        let script = [
            ("SLURM_JOB_ID", "7"),
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "4"),
        ];
        assert_eq!(of(&script), None);
    }

    #[test]
    fn keys_tell_jobs_apart() {
        let job = |id: &str, size| Job {
            id: id.to_owned(),
            rank: 0,
            size,
            launcher: "mpirun",
        };
        assert_eq!(
            job("a", 2).key(),
            Job {
                rank: 1,
                ..job("a", 2)
            }
            .key()
        );
        assert_ne!(job("a", 2).key(), job("b", 2).key());
        assert_ne!(job("a", 2).key(), job("a", 3).key());
        assert_eq!(job("a", 2).key().len(), 16);
    }
}
