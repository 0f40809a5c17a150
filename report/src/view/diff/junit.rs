//! JUnit XML: a test case for each `--fail-on`; without any, one for the verdict.

use crate::words;
use ompfuse_compare::Diff;
use ompfuse_compare::gate::{Outcome, Verdict};
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

/// The XML.
///
/// # Errors
/// [`SerializeError`] if it can't be encoded.
pub fn junit(diff: &Diff, outcomes: &[Outcome]) -> Result<String, SerializeError> {
    let mut suite = TestSuite::new(format!("{} against {}", diff.b.name, diff.a.name));
    for outcome in outcomes {
        let status = match &outcome.verdict {
            Verdict::Error { .. } => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
                status.set_message(words::outcome(outcome));
                status
            }
            Verdict::Holds { hits } => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(words::outcome(outcome));
                let all = hits.iter().map(|hit| words::explained(hit, diff));
                status.set_description(all.collect::<Vec<_>>().join("\n"));
                status
            }
            Verdict::Undecided { .. } => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(words::outcome(outcome));
                status
            }
            Verdict::Passes => TestCaseStatus::success(),
        };
        let mut case = TestCase::new(outcome.expression.as_str(), status);
        case.set_classname("ompfuse.diff");
        if outcome.verdict == Verdict::Passes {
            case.set_system_out(words::outcome(outcome));
        }
        suite.add_test_case(case);
    }
    if outcomes.is_empty() {
        let mut case = TestCase::new("verdict", TestCaseStatus::success());
        case.set_classname("ompfuse.diff");
        case.set_system_out(words::verdict(diff));
        suite.add_test_case(case);
    }
    let mut report = Report::new("ompfuse diff");
    report.add_test_suite(suite);
    report.to_string()
}
