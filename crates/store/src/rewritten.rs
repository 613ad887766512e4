//! A call that was to be refused and runs after all, because its input was exchanged for one that can work.

use serde_json::{Value, json};
use unstuck_judge::fingerprint::Fingerprint;
use unstuck_judge::ladder::{Print, Sight};
use unstuck_judge::{Lang, quote};
use unstuck_wire::clean::Clean;

/// What was exchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The row of the table of rewrites.
    pub row: &'static str,
    /// The words that were asked for.
    pub from: Clean,
    /// The words that run.
    pub to: Clean,
    /// The call that runs.
    pub call: Fingerprint,
    /// What the model is to be told with the result, where it cannot be told before.
    pub tell_later: Option<Clean>,
}

/// What ran as `call` in the place of another one, as the ladder sees it. That it went well says nothing of the call that was
/// asked for, nor of those that are meant alike.
pub(crate) fn own_sight(sight: &Sight, call: &str) -> Sight {
    let own = Print::of(&["rewritten", call]);
    Sight { exact: own, intent: own, approach: own, roots: Vec::new(), ..sight.clone() }
}

impl Rewritten {
    /// The body of its event.
    pub(crate) fn body(&self, lang: Lang) -> Value {
        let [to, from] = [&self.to, &self.from].map(|words| quote::call(words, quote::LINE));
        let text = match lang {
            Lang::En => format!("{to} instead of {from}"),
            Lang::Zh => format!("以 {to} 代替 {from}"),
        };
        json!({ "row": self.row, "from": &*self.from, "to": &*self.to, "text": text })
    }
}
