//! Looks whether everything that should be alive is, and says what to do where it is not. It changes nothing: what it tries
//! out, it tries in a folder of its own.

mod finding;
mod house;
mod self_test;
mod store;

use std::path::PathBuf;

use unstuck_judge::Lang;

use crate::cellar::{self, Cellar};

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

    /// Looks at all there is.
    pub(crate) fn examine(mut self) -> Vec<Finding> {
        self.look_at_the_house();
        self.look_at_the_store();
        self.try_the_program();
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
