//! The example project's pipeline, run as its CI files run it, in a clean repository.

mod action;

use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, has, repository};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The CI files of the example.
const CI: [&str; 2] = [".github/workflows/performance.yml", ".gitlab-ci.yml"];

fn example() -> PathBuf {
    repository().join("examples/pipeline")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What a CI file runs of the script.
fn steps(file: &str) -> Vec<String> {
    let text = read(&example().join(file));
    let step = |line: &str| {
        let line = line.trim().trim_start_matches("- ");
        let line = line.trim_start_matches("run: ");
        line.starts_with("ci/perf.sh").then(|| line.to_owned())
    };
    text.lines().filter_map(step).collect()
}

/// The commands of both CI files: for counts, for times, to keep what was measured, and to show what was kept.
fn commands() -> [String; 4] {
    let steps = CI.iter().map(|file| steps(file));
    let [github, gitlab]: [Vec<String>; 2] = steps.collect::<Vec<_>>().try_into().expect("two");
    assert_eq!(github, gitlab);
    github.try_into().expect("four commands")
}

/// A clean repository with the example, and `ompfuse` on the PATH.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    /// `None`: this machine lacks a tool.
    fn begin() -> Option<Project> {
        if !(has("gcc") && has("make") && has("git")) {
            return None;
        }
        let folder = tempfile::tempdir().expect("there is room for a project");
        let project = Project { folder };
        let bin = project.folder.path().join("bin");
        std::fs::create_dir(&bin).expect("the folder is ours");
        std::os::unix::fs::symlink(command::path(), bin.join("ompfuse")).expect("a link");
        let files = "Makefile waves.c kernels.c waves.h ci .github .gitlab-ci.yml .gitignore";
        let copy = format!(
            "mkdir ../project && cd ../project && git init -q -b main && cp -r $(printf '{}/%s ' {files}) .",
            example().display()
        );
        let mut copying = project.shell(&copy);
        process::run(copying.current_dir(&bin)).ok("a copy");
        project.commit("Begin");
        Some(project)
    }

    /// With a committed baseline.
    fn with_baseline() -> Option<Project> {
        let project = Project::begin()?;
        let [counts, ..] = commands();
        let output = project.run(&counts, false).ok("no baseline");
        assert!(
            output.text().contains("no perf/baseline.json.gz yet"),
            "{output:?}"
        );
        project.run("ci/perf.sh accept", false).ok("accept");
        project.commit("Accept");
        let clean = project.run("git status --porcelain", false).ok("git");
        assert_eq!(clean.text(), "", "what a run leaves behind is ignored");
        Some(project)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("sh");
        process::clean(&mut shell, 2);
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.folder.path().join("bin");
        shell
            .args(["-c", script])
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .env("BASE", "HEAD~1")
            .env_remove("GITHUB_ACTIONS");
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            shell.env_remove(name);
        }
        shell
    }

    fn run(&self, script: &str, on_github: bool) -> Output {
        let mut shell = self.shell(script);
        if on_github {
            shell.env("GITHUB_ACTIONS", "true");
        }
        process::run(shell.current_dir(self.root()))
    }

    /// In another clone.
    fn run_in(&self, clone: &str, script: &str) -> Output {
        let mut shell = self.shell(script);
        process::run(shell.current_dir(self.folder.path().join(clone)))
    }

    fn commit(&self, subject: &str) {
        let script = format!(
            "git add -A && git -c user.name=test -c user.email=test@localhost commit -q -m '{subject}'"
        );
        self.run(&script, false).ok(subject);
    }

    /// A commit on top of the accepted one that replaces text of the kernels. Gives the line of `shown` after that.
    fn change(&self, old: &str, new: &str, shown: &str) -> usize {
        self.run("git checkout -q -B change main", false)
            .ok("checkout");
        let path = self.root().join("kernels.c");
        let text = read(&path);
        assert!(text.contains(old), "kernels.c has no {old:?}");
        let text = text.replacen(old, new, 1);
        std::fs::write(&path, &text).expect("the file is ours");
        self.commit("Change");
        let line = text.lines().position(|l| l.contains(shown));
        line.unwrap_or_else(|| panic!("kernels.c has no {shown:?}")) + 1
    }

    fn report(&self, name: &str) -> String {
        read(&self.root().join("perf/out").join(name))
    }
}

/// The expressions that the script judges counts by.
fn gates_of_counts() -> Vec<String> {
    let script = read(&example().join("ci/perf.sh"));
    let (counts, _) = script
        .split_once("compare_times() {")
        .expect("the script compares times, too");
    let gates = counts.split("--fail-on '").skip(1);
    let gates = gates.filter_map(|rest| Some(rest.split_once('\'')?.0.to_owned()));
    let gates: Vec<String> = gates.collect();
    assert!(!gates.is_empty());
    gates
}

