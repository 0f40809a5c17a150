//! What is not known of overheads.

use ompfuse_account::model::Incomplete;
use ompfuse_account::units::seconds;

/// Why overheads are not all known or not exact, in a line; `None` if they are.
pub fn incomplete(because: &[Incomplete]) -> Option<String> {
    let words: Vec<String> = because.iter().map(one).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn one(because: &Incomplete) -> String {
    match because {
        Incomplete::MissingParts { executions, of } => format!(
            "{executions} of {of} executions lack a thread's part: waiting at the region's end, startup and shutdown are \
                 unknown"
        ),
        Incomplete::SwitchedOff => {
            "regions were switched off meanwhile: their waiting is in no class, so work is unknown".to_owned()
        }
        Incomplete::Unplaced { seconds: s } => format!(
            "{} that were left out may have been here or elsewhere: work and waiting at the region's end are unknown",
            seconds(*s)
        ),
        Incomplete::ShutdownIncluded => {
            "waiting at the region's end includes its shutdown: tasks that were executed there were left out".to_owned()
        }
        Incomplete::TooLong => {
            "the recorded intervals take longer than the region, so no class is known".to_owned()
        }
    }
}
