//! One server as an agent's file names it: how it is reached, whether it goes through us, and what changes in its entry when it
//! does or no longer does. It looks at no file but the program of an entry that has the form of ours, to know itself.
//!
//! A header never becomes an argument: everybody on the machine can read those. It is handed over by a variable.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use unstuck_judge::Lang;

use super::own_program::{is_named_like_us, is_this_program};
use super::own_server::OWN;
use super::place::Scope;
use crate::editing::{Edit, Written};

/// What entries look like in a file.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) call: Call,
    /// The key of variables.
    pub(crate) env: &'static str,
    /// The key of names of variables that are handed on.
    pub(crate) passed: Option<&'static str>,
    /// The keys of an address; the first one that is there counts.
    pub(crate) addresses: &'static [&'static str],
    pub(crate) headers: &'static str,
    /// The key of headers whose values stand in variables.
    pub(crate) header_variables: Option<&'static str>,
    /// The key of the variable that holds a bearer token.
    pub(crate) bearer: Option<&'static str>,
    /// The `type` of a server that is started, where one is written.
    pub(crate) local: Option<&'static str>,
    /// The `type` of a server that has an address.
    pub(crate) remote: &'static str,
    /// How an address without a `type` is spoken to.
    pub(crate) untyped: Reach,
    /// The key of a program that makes headers.
    pub(crate) helper: Option<&'static str>,
    /// Keys that mean something only where the agent itself goes to the address.
    pub(crate) login: &'static [&'static str],
}

/// How a command line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// `command` is the program, `args` are its arguments.
    Apart,
    /// `command` is a list of both.
    Together,
}

/// How an agent reaches a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It starts it.
    Stdio,
    /// At an address, by Streamable HTTP.
    Http,
    /// At an address, by server-sent events alone.
    Sse,
    /// Nobody here knows.
    Unknown,
}

impl Reach {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Reach::Stdio => "stdio",
            Reach::Http => "http",
            Reach::Sse => "sse",
            Reach::Unknown => "unknown",
        }
    }
}

/// Where a server stands with us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// It can be wrapped.
    Open,
    /// It can be wrapped, but only by somebody who asks for it by name.
    OnRequest(Left),
    /// It goes through us already.
    Wrapped { program: PathBuf, by: Wrapper },
    /// It is not wrapped, whoever asks.
    Never(Left),
}

/// Who wrapped a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapper {
    /// `unstuck install mcp`, by the look of it.
    Us,
    /// Somebody by hand.
    Hand,
}

/// Why a server is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// The agent may have to log in.
    Login,
    /// Its address may hold a secret, and would become an argument.
    Address,
    /// It speaks an older transport.
    Sse,
    /// A program makes its headers.
    Helper,
    /// It is our own server.
    Own,
    /// Neither a command nor an address is there.
    Unknown,
}

impl Left {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Left::Login => "login",
            Left::Address => "address",
            Left::Sse => "sse",
            Left::Helper => "headers_helper",
            Left::Own => "own",
            Left::Unknown => "unknown",
        }
    }

    pub(crate) fn text(self, lang: Lang) -> &'static str {
        match (self, lang) {
            (Left::Login, Lang::En) => {
                "it has no header of its own, so the agent may log in there, which does not work through unstuck; name it to wrap it all the same"
            }
            (Left::Login, Lang::Zh) => {
                "它没有自己的请求头，代理可能需要登录，而登录无法经由 unstuck 进行；若仍要包装，请指明其名称"
            }
            (Left::Address, Lang::En) => {
                "its address may hold a secret, and everybody on this machine can read arguments; name it to wrap it all the same"
            }
            (Left::Address, Lang::Zh) => {
                "它的地址可能含有机密，而本机所有人都能看到参数；若仍要包装，请指明其名称"
            }
            (Left::Sse, Lang::En) => {
                "it speaks the older transport by server-sent events, which unstuck does not speak"
            }
            (Left::Sse, Lang::Zh) => "它使用较旧的 SSE 传输方式，unstuck 不支持",
            (Left::Helper, Lang::En) => {
                "a program makes its headers anew for every connection, and unstuck cannot run it"
            }
            (Left::Helper, Lang::Zh) => "它的请求头由一个程序在每次连接时生成，unstuck 无法运行该程序",
            (Left::Own, Lang::En) => "it is unstuck's own server",
            (Left::Own, Lang::Zh) => "它是 unstuck 自己的服务器",
            (Left::Unknown, Lang::En) => "it has neither a command nor an address",
            (Left::Unknown, Lang::Zh) => "它既没有命令，也没有地址",
        }
    }
}

