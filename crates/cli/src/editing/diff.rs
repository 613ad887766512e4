//! A change as people read it.

use std::path::Path;
use std::time::Duration;

use similar::TextDiff;

/// How long the shortest diff is looked for; after that, a longer one is as right.
const LIMIT: Duration = Duration::from_secs(2);

/// The change of a file as a unified diff; empty where nothing changes. Ends of lines are shown as they are.
pub(crate) fn unified(path: &Path, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    let name = |bytes: Option<&[u8]>| match bytes {
        Some(_) => path.display().to_string(),
        None => "/dev/null".to_owned(),
    };
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let (old, new) = (text(before), text(after));
    let diff = TextDiff::configure().timeout(LIMIT).diff_lines(&old, &new);
    diff.unified_diff().header(&name(before), &name(after)).to_string()
}
