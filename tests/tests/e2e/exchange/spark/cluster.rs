//! A standalone master and two workers. As root each worker is in a network namespace of its own, behind a bridge; else all are on one host.

use super::{JAVA, Units};
use ompfuse_tests::process;
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The master's port.
const PORT: u16 = 17077;

/// Workers that are killed.
const KILLS: usize = 20;

/// A cluster, which ends with this.
struct Cluster {
    spark_class: PathBuf,
    /// Where logs are.
    folder: PathBuf,
    /// The bridge, and begin of the namespaces' names; `None`: all are on one host.
    network: Option<String>,
    master: Child,
    workers: [Option<Child>; 2],
}

fn succeeds(line: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stderr(Stdio::null());
    command.status().is_ok_and(|s| s.success())
}

/// A bridge with two namespaces behind it.
fn network() -> Option<String> {
    let owner = std::fs::metadata("/proc/self").expect("it is there").uid();
    let name = format!("omf{}", std::process::id() % 100_000);
    let mut line = format!(
        "ip link add {name} type bridge && ip addr add 10.213.77.1/24 dev {name} && ip link set {name} up"
    );
    for n in [0, 1] {
        line += &format!(
            " && ip netns add {name}-{n} && ip link add {name}v{n} type veth peer name eth0 netns {name}-{n} \
             && ip link set {name}v{n} master {name} up && ip -n {name}-{n} addr add 10.213.77.{}/24 dev eth0 \
             && ip -n {name}-{n} link set eth0 up && ip -n {name}-{n} link set lo up",
            n + 2
        );
    }
    if owner == 0 && succeeds(&line) {
        return Some(name);
    }
    println!("there are no network namespaces here: all workers are on one host");
    remove(&name);
    None
}

fn remove(network: &str) {
    for n in [0, 1] {
        succeeds(&format!("ip netns del {network}-{n}"));
    }
    succeeds(&format!("ip link del {network}"));
}

impl Cluster {
    fn new(spark: &Path, folder: &Path) -> Cluster {
        let mut find = Command::new(spark);
        find.args([
            "-c",
            "import os, pyspark; print(os.path.dirname(pyspark.__file__))",
        ]);
        let found = process::run(&mut find).ok("pyspark");
        let spark_class = Path::new(found.text().trim()).join("bin/spark-class");
        let network = network();
        let host = host_of(network.as_ref(), None);
        let mut master = Command::new(&spark_class);
        master.arg("org.apache.spark.deploy.master.Master");
        master.args(["--host", &host, "--port", &PORT.to_string()]);
        master.args(["--webui-port", "0"]);
        let mut cluster = Cluster {
            master: started(&mut master, &folder.join("master.log")),
            spark_class,
            folder: folder.to_owned(),
            network,
            workers: [None, None],
        };
        (0..2).for_each(|n| cluster.start(n));
        cluster
    }

    fn host(&self) -> String {
        host_of(self.network.as_ref(), None)
    }

    fn url(&self) -> String {
        format!("spark://{}:{PORT}", self.host())
    }

    /// Starts a worker.
    fn start(&mut self, n: usize) {
        let mut command = match &self.network {
            Some(name) => {
                let mut inside = Command::new("ip");
                inside.args(["netns", "exec", &format!("{name}-{n}")]);
                inside.arg(&self.spark_class);
                inside
            }
            None => Command::new(&self.spark_class),
        };
        command.arg("org.apache.spark.deploy.worker.Worker");
        command.args(["--host", &host_of(self.network.as_ref(), Some(n))]);
        command.args(["--cores", "1", "--memory", "1g", "--webui-port", "0"]);
        command
            .arg("--work-dir")
            .arg(self.folder.join(format!("work-{n}")));
        command.arg(self.url());
        let log = self.folder.join(format!("worker-{n}.log"));
        self.workers[n] = Some(started(&mut command, &log));
    }

    /// Kills a worker with all that it has started.
    fn kill(&mut self, n: usize) {
        if let Some(mut worker) = self.workers[n].take() {
            let all = descendants(worker.id());
            let _ = worker.kill();
            let all = all.iter().map(u32::to_string).collect::<Vec<_>>();
            succeeds(&format!("kill -9 {} 2>/dev/null", all.join(" ")));
            let _ = worker.wait();
        }
    }

