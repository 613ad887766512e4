//! What is said to an agent program that has a format of its own.

use std::env;

use unstuck_judge::ladder::words;
use unstuck_judge::rewrite::Rewrite;
use unstuck_judge::{Lang, quote};
use unstuck_store::{Mode, Retry, Said, Stance};
use unstuck_wire::hook::{Attended, Finished, Happened, Host, Letter, Reply};

use super::{Post, Told};
use crate::cellar;
use crate::deadline::Deadline;
use crate::settings;

/// Of so many calls that nobody heard of again an agent is told at once; of more, none is worth reading.
const NOTICES: usize = 3;
/// Maximum length of the words of a call that are quoted, in characters.
const QUOTED: usize = 160;

impl Post<'_> {
    /// Records what a letter tells, and says what is to be answered.
    pub(crate) fn reply(&mut self, letter: &Letter, deadline: &Deadline) -> Reply {
        let now = cellar::now();
        let mut who = self.who(letter, now);
        let (mut facts, mut tables): (Vec<String>, Vec<String>) = Default::default();
        let mut decided = None;
        for event in &letter.events {
            let told = self.take(letter, who.clone(), event, now);
            // The hook was heard once, however much it told.
            who.hook = Default::default();
            match self.respond(letter, event, told, deadline) {
                Reply::Silent => {}
                Reply::Tell { text, table } => {
                    facts.push(text);
                    tables.push(table);
                }
                // What else the letter tells is recorded all the same.
                reply @ (Reply::Deny { .. }
                | Reply::Ask { .. }
                | Reply::Halt { .. }
                | Reply::Rewrite { .. }
                | Reply::Again { .. }) => decided = decided.or(Some(reply)),
            }
        }
        facts.dedup();
        tables.retain(|table| !table.is_empty());
        tables.dedup();
        decided.unwrap_or_else(|| tell(facts, tables.join("\n\n")))
    }

    fn respond(&self, letter: &Letter, event: &Happened, told: Told, deadline: &Deadline) -> Reply {
        let mut warning = None;
        match told.unprotected {
            None | Some(Reply::Silent) => {}
            Some(Reply::Tell { text, .. }) => warning = Some(text),
            Some(against) => return against,
        }
        let said = told.answer.said;
        if said.mode == Mode::Shadow {
            // Where nothing can be recorded the mode is not known, and whether the warning is given was settled before.
            return tell(warning.into_iter().collect(), String::new());
        }
        let lang = self.desk.lang;
        let mut facts: Vec<String> =
            said.sealed.iter().take(NOTICES).map(|sealed| sealed.text(lang)).chain(warning).collect();
        let mut table = String::new();
        match event {
            Happened::Before { .. } => match (said.stance, told.rewrite) {
                (Stance::Go, Some(rewrite)) => return self.rewriting(rewrite),
                // What is said before a call comes only with its result, which has its own words, but for what those do not
                // know.
                (Stance::Go, None) => facts.extend(said.foreseen),
                (Stance::Hold { .. }, _) => {}
                (Stance::Refuse, _) => return Reply::Deny { reason: said.text.unwrap_or_default() },
                (Stance::Halt, _) => return self.halt(letter, said),
            },
            Happened::After(finished) => match said.retry {
                Some(Retry::Again { wait, attempt, of, .. }) if letter.honours().again => {
                    deadline.pause(wait);
                    return again(finished, attempt, of, lang);
                }
                Some(_) | None if said.stance == Stance::Halt && letter.honours().halt => {
                    let (reason, table) = (said.text.unwrap_or_default(), said.table.unwrap_or_default());
                    return Reply::Halt { reason, table };
                }
                // The proxy around the server has told the model already.
                Some(_) | None if told.is_explained => {}
                Some(_) | None => {
                    facts.extend(said.text);
                    table = said.table.unwrap_or_default();
                }
            },
            Happened::Began(_) => facts.extend(said.text),
            Happened::Ask { .. }
            | Happened::Approved { .. }
            | Happened::Denied { .. }
            | Happened::Later { .. }
            | Happened::User
            | Happened::AgentDone
            | Happened::End => {}
        }
        tell(facts, table)
    }

    /// A call that runs with other words.
    fn rewriting(&self, rewrite: Rewrite) -> Reply {
        let text = self.cleaner.line(&rewritten(&rewrite, self.desk.lang), 600).into_string();
        Reply::Rewrite { text, input: rewrite.input }
    }

    /// A run that should stop. Where a person is there to ask, the person is asked first.
    fn halt(&self, letter: &Letter, said: Said) -> Reply {
        let reason = said.text.unwrap_or_default();
        let table = said.table.unwrap_or_default();
        match self.is_attended(letter) && letter.honours().ask {
            true => Reply::Ask { reason: format!("{reason}\n\n{table}") },
            false => Reply::Halt { reason, table },
        }
    }

    pub(super) fn is_attended(&self, letter: &Letter) -> bool {
        match self.settings.attended {
            settings::Attended::Yes => true,
            settings::Attended::No => false,
            settings::Attended::Auto => match (letter.attended, letter.host) {
                (Attended::Yes, _) => true,
                (Attended::No, _) => false,
                // It says so to its hooks, though not in the payload.
                (Attended::Unsaid, Host::Claude) => {
                    env::var("CLAUDE_CODE_SESSION_ATTENDED").is_ok_and(|said| said == "1")
                }
                // A program that asks in our own format decides itself what a halt means.
                (Attended::Unsaid, Host::Generic) => true,
                (Attended::Unsaid, _) => false,
            },
        }
    }
}

/// What model and person are told of a call that runs with other words.
pub(super) fn rewritten(rewrite: &Rewrite, lang: Lang) -> String {
    let [to, from] = [&rewrite.to, &rewrite.from].map(|words| quote::call(words, QUOTED));
    let instead = match lang {
        Lang::En => format!("The call was run with {to} instead of {from}."),
        Lang::Zh => format!("该调用已改用 {to} 代替 {from} 运行。"),
    };
    words::joined([Some(&*rewrite.text(lang)), Some(&instead)])
}

fn tell(facts: Vec<String>, table: String) -> Reply {
    match facts.is_empty() && table.is_empty() {
        true => Reply::Silent,
        false => Reply::Tell { text: facts.join("\n\n"), table },
    }
}

fn again(finished: &Finished, attempt: u32, of: u32, lang: Lang) -> Reply {
    let call = &finished.observation.call;
    let text = match lang {
        Lang::En => format!("The first result may pass by itself; this is attempt {attempt} of {of}."),
        Lang::Zh => format!("第一次的失败可能会自行消失；这是第 {attempt}/{of} 次尝试。"),
    };
    Reply::Again { tool: call.tool.clone(), input: call.input.clone(), text }
}