impl Left {
    /// What whoever wrapped it all the same should know.
    pub(crate) fn mind(self, lang: Lang) -> &'static str {
        match (self, lang) {
            (Left::Login, Lang::En) => {
                "the agent can no longer log in there; where that is needed, uninstall it again"
            }
            (Left::Login, Lang::Zh) => "代理无法再在该处登录；如需登录，请再次卸载",
            (Left::Address, Lang::En) => "while it runs, everybody on this machine can read its address",
            (Left::Address, Lang::Zh) => "运行期间，本机所有人都能看到它的地址",
            (Left::Sse | Left::Helper | Left::Own | Left::Unknown, _) => self.text(lang),
        }
    }
}

/// A server in a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Server {
    pub(crate) name: String,
    /// The keys that lead to it; the last one is its name.
    pub(crate) place: Vec<String>,
    pub(crate) scope: Scope,
    pub(crate) reach: Reach,
    pub(crate) state: State,
    pub(crate) entry: Value,
}

impl Server {
    /// Reads an entry. `known` is what was noted of its file.
    pub(crate) fn new(
        form: &Form,
        scope: Scope,
        place: Vec<String>,
        entry: Value,
        known: Option<&Written>,
    ) -> Server {
        let name = place.last().cloned().unwrap_or_default();
        let (reach, state) = form.look(&name, &entry, known.is_some_and(|known| known.has_server(&place)));
        Server { name, place, scope, reach, state, entry }
    }

    /// The word for where it holds.
    pub(crate) fn scope_word(&self) -> &'static str {
        match (self.scope, self.place.len()) {
            (Scope::User, 0..=2) => "user",
            (Scope::User, _) => "local",
            (Scope::Project, _) => "project",
        }
    }

    /// What it is, in one word that holds no secret: its program, or its host.
    pub(crate) fn target(&self, form: &Form) -> String {
        let words = form.words(&self.entry);
        let behind = |word: &str| words.iter().skip_while(|each| *each != word).nth(1).cloned();
        match &self.state {
            State::Wrapped { .. } => behind("--").or_else(|| behind("--url").map(|url| host_of(&url))),
            State::Open | State::OnRequest(_) | State::Never(_) => {
                words.first().cloned().or_else(|| form.address(&self.entry).map(|(_, url)| host_of(url)))
            }
        }
        .unwrap_or_default()
    }
}

/// An address without what may be a secret: nobody's name, nothing that is asked for, and of a path where it begins.
pub(crate) fn host_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let path = match path.map(|path| path.split_once('/').unwrap_or((path, ""))) {
        None => String::new(),
        Some((first, "")) => format!("/{first}"),
        Some((first, _)) => format!("/{first}/…"),
    };
    format!("{scheme}://{host}{path}")
}

impl Form {
    /// The program and its arguments, where it is started.
    pub(crate) fn words(&self, entry: &Value) -> Vec<String> {
        let list = |key: &str| {
            let list = entry.get(key).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        match self.call {
            Call::Together => list("command"),
            Call::Apart => match entry.get("command").and_then(Value::as_str) {
                Some(program) => [vec![program.to_owned()], list("args")].concat(),
                None => Vec::new(),
            },
        }
    }

    /// The address, and the key that holds it.
    fn address<'e>(&self, entry: &'e Value) -> Option<(&'static str, &'e str)> {
        self.addresses.iter().find_map(|key| Some((*key, entry.get(key)?.as_str()?)))
    }

