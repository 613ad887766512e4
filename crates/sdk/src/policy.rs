//! On what terms a toolbox works.

use std::time::Duration;

use unstuck_judge::Lang;
use unstuck_judge::ladder::{Preset, Settings};
use unstuck_judge::retry::{self, PolicyError};
use unstuck_store::{Mode, Modes};

/// On what terms a toolbox works: limits, retries, and how far it may go against an agent that repeats itself.
///
/// ```
/// use std::time::Duration;
/// use unstuck::Policy;
///
/// let policy = Policy::default().timeout(Duration::from_secs(20)).retries(2);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Policy {
    pub(crate) timeout: Duration,
    pub(crate) deadline: Option<Duration>,
    pub(crate) cancel_grace: Duration,
    pub(crate) hook_timeout: Duration,
    pub(crate) concurrency: usize,
    pub(crate) max_input: usize,
    pub(crate) max_depth: usize,
    pub(crate) retries: Option<u8>,
    pub(crate) retry: retry::Policy,
    pub(crate) preset: Preset,
    pub(crate) modes: Modes,
    pub(crate) lang: Lang,
    pub(crate) repairs: bool,
    pub(crate) is_lenient: bool,
    pub(crate) sees_a_part: bool,
}

impl Default for Policy {
    /// A minute for an attempt, eight calls at once, retries as the built-in table says, refusals after repeats.
    fn default() -> Policy {
        Policy {
            timeout: Duration::from_secs(60),
            deadline: None,
            cancel_grace: Duration::from_millis(100),
            hook_timeout: Duration::from_secs(5),
            concurrency: 8,
            max_input: 64 * 1024 * 1024,
            max_depth: 128,
            retries: None,
            retry: retry::Policy::built_in().clone(),
            preset: Preset::Adaptive,
            modes: Modes::all(Mode::Enforce),
            lang: Lang::En,
            repairs: false,
            is_lenient: false,
            sees_a_part: false,
        }
    }
}

impl Policy {
    /// How long one attempt may take, where the tool does not say.
    pub fn timeout(self, limit: Duration) -> Policy {
        Policy { timeout: limit, ..self }
    }

    /// The time that all attempts at a call and everything between them share. What a person takes to decide does not count.
    pub fn deadline(self, limit: Duration) -> Policy {
        Policy { deadline: Some(limit), ..self }
    }

    /// How long a tool that was cancelled may take to clean up before it is dropped.
    pub fn cancel_grace(self, grace: Duration) -> Policy {
        Policy { cancel_grace: grace, ..self }
    }

    /// How long a hook may take before it is left out.
    pub fn hook_timeout(self, limit: Duration) -> Policy {
        Policy { hook_timeout: limit, ..self }
    }

    /// How many calls run at once, from one to a million; the others wait their turn. One tool alone takes at most three quarters of
    /// the places. What a tool itself calls needs none.
    pub fn concurrency(self, calls: usize) -> Policy {
        Policy { concurrency: calls.clamp(1, 1_000_000), ..self }
    }

    /// The most bytes of arguments; a call with more is refused as invalid.
    pub fn max_input(self, bytes: usize) -> Policy {
        Policy { max_input: bytes, ..self }
    }

    /// The deepest nesting of arguments; a call with more is refused as invalid.
    pub fn max_depth(self, levels: usize) -> Policy {
        Policy { max_depth: levels, ..self }
    }

    /// The most retries of a failure that may be retried at all; 0 for none.
    pub fn retries(self, retries: u8) -> Policy {
        Policy { retries: Some(retries), ..self }
    }

    /// Lays a policy file over the table of retries and waits, as `unstuck run` reads it.
    ///
    /// # Errors
    /// Where the text is not TOML, or names something that is no part of a policy.
    pub fn overlaid(self, file: &str) -> Result<Policy, PolicyError> {
        Ok(Policy { retry: self.retry.overlaid(file)?, ..self })
    }

    /// How soon an agent that repeats itself is told, and refused.
    pub fn ladder(self, preset: Preset) -> Policy {
        Policy { preset, ..self }
    }

    /// The agent has other tools than those of this toolbox: what was not seen to change may have changed. A call that failed is
    /// refused only after one more attempt failed alike, and may be tried again after half a minute; that other calls fail by the
    /// same cause is told and refuses nothing, and answers may be the same as often as they like.
    pub fn partial_view(self) -> Policy {
        Policy { sees_a_part: true, ..self }
    }

    /// How far the ladder may go with all tools that [`mode_of`](Policy::mode_of) does not name.
    pub fn mode(self, mode: Mode) -> Policy {
        Policy { modes: Modes { others: mode, ..self.modes }, ..self }
    }

    /// How far the ladder may go with one tool, or with all whose names begin like it where it ends in `*`.
    pub fn mode_of(mut self, tool: impl Into<String>, mode: Mode) -> Policy {
        self.modes.named.push((tool.into(), mode));
        self
    }

    /// The language of what is said to the model.
    pub fn language(self, lang: Lang) -> Policy {
        Policy { lang, ..self }
    }

    /// Arguments that differ from the schema only in form (`"3"` for `3`) are put right instead of refused; the result says
    /// what was changed.
    pub fn repair_arguments(self) -> Policy {
        Policy { repairs: true, ..self }
    }

    /// Only clear mistakes in arguments are answered: a field that has to be there is missing, or a value is of a type that
    /// cannot be meant. All else is left to the tool, for tools that check their arguments themselves and may read more than
    /// their schema says: texts for numbers, `null` for nothing, fields that the schema does not name.
    pub fn lenient_arguments(self) -> Policy {
        Policy { is_lenient: true, ..self }
    }

    /// The numbers of the ladder.
    pub(crate) fn ladder_settings(&self) -> Settings {
        let settings = Settings::of(self.preset);
        if self.sees_a_part { settings.seeing_a_part() } else { settings }
    }
}
