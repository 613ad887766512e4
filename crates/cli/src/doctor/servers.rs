//! The servers that agents reach through us: is the program still there that their entries start, and do the entries still
//! stand. It only reads.

use std::collections::BTreeSet;
use std::path::Path;

use super::Doctor;
use crate::agents::{
    CLIENTS, Client, Config, Places, Scope, Server, State, Wrapper, Wrapping, names_us, real,
};
use crate::editing::Ledger;
use crate::plain;
use crate::program_file::is_program;

impl Doctor<'_> {
    /// Looks at the servers of the clients that are named, or of all.
    pub(super) fn look_at_servers(&mut self, places: &Places, ledger: Option<&Ledger>, named: &[&str]) {
        for client in CLIENTS.iter().filter(|client| named.is_empty() || named.contains(&client.word)) {
            for config in client.configs(places) {
                let is_known = ledger.is_some_and(|ledger| ledger.about(&real(&config.file)).is_some());
                if is_known || names_us(&config.file, None) {
                    self.look_at_config(client, &config, ledger);
                }
            }
        }
    }

    fn look_at_config(&mut self, client: &'static Client, config: &Config, ledger: Option<&Ledger>) {
        let about = client.word;
        let servers = match Wrapping::to_look(client, config.clone()).everything(ledger) {
            Ok(servers) => servers,
            Err(error) => {
                let what = plain::line(&error.in_words(self.lang)).into_owned();
                return self.fail(about, "servers", what, error.hint(self.lang));
            }
        };
        let flag = match config.scope {
            Scope::User => "",
            Scope::Project => " --project",
        };
        let file = plain::line(&config.file.to_string_lossy()).into_owned();
        let wrapped: Vec<&Server> = servers
            .iter()
            .filter(|server| matches!(server.state, State::Wrapped { by: Wrapper::Us, .. }))
            .collect();
        let programs: BTreeSet<&Path> = wrapped.iter().filter_map(|server| program(server)).collect();
        let mut is_sound = true;
        for gone in programs.into_iter().filter(|program| !is_program(program)) {
            is_sound = false;
            let names = names(wrapped.iter().filter(|server| program(server) == Some(gone)).copied());
            let gone = plain::line(&gone.to_string_lossy()).into_owned();
            let what = self.say(
                format!("{file} starts {gone}, which is not there, for {names}: these servers do not start"),
                format!("{file} 为 {names} 启动 {gone}，但它不存在：这些服务器无法启动"),
            );
            self.fail(about, "servers", what, format!("`unstuck install mcp {about}{flag}`"));
        }
        let noted = ledger.and_then(|ledger| ledger.about(&real(&config.file)));
        let noted = noted.map(|written| &written.servers[..]).unwrap_or_default();
        let at = |place: &[String]| servers.iter().find(|server| server.place == *place);
        for place in noted.iter().map(|noted| &noted.place) {
            let name = plain::line(place.last().map_or("", String::as_str)).into_owned();
            match at(place).map(|server| &server.state) {
                Some(State::Wrapped { .. }) => {}
                Some(State::Open | State::OnRequest(_) | State::Never(_)) => {
                    is_sound = false;
                    let what = self.say(
                        format!(
                            "{name} in {file} no longer goes through unstuck: somebody else wrote that file"
                        ),
                        format!("{file} 中的 {name} 不再经由 unstuck：有其他程序写过该文件"),
                    );
                    self.warn(about, "servers", what, format!("`unstuck install mcp {about} {name}{flag}`"));
                }
                None => {
                    let what = self.say(
                        format!("{name}, which went through unstuck, is no longer in {file}"),
                        format!("曾经由 unstuck 的 {name} 已不在 {file} 中"),
                    );
                    self.note(about, "servers", what, None);
                }
            }
        }
        if is_sound && !wrapped.is_empty() {
            let names = names(wrapped.into_iter());
            let what = self.say(
                format!("these servers in {file} go through unstuck: {names}"),
                format!("{file} 中经由 unstuck 的服务器：{names}"),
            );
            self.fine(about, "servers", what);
        }
    }
}

fn program(server: &Server) -> Option<&Path> {
    match &server.state {
        State::Wrapped { program, .. } => Some(program),
        State::Open | State::OnRequest(_) | State::Never(_) => None,
    }
}

fn names<'s>(servers: impl Iterator<Item = &'s Server>) -> String {
    let names: Vec<&str> = servers.map(|server| server.name.as_str()).collect();
    plain::line(&names.join(", ")).into_owned()
}