    /// An entry of the very form that `install mcp` writes is ours if the ledger notes it, or if its program is this one or bears our
    /// name. Otherwise somebody wrote it by hand: it is never wrapped a second time, and never taken out.
    fn look(&self, name: &str, entry: &Value, is_noted: bool) -> (Reach, State) {
        let words = self.words(entry);
        if let Some(program) = words.first() {
            let program = PathBuf::from(program);
            let is_us = || is_noted || is_named_like_us(&program) || is_this_program(&program);
            let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
            let before = &words[..end];
            let is_wrapper = words.get(1).is_some_and(|word| word == "mcp");
            let is_own = words.get(1).is_some_and(|word| word == "mcp-server");
            let has_form = is_wrapper
                && program.is_absolute()
                && before[2..].starts_with(&named(name))
                && (end < words.len() || before.iter().any(|word| word == "--url"));
            let reach = if is_wrapper && end == words.len() { Reach::Http } else { Reach::Stdio };
            return if has_form && is_us() {
                (reach, State::Wrapped { program, by: Wrapper::Us })
            } else if is_own && (is_us() || (name == OWN && program.is_absolute() && words.len() == 2)) {
                (Reach::Stdio, State::Never(Left::Own))
            } else if has_form || leads_to_us(&words) {
                (reach, State::Wrapped { program, by: Wrapper::Hand })
            } else {
                (Reach::Stdio, State::Open)
            };
        }
        let Some((key, url)) = self.address(entry) else {
            return (Reach::Unknown, State::Never(Left::Unknown));
        };
        let reach = self.reach(entry, key, url);
        let state = match reach {
            Reach::Sse => State::Never(Left::Sse),
            Reach::Unknown | Reach::Stdio => State::Never(Left::Unknown),
            Reach::Http if self.helper.is_some_and(|key| entry.get(key).is_some()) => {
                State::Never(Left::Helper)
            }
            Reach::Http if has_secret(url) => State::OnRequest(Left::Address),
            Reach::Http if self.has_header(entry) => State::Open,
            Reach::Http => State::OnRequest(Left::Login),
        };
        (reach, state)
    }

    fn reach(&self, entry: &Value, key: &str, url: &str) -> Reach {
        let kind = ["type", "transportType", "transport"].iter().find_map(|key| entry.get(key)?.as_str());
        let path = url.split(['?', '#']).next().unwrap_or_default();
        match kind {
            Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") => Reach::Http,
            Some("sse") => Reach::Sse,
            Some(kind) if kind != self.remote => Reach::Unknown,
            Some(_) | None if key == "httpUrl" => Reach::Http,
            Some(_) | None if path.ends_with("/sse") => Reach::Sse,
            Some(_) => Reach::Http,
            None => self.untyped,
        }
    }

    fn has_header(&self, entry: &Value) -> bool {
        let is_full =
            |key: &str| entry.get(key).and_then(Value::as_object).is_some_and(|all| !all.is_empty());
        let has_login = self.login.iter().any(|key| entry.get(key).is_some_and(|value| value != false));
        let has_bearer = self.bearer.is_some_and(|key| entry.get(key).is_some());
        !has_login && (is_full(self.headers) || self.header_variables.is_some_and(is_full) || has_bearer)
    }

    /// What changes in an entry when its server goes through us.
    pub(crate) fn wrap(&self, program: &str, name: &str, entry: &Value) -> Vec<Edit> {
        let words = self.words(entry);
        let Some(old) = words.first() else { return self.wrap_address(program, name, entry) };
        let (program, end) = (program.to_owned(), "--".to_owned());
        let call = [vec!["mcp".to_owned()], named(name), vec![end]].concat();
        match self.call {
            Call::Apart => vec![
                Edit::Lead("args", [call, vec![old.clone()]].concat()),
                Edit::Put("command", program.into()),
            ],
            Call::Together => vec![Edit::Lead("command", [vec![program], call].concat())],
        }
    }

