//! An example in a rule file as the call it stands for, so that rules can be tried on what they promise to recognise.

use serde_json::{Value, json};

use super::file::{FileExample, FileRule};
use crate::call::{Call, Observation, Outcome};
use crate::diagnose::{Diagnosis, Rules};

impl FileExample {
    /// The call it stands for.
    pub fn observation(&self) -> Observation {
        let input = serde_json::from_str::<Value>(&self.command).ok().filter(Value::is_object);
        let outcome = match (self.exit, self.outcome.as_deref()) {
            (Some(code), _) => Outcome::Exited { code },
            (None, Some(word)) => Outcome::from_word(word).unwrap_or(Outcome::NoExitCode),
            (None, None) => Outcome::Exited { code: 1 },
        };
        Observation {
            call: Call::new(
                self.tool.as_deref().unwrap_or("Bash"),
                input.unwrap_or_else(|| json!({ "command": self.command })),
            ),
            outcome,
            http_status: self.status,
            stdout: self.stdout.clone().into_bytes(),
            stderr: self.stderr.clone().into_bytes(),
            merged: self.text.clone().into_bytes(),
        }
    }
}

/// An example that did not come out as its rule promises.
#[derive(Debug)]
pub struct Surprise<'r> {
    /// The example.
    pub example: &'r FileExample,
    /// Whether the rule should have fired.
    pub expected: bool,
    /// What was found instead.
    pub found: Diagnosis,
}

impl FileRule {
    /// Tries every example of this rule against all rules, and returns those that came out otherwise.
    ///
    /// A rule must be the answer to its first example. To the others a more specific rule of the same kind may answer.
    pub fn surprises(&self, rules: &Rules) -> Vec<Surprise<'_>> {
        let wanted = self.example.iter().enumerate().map(|(index, example)| (example, true, index > 0));
        let unwanted = self.not.iter().map(|example| (example, false, false));
        let tried = wanted.chain(unwanted).filter_map(|(example, expected, kind_will_do)| {
            let found = rules.diagnose(&example.observation());
            let fired = found.rule == self.id || (kind_will_do && found.kind.word() == self.kind);
            (fired != expected).then_some(Surprise { example, expected, found })
        });
        tried.collect()
    }
}
