//! Looks whether everything that should be alive is, and says what to do where it is not. It changes no
//! file of an agent, and what it tries out, it tries in a folder of its own; the store is opened like by any other reader.

mod agent;
mod entries;
mod finding;
mod heard;
mod house;
mod safe;
mod self_test;
mod servers;
mod store;
mod trust;

use std::path::PathBuf;

use unstuck_judge::Lang;

use crate::agents::{AGENTS, Agent, Places};
use crate::cellar::{self, Cellar};
use crate::editing::{Book, Ledger};
use crate::plain;

pub(crate) use finding::{Finding, Severity};

/// One visit: what is looked at, and what was found so far.
pub(crate) struct Doctor<'a> {
    cellar: &'a Cellar,
    lang: Lang,
    now: u64,
    /// The program that runs, under the name it was started by.
    program: Option<PathBuf>,
    findings: Vec<Finding>,
}

impl<'a> Doctor<'a> {
    pub(crate) fn new(cellar: &'a Cellar, lang: Lang) -> Doctor<'a> {
        let program = std::env::current_exe().ok();
        Doctor { cellar, lang, now: cellar::now(), program, findings: Vec::new() }
    }

    /// Looks at all there is: ourselves, the store, and the agents that are named, or those that are on this machine.
    pub(crate) fn examine(mut self, named: &[&'static Agent]) -> Vec<Finding> {
        self.look_at_the_house();
        self.try_the_program();
        self.look_at_the_store();
        self.look_at_the_safe();
        self.look_at_our_times();
        let places = Places::here();
        let ledger = self.cellar.folder().ok().map(|state| Ledger::read(state, Book::Hooks));
        if let Some(Err(error)) = &ledger {
            let (what, todo) = (error.in_words(self.lang), error.hint(self.lang));
            self.warn("unstuck", "ledger", plain::line(&what).into_owned(), todo);
        }
        let ledger = ledger.and_then(Result::ok);
        let heard = self.cellar.to_read().and_then(|store| Ok(store.heard()?)).unwrap_or_default();
        for agent in &AGENTS {
            let is_asked = match named {
                [] => places.has(agent) || heard.iter().any(|heard| heard.host == agent.host.word()),
                named => named.iter().any(|other| other.host == agent.host),
            };
            if is_asked {
                self.look_at_agent(&places, agent, ledger.as_ref(), &heard);
            }
        }
        let servers = self.cellar.folder().ok().map(|state| Ledger::read(state, Book::Servers));
        if let Some(Err(error)) = &servers {
            let (what, todo) = (error.in_words(self.lang), error.hint(self.lang));
            self.warn("unstuck", "ledger", plain::line(&what).into_owned(), todo);
        }
        let words: Vec<&str> = named.iter().map(|agent| agent.host.word()).collect();
        self.look_at_servers(&places, servers.and_then(Result::ok).as_ref(), &words);
        self.findings
    }

    /// The text in the language of whoever reads it.
    fn say(&self, en: impl Into<String>, zh: impl Into<String>) -> String {
        match self.lang {
            Lang::En => en.into(),
            Lang::Zh => zh.into(),
        }
    }

    fn fine(&mut self, about: &str, check: &'static str, what: String) {
        self.found(Severity::Ok, about, check, what, None);
    }

    fn note(&mut self, about: &str, check: &'static str, what: String, todo: Option<String>) {
        self.found(Severity::Note, about, check, what, todo);
    }

    fn warn(&mut self, about: &str, check: &'static str, what: String, todo: impl Into<Option<String>>) {
        self.found(Severity::Warning, about, check, what, todo.into());
    }

    fn fail(&mut self, about: &str, check: &'static str, what: String, todo: impl Into<Option<String>>) {
        self.found(Severity::Error, about, check, what, todo.into());
    }

    fn found(
        &mut self,
        severity: Severity,
        about: &str,
        check: &'static str,
        what: String,
        todo: Option<String>,
    ) {
        self.findings.push(Finding { severity, about: about.to_owned(), check, what, todo });
    }
}