    fn wrap_address(&self, program: &str, name: &str, entry: &Value) -> Vec<Edit> {
        let Some((key, url)) = self.address(entry) else { return Vec::new() };
        let address = vec!["--url".to_owned(), url.to_owned()];
        let mut args = [vec!["mcp".to_owned()], named(name), address].concat();
        let mut env = entry.get(self.env).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut passed: Vec<Value> = Vec::new();
        for (header, value) in entry.get(self.headers).and_then(Value::as_object).into_iter().flatten() {
            let variable = free_name(header, &env);
            args.extend(["--header-env".to_owned(), format!("{header}={variable}")]);
            env.insert(variable, value.clone());
        }
        let by_variable = self.header_variables.and_then(|key| entry.get(key)).and_then(Value::as_object);
        for (header, variable) in by_variable.into_iter().flatten() {
            let Some(variable) = variable.as_str() else { continue };
            args.extend(["--header-env".to_owned(), format!("{header}={variable}")]);
            passed.push(variable.into());
        }
        if let Some(variable) = self.bearer.and_then(|key| entry.get(key)).and_then(Value::as_str) {
            args.extend(["--bearer-env".to_owned(), variable.to_owned()]);
            passed.push(variable.into());
        }
        let mut edits = match self.call {
            Call::Apart => {
                vec![Edit::Put("command", program.into()), Edit::Put("args", args.into())]
            }
            Call::Together => {
                let words: Vec<String> = [vec![program.to_owned()], args].concat();
                vec![Edit::Put("command", words.into())]
            }
        };
        if !env.is_empty() {
            edits.push(Edit::Put(self.env, Value::Object(env)));
        }
        if let (Some(key), false) = (self.passed, passed.is_empty()) {
            edits.push(Edit::Put(key, passed.into()));
        }
        match self.local {
            Some(word) => edits.push(Edit::Put("type", word.into())),
            None => edits.push(Edit::Drop("type")),
        }
        edits.push(Edit::Drop(key));
        edits.extend(self.of_address().map(Edit::Drop));
        edits
    }

    /// The keys, beside the address itself, that only a server with an address has.
    fn of_address(&self) -> impl Iterator<Item = &'static str> {
        [Some(self.headers), self.header_variables, self.bearer]
            .into_iter()
            .flatten()
            .chain(self.login.iter().copied())
    }

    /// What changes in an entry of ours when its server no longer goes through us. What it says now counts; what it said before
    /// us tells only how that is written.
    pub(crate) fn unwrap(&self, entry: &Value, before: Option<&Value>) -> Vec<Edit> {
        let words = self.words(entry);
        let Some(end) = words.iter().position(|word| word == "--") else {
            return self.unwrap_address(&words, entry, before);
        };
        let Some(program) = words.get(end + 1) else { return Vec::new() };
        match self.call {
            Call::Together => vec![Edit::Unlead("command", end + 1)],
            Call::Apart => {
                let had_none = before.is_some_and(|before| before.get("args").is_none());
                let args = match had_none && words.len() == end + 2 {
                    true => Edit::Drop("args"),
                    false => Edit::Unlead("args", end + 1),
                };
                vec![Edit::Put("command", program.as_str().into()), args]
            }
        }
    }

    fn unwrap_address(&self, words: &[String], entry: &Value, before: Option<&Value>) -> Vec<Edit> {
        let Some(url) = words.iter().skip_while(|word| *word != "--url").nth(1) else { return Vec::new() };
        let was = |key: &str| before.and_then(|before| before.get(key));
        let key = before.and_then(|before| self.address(before)).map_or(self.addresses[0], |(key, _)| key);
        let mut env = entry.get(self.env).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut passed =
            entry.get(self.passed.unwrap_or_default()).and_then(Value::as_array).cloned().unwrap_or_default();
        let (mut headers, mut by_variable, mut bearer) = (Map::new(), Map::new(), None);
        for pair in words.windows(2) {
            match (pair[0].as_str(), pair[1].split_once('=')) {
                ("--header-env", Some((header, variable))) => match env.shift_remove(variable) {
                    Some(value) => drop(headers.insert(header.to_owned(), value)),
                    None => {
                        passed.retain(|name| name != variable);
                        by_variable.insert(header.to_owned(), variable.into());
                    }
                },
                ("--bearer-env", _) => {
                    passed.retain(|name| *name != pair[1]);
                    bearer = Some(Value::from(pair[1].as_str()));
                }
                (_, _) => {}
            }
        }
        let full = |map: Map<String, Value>| (!map.is_empty()).then_some(Value::Object(map));
        let put = |key: &'static str, value: Option<Value>| match value {
            Some(value) => Edit::Put(key, value),
            None => Edit::Drop(key),
        };
        let kind = match before {
            Some(before) => before.get("type").cloned(),
            None => self.local.map(|_| self.remote.into()),
        };
        let mut edits = vec![put("type", kind), Edit::Put(key, url.as_str().into())];
        edits.push(put(self.headers, full(headers).or_else(|| was(self.headers).cloned())));
        edits.extend(self.header_variables.map(|key| put(key, full(by_variable))));
        edits.extend(self.bearer.map(|key| put(key, bearer)));
        edits.extend(self.login.iter().filter_map(|key| Some(Edit::Put(key, was(key)?.clone()))));
        edits.push(put(self.env, full(env)));
        edits.extend(self.passed.map(|key| put(key, (!passed.is_empty()).then(|| passed.into()))));
        edits.push(Edit::Drop("command"));
        if self.call == Call::Apart {
            edits.push(Edit::Drop("args"));
        }
        edits
    }

    /// What changes in an entry of ours when our program has moved.
    pub(crate) fn mend(&self, program: &str) -> Vec<Edit> {
        match self.call {
            Call::Apart => vec![Edit::Put("command", program.into())],
            Call::Together => {
                vec![Edit::Unlead("command", 1), Edit::Lead("command", vec![program.to_owned()])]
            }
        }
    }

    /// The entry of our own server.
    pub(crate) fn own_entry(&self, program: &str) -> Value {
        let mut entry = Map::new();
        if let Some(word) = self.local {
            entry.insert("type".to_owned(), word.into());
        }
        match self.call {
            Call::Apart => {
                entry.insert("command".to_owned(), program.into());
                entry.insert("args".to_owned(), vec!["mcp-server"].into());
            }
            Call::Together => drop(entry.insert("command".to_owned(), vec![program, "mcp-server"].into())),
        }
        Value::Object(entry)
    }
}

