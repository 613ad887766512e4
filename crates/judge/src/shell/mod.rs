//! stub
#![allow(missing_docs)]
#[derive(Debug)]
pub struct Command { pub program: String, pub words: Vec<String> }
#[derive(Debug)]
pub struct Script { commands: Vec<Command>, text: String }
impl Script {
    pub fn parse(text: &str) -> Script {
        let mut commands = Vec::new();
        for part in text.split(|c| matches!(c, '|' | ';' | '&' | '\n')) {
            let mut words: Vec<String> = part.split_whitespace().map(|w| w.trim_matches(|c| c == '"' || c == '\'').to_owned()).collect();
            while words.first().is_some_and(|w| (w.contains('=') && !w.starts_with('-')) || matches!(&**w, "sudo" | "env")) { words.remove(0); }
            if words.first().is_some_and(|w| w == "timeout") && words.len() > 2 {
                commands.push(Command { program: "timeout".into(), words: vec![] });
                words.drain(..2);
            }
            if let Some(first) = words.first() {
                let program = first.rsplit('/').next().unwrap_or_default().to_owned();
                commands.push(Command { program, words });
            }
        }
        Script { commands, text: text.to_owned() }
    }
    pub fn programs(&self) -> impl Iterator<Item = &str> { self.commands.iter().map(|c| &*c.program) }
    pub fn last(&self) -> Option<&Command> { self.commands.last() }
    pub fn hides_failure(&self) -> bool { self.text.contains('|') || self.text.contains(';') || self.text.contains('\n') }
    pub fn is_reader(&self) -> bool { self.commands.first().is_some_and(|c| matches!(&*c.program, "cat" | "grep" | "rg" | "tail" | "head" | "journalctl" | "ls" | "echo" | "awk")) }
    pub fn url_hosts(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().flat_map(|c| c.words.iter()).filter_map(|w| {
            let rest = w.split_once("://").map(|(_, r)| r).or_else(|| w.starts_with("localhost").then_some(&**w))?;
            rest.split(|c| c == '/' || c == ':' || c == '?').next()
        })
    }
}