#[test]
fn counts_name_what_got_worse_and_nothing_else() {
    let Some(project) = Project::with_baseline() else {
        return;
    };
    let [counts, ..] = commands();

    // Lines move, nothing else changes.
    project.change("/* Terms", "/* A remark. */\n\n/* Terms", "TERMS 100");
    let output = project.run(&counts, false).ok("without a change");
    assert!(output.text().contains("passed"), "{output:?}");
    assert!(!output.errors().contains("not patched"), "{output:?}");

    // 1 % more in one loop.
    let loop_of_step = "#pragma omp parallel for schedule(static) reduction";
    let line = project.change("TERMS 100", "TERMS 101", loop_of_step);
    let output = project.run(&counts, true);
    assert_eq!(output.status, 3, "{output:?}");
    let errors: Vec<String> = output
        .text()
        .lines()
        .filter(|l| l.starts_with("::error"))
        .map(str::to_owned)
        .collect();
    let [error] = &errors[..] else {
        panic!("one error: {output:?}");
    };
    assert!(
        error.starts_with(&format!("::error file=kernels.c,line={line},")),
        "{error}"
    );
    let is_told = |change: &str| error.contains(&format!("{change}%25 instructions"));
    assert!(is_told("+0.9") || is_told("+1.0"), "{error}");
    let place = format!("kernels.c:{line}");
    let junit = project.report("counts.xml");
    assert!(
        junit.contains("failures=\"1\"") && junit.contains(&place),
        "{junit}"
    );
    let quality = project.report("counts.json");
    assert!(quality.contains("\"kernels.c\""), "{quality}");

    // Another schedule.
    project.change(
        "schedule(static) reduction",
        "schedule(dynamic) reduction",
        "reduction",
    );
    let output = project.run(&counts, false);
    assert_eq!(output.status, 3, "{output:?}");
    let markdown = project.report("counts.md");
    assert!(
        markdown.contains("its schedule is dynamic, was static"),
        "{markdown}"
    );

    // Half of the chunk.
    project.change("dynamic, 128", "dynamic, 64", "dynamic, 64");
    let output = project.run(&counts, false);
    assert_eq!(output.status, 3, "{output:?}");
    assert!(output.text().starts_with("FAILED"), "{output:?}");
    let markdown = project.report("counts.md");
    assert!(
        markdown.contains("its work is in 128 units, was in 64"),
        "{markdown}"
    );
}

/// Runs with each number of threads, of which each is compared with the first.
const RUNS: usize = 4;

#[test]
fn runs_without_a_change_raise_no_alarm() {
    let Some(project) = Project::begin() else {
        return;
    };
    let build = "make --silent waves";
    project.run(build, false).ok(build);
    let gates = gates_of_counts();
    let gates: String = gates.iter().map(|g| format!(" --fail-on '{g}'")).collect();
    for threads in [1, 2, 4] {
        let record = format!(
            "export OMP_NUM_THREADS={threads}; ompfuse record --quiet --count --repeat {RUNS} --events none -o {threads} -- ./waves"
        );
        project.run(&record, false).ok(&record);
        let baseline = "ompfuse baseline --counts";
        for run in 1..=RUNS {
            let make = format!("{baseline} {threads}/run-{run:04} -o {run}.json.gz");
            project.run(&make, false).ok(&make);
            let diff = format!("ompfuse diff 1.json.gz {run}.json.gz {gates}");
            project.run(&diff, false).ok(&diff);
        }
    }
}

/// Threads wait at a barrier for one that sleeps: some 300 times, longer than everything else takes, so that it is found on any machine.
const BARRIER: &str = "        extern int usleep(unsigned), omp_get_thread_num(void);
        if (omp_get_thread_num() == 0)
            usleep(5000);
#pragma omp barrier
";

#[test]
fn times_show_a_barrier() {
    let Some(project) = Project::begin() else {
        return;
    };
    let [_, times, ..] = commands();
    let remark = "        /* Each thread has its own cells";
    project.change(remark, &format!("{BARRIER}{remark}"), remark);
    let output = project.run(&times, false);
    assert_eq!(output.status, 3, "{output:?}");
    // Whether that is synchronization or limited parallelism depends on what else the threads do: its time is longer in any case.
    let expected = "FAILED region(\"*\").time>25%: the parallel region at kernels.c:";
    let is_named = output.text().lines().any(|l| l.starts_with(expected));
    assert!(is_named, "{output:?}");
}

/// How often times are compared: each comparison has a level of 1 % for each expression.
const ATTEMPTS: usize = 2;