/// Returns whether a command line leads to our proxy or our server, perhaps by way of a launcher (`env`, `npx`, `sh -c`).
fn leads_to_us(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().flat_map(|word| word.split_whitespace()).collect();
    let starts = |at: usize| {
        let (mut is_value, mut rest) = (false, words[at + 1..].iter());
        rest.find_map(|word| match *word {
            "mcp" | "mcp-server" => Some(true),
            word if word.starts_with('-') && word != "--" => {
                is_value = true;
                None
            }
            // What stands behind an option may be its value.
            _ if is_value => {
                is_value = false;
                None
            }
            _ => Some(false),
        })
        .unwrap_or(false)
    };
    let is_us = |word: &str| {
        let program = Path::new(word.trim_matches(['\'', '"']));
        is_named_like_us(program) || is_this_program(program)
    };
    (0..words.len()).any(|at| starts(at) && is_us(words[at]))
}

/// The words that tell us the name of a server. One that looks like an option is not taken for one.
fn named(name: &str) -> Vec<String> {
    match name.starts_with('-') {
        true => vec![format!("--name={name}")],
        false => vec!["--name".to_owned(), name.to_owned()],
    }
}

/// Does an address hold what may be a secret: a name before the host, or something behind a question mark?
fn has_secret(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    authority.contains('@') || rest.contains('?')
}

/// The variable for a header: `Authorization` in `UNSTUCK_HEADER_AUTHORIZATION`. Nobody else's is taken. Its name must not look like
/// that of a setting: `UNSTUCK_MCP_…` would.
fn free_name(header: &str, taken: &Map<String, Value>) -> String {
    let sign = |sign: char| if sign.is_ascii_alphanumeric() { sign.to_ascii_uppercase() } else { '_' };
    let name: String = "UNSTUCK_HEADER_".chars().chain(header.chars().map(sign)).collect();
    let numbered = (2..).map(|number: u32| format!("{name}_{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains_key(name)).unwrap_or(name)
}

#[cfg(test)]
mod tests;
