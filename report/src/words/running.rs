//! Whether threads had processors.

use ompfuse_account::model::{Running, Sharing};
use ompfuse_account::units::{percent, several};
use ompfuse_fuse::summary::ProcessorLimit;

/// From this share of the machine's time on, what the hypervisor takes is told.
const STOLEN: f64 = 0.05;

/// What it means that threads had too few processors, or slow ones; `None` if they had enough.
pub fn told(running: &Running) -> Option<String> {
    let stolen = running.stolen.filter(|&share| share >= STOLEN);
    let stolen = stolen.map(|share| {
        format!(
            "the hypervisor took {} of this machine's processor time meanwhile: all times are longer than on a machine of its own",
            percent(share)
        )
    });
    let starved = running.is_starved.then(|| {
        lacked(running) + "; start-up, waits and imbalance below include waiting for a processor"
    });
    match (starved, stolen) {
        (Some(starved), Some(stolen)) => Some(format!("{starved}; {stolen}")),
        (starved, stolen) => starved.or(stolen),
    }
}

/// How long threads had no processor, and who had them.
pub fn lacked(running: &Running) -> String {
    let why = who_had_them(
        (running.threads, running.processors, running.limit),
        (running.sharing, running.taken),
    );
    format!(
        "threads had no processor for at least {} of the time that they worked in parallel regions: {why}",
        percent(running.without_share())
    )
}

/// Who had the processors that threads were ready for.
pub(super) fn who_had_them(
    (threads, processors, limit): (u64, Option<f64>, Option<ProcessorLimit>),
    (sharing, taken): (Option<Sharing>, Option<f64>),
) -> String {
    let Some(n) = processors else {
        return "how many processors there were is not known".to_owned();
    };
    let those = said(n);
    let of_them = |n: f64| if n == 1.0 { "it" } else { "them" };
    match sharing {
        Some(Sharing::Own) if limit == Some(ProcessorLimit::Quota) && threads == 1 => {
            format!("the quota of the control group, {those}, was used up")
        }
        Some(Sharing::Own) => shared(threads, &those, limit),
        Some(Sharing::Both) => {
            let taken = taken.map_or(String::new(), |t| {
                format!(", which had up to {} of {}", percent(t), of_them(n))
            });
            format!("{threads} threads share {those} with other programs{taken}")
        }
        Some(Sharing::Others) if threads as f64 <= n => {
            format!(
                "{} may use {those}, and {}",
                several(threads, "thread"),
                taken_by(threads, n)
            )
        }
        Some(Sharing::Others) => {
            let taken = taken.map_or(String::new(), |t| format!("up to {} of ", percent(t)));
            format!("other programs had {taken}the {those} that its {threads} threads may use")
        }
        None if threads > 1 && threads as f64 > n => {
            let may = match limit {
                Some(ProcessorLimit::Binding) => "are bound to",
                _ => "may use",
            };
            let it = of_them(n);
            format!("{threads} threads {may} {those}; who else used {it} is not known")
        }
        None => format!(
            "{} may use {those}, and {}",
            several(threads, "thread"),
            taken_by(threads, n)
        ),
    }
}

/// Who used processors of which there are enough. The kernel may also keep two threads on one for some milliseconds while another is idle.
fn taken_by(threads: u64, processors: f64) -> &'static str {
    match (threads, processors == 1.0) {
        (0..=1, true) => "other programs used it too",
        (0..=1, false) => "other programs used them too",
        _ => "other programs used them too, or some of its threads shared one",
    }
}

/// That there are more threads than processors, and why.
fn shared(threads: u64, those: &str, limit: Option<ProcessorLimit>) -> String {
    match limit {
        Some(ProcessorLimit::Binding) => format!("{threads} threads are bound to {those}"),
        Some(ProcessorLimit::Quota) => {
            format!("{threads} threads share {those}, the quota of the control group")
        }
        Some(ProcessorLimit::Affinity) => {
            format!("{threads} threads share {those}, as the affinity mask says")
        }
        None => format!("{threads} threads share {those}"),
    }
}

fn said(processors: f64) -> String {
    match processors {
        1.0 => "1 processor".to_owned(),
        n => format!("{n} processors"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of threads on two processors, for a second: this program used so much of them, and others so much at most.
    fn said(
        threads: u64,
        [used, taken]: [Option<f64>; 2],
        limit: Option<ProcessorLimit>,
        sharing: Option<Sharing>,
    ) -> String {
        let running = Running {
            threads,
            processes: 1,
            processors: Some(if limit.is_some() { 0.5 } else { 2.0 }),
            limit,
            stolen_s: None,
            stolen: None,
            used,
            taken,
            sharing,
            fewer: None,
            wanted_s: 4.0,
            not_running_s: 2.0,
            not_running: 0.5,
            worked_s: Some(4.0),
            without_processor_s: Some(2.0),
            queued_s: Some(2.0),
            asleep_s: Some(0.0),
            is_starved: true,
        };
        told(&running).expect("threads lacked processors")
    }

    #[test]
    fn who_had_the_processors_is_told_as_far_as_it_is_known() {
        let (own, both) = (Some(Sharing::Own), Some(Sharing::Both));
        let others = Some(Sharing::Others);
        let quota = Some(ProcessorLimit::Quota);
        for (threads, used, limit, sharing, part) in [
            (
                4,
                [Some(0.98), Some(0.02)],
                None,
                own,
                "4 threads share 2 processors;",
            ),
            (
                8,
                [Some(0.8), Some(0.2)],
                None,
                both,
                "with other programs, which had up to 20",
            ),
            (
                4,
                [Some(0.01), Some(0.99)],
                None,
                others,
                "other programs had up to 99",
            ),
            (
                4,
                [Some(0.5), None],
                None,
                None,
                "who else used them is not known",
            ),
            (
                1,
                [Some(0.5), Some(0.0)],
                quota,
                own,
                "the quota of the control group, 0.5 processors, was used up",
            ),
        ] {
            let said = said(threads, used, limit, sharing);
            assert!(said.contains(part), "{said}");
        }
    }
}