#[test]
#[ignore = "by time, on an idle machine: half a minute"]
fn times_show_an_empty_barrier_and_raise_no_alarm_without_a_change() {
    let Some(project) = Project::begin() else {
        return;
    };
    let [_, times, ..] = commands();
    project.change("/* Terms", "/* A remark. */\n/* Terms", "TERMS");
    let alarms = (0..ATTEMPTS).map(|_| project.run(&times, false));
    let calm = alarms.into_iter().find(|output| output.status != 3);
    calm.expect("no alarm twice").ok("without a change");

    let remark = "        /* Each thread has its own cells";
    let barrier = format!("#pragma omp barrier\n{remark}");
    project.change(remark, &barrier, remark);
    let expected = "FAILED region(\"*\").synchronization>50%: the parallel region at kernels.c:";
    let mut outputs = vec![];
    let is_found = (0..ATTEMPTS).any(|_| {
        let output = project.run(&times, false);
        let is_named = output.text().lines().any(|l| l.starts_with(expected));
        let is_found = output.status == 3 && is_named;
        outputs.push(output);
        is_found
    });
    assert!(is_found, "{outputs:?}");
}

/// Commits of the history, and those of them that change something: the number of terms, and the chunk of a loop.
const COMMITS: usize = 30;
const CHANGES: [(usize, &str, &str); 2] = [
    (11, "TERMS 100", "TERMS 103"),
    (21, "dynamic, 128", "dynamic, 64"),
];

/// Clones that measure at once, as runners of a pipeline do.
const RUNNERS: usize = 2;

#[test]
fn a_history_of_thirty_commits_names_the_two_that_change_something() {
    let Some(project) = Project::begin() else {
        return;
    };
    let origin = "git init -q --bare -b main ../origin.git && git remote add origin ../origin.git";
    project.run(origin, false).ok(origin);
    let kernels = project.root().join("kernels.c");
    for n in 1..COMMITS {
        let mut text = read(&kernels);
        match CHANGES.iter().find(|(at, ..)| *at == n) {
            Some((_, old, new)) => {
                assert!(text.contains(old), "kernels.c has no {old:?}");
                text = text.replacen(old, new, 1);
            }
            // All lines move.
            None if n % 5 == 0 => text.insert_str(0, &format!("/* Remark {n}. */\n")),
            None => std::fs::write(project.root().join("NOTES"), n.to_string()).expect("ours"),
        }
        if text != read(&kernels) {
            std::fs::write(&kernels, text).expect("the folder is ours");
        }
        // Behind the first commit, which was made now.
        let date = format!("2098-11-{:02}T12:00:00+01:00", n + 1);
        let commit = format!(
            "git add -A && GIT_COMMITTER_DATE={date} git -c user.name=test -c user.email=test@localhost commit -q -m 'Commit {n}'"
        );
        project.run(&commit, false).ok(&commit);
    }
    let push = "git push -q origin main && git rev-list --reverse main";
    let pushed = project.run(push, false).ok(push).text();
    let hashes: Vec<&str> = pushed.split_whitespace().collect();
    assert_eq!(hashes.len(), COMMITS);

    let [counts, _, keep, show] = commands();
    std::thread::scope(|scope| {
        for runner in 0..RUNNERS {
            let (project, hashes, counts, keep) = (&project, &hashes, &counts, &keep);
            scope.spawn(move || {
                let clone = format!("runner-{runner}");
                let make = format!("git clone -q ../origin.git ../{clone}");
                project.run(&make, false).ok(&make);
                for hash in hashes.iter().skip(runner).step_by(RUNNERS) {
                    let script = format!("git checkout -q --detach {hash} && {counts} && {keep}");
                    project.run_in(&clone, &script).ok(&script);
                }
            });
        }
    });

    let clone = "git clone -q ../origin.git ../clean";
    project.run(clone, false).ok(clone);
    let shown = project.run_in("clean", &show).ok(&show);
    let text = shown.text();
    assert!(text.lines().count() <= 40, "{text}");
    let json = "ompfuse history origin/perf-history:. --format json";
    let json = project.run_in("clean", json).ok(json);
    let found: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(found["commits"], COMMITS, "{text}");
    let [series] = &found["series"].as_array().expect("series")[..] else {
        panic!("one series: {text}");
    };
    let mut named: Vec<&str> = vec![];
    for curve in series["curves"].as_array().expect("curves") {
        for change in curve["changes"].as_array().expect("changes") {
            let at = change["at"].as_u64().expect("a position") as usize;
            named.push(series["commits"][at]["commit"].as_str().expect("a hash"));
        }
    }
    named.sort_unstable();
    named.dedup();
    let mut expected: Vec<&str> = CHANGES.iter().map(|(at, ..)| hashes[*at]).collect();
    expected.sort_unstable();
    assert_eq!(named, expected, "{text}");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("instructions:exact: "), "{text}");
    let out = project.folder.path().join("clean/perf/out");
    let page = read(&out.join("history.html"));
    let badge = read(&out.join("badge.svg"));
    for hash in expected {
        assert!(
            text.contains(&hash[..7]) && page.contains(&hash[..7]),
            "{text}"
        );
    }
    assert!(
        badge.contains(&format!("since {}", &hashes[CHANGES[1].0][..7])),
        "{badge}"
    );
}