    /// Whether the worker has an executor.
    fn is_at_work(&self, n: usize) -> bool {
        let worker = self.workers[n].as_ref().expect("it runs");
        !descendants(worker.id()).is_empty()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..2).for_each(|n| self.kill(n));
        let _ = self.master.kill();
        let _ = self.master.wait();
        if let Some(network) = &self.network {
            remove(network);
        }
    }
}

fn host_of(network: Option<&String>, worker: Option<usize>) -> String {
    match network {
        Some(_) => format!("10.213.77.{}", worker.map_or(1, |n| n + 2)),
        None => "127.0.0.1".to_owned(),
    }
}

fn started(command: &mut Command, log: &Path) -> Child {
    let log = std::fs::File::create(log).expect("there is room for a log");
    process::clean(command, 2);
    command.env(JAVA.0, JAVA.1);
    command.stderr(log).stdout(Stdio::null());
    command.spawn().expect("it starts")
}

/// Processes that a process has started, and these.
fn descendants(of: u32) -> HashSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").expect("it is there").flatten() {
        let name = entry.file_name();
        let Ok(pid) = name.to_string_lossy().parse::<u32>() else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|s| s.split(' ').nth(1));
        let parent = parent.and_then(|p| p.parse().ok()).unwrap_or(0);
        children.entry(parent).or_default().push(pid);
    }
    let (mut found, mut left) = (HashSet::new(), vec![of]);
    while let Some(pid) = left.pop() {
        for &child in children.get(&pid).into_iter().flatten() {
            if found.insert(child) {
                left.push(child);
            }
        }
    }
    found
}

/// A worker and its executor are killed at any moment of a job, which then ends with the same result.
#[test]
#[ignore = "tests/run.sh engine"]
fn a_killed_worker_changes_nothing() {
    let Some(units) = Units::of_generator(100_000) else {
        return;
    };
    units.combine_alone("lgl");
    let folder = PathBuf::from(units.path("cluster"));
    std::fs::create_dir(&folder).expect("there is room for a folder");
    let mut cluster = Cluster::new(&units.spark, &folder);
    let start = |cluster: &Cluster, into: &str| {
        let mut engine = units.engine(&cluster.url(), "lgl", into);
        engine.env("SPARK_LOCAL_IP", cluster.host());
        engine.stdout(Stdio::null()).spawn().expect("it starts")
    };
    let begun = Instant::now();
    let status = start(&cluster, "whole").wait().expect("it ran");
    assert!(status.success(), "{:?}", logs(&folder));
    let whole = begun.elapsed();
    let rows = units.same("whole");
    // Numbers of no meaning: xorshift.
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let (mut killed, mut after) = (0, vec![]);
    while killed < KILLS {
        let victim = killed % 2;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let into = format!("killed-{killed}");
        let mut job = start(&cluster, &into);
        let is_over = |job: &mut Child| job.try_wait().expect("it is ours").is_some();
        while !cluster.is_at_work(victim) && !is_over(&mut job) {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(whole.mul_f64((random % 1000) as f64 / 2000.0));
        let was_over = is_over(&mut job);
        cluster.kill(victim);
        let marks = std::fs::read_dir(units.path(&format!("{into}.partial/_done")));
        after.push(marks.map_or(0, Iterator::count));
        let status = job.wait().expect("it ran");
        assert!(status.success(), "{into}: {:?}", logs(&folder));
        assert_eq!(units.by_sql(&into), rows, "{into}");
        std::fs::remove_dir_all(units.path(&into)).expect("it was written");
        cluster.start(victim);
        killed += usize::from(!was_over);
    }
    println!("workers were killed when so many parts were finished: {after:?}");
}

/// What the master and the workers said last.
fn logs(folder: &Path) -> Vec<String> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let last = |text: String| {
        let lines: Vec<&str> = text.lines().rev().take(8).collect();
        lines.join("\n")
    };
    ["master.log", "worker-0.log", "worker-1.log"]
        .map(|name| last(read(name)))
        .to_vec()
}
