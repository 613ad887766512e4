//! One agent: is its program there, do our entries stand in its files as they should, is nothing set against them, does the
//! line they hold work, and was anything heard.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unstuck_store::Heard;
use unstuck_wire::hook::Host;

use super::Doctor;
use super::entries::{self, Entry};
use super::heard::Registered;
use super::trust::{self, Trust};
use crate::agents::{
    Agent, Change, Installation, LONGEST_WAIT, Limit, Places, Reported, Scope, active_plugin, command_line,
    is_noted, is_this_program, switched_off,
};
use crate::editing::{Ledger, Written};
use crate::plain;
use crate::post::TO_SAY_SO;
use crate::program_file::{first_in, is_program, search_path};
use crate::settings::Protect;

/// A file in which entries of ours stand.
struct Connected {
    scope: Scope,
    file: PathBuf,
    entries: Vec<Entry>,
}

impl Doctor<'_> {
    pub(super) fn look_at_agent(
        &mut self,
        places: &Places,
        agent: &'static Agent,
        ledger: Option<&Ledger>,
        heard: &[Heard],
    ) {
        let about = agent.host.word();
        let version = self.look_at_its_program(places, agent);
        let connected = self.look_for_entries(places, agent, ledger);
        let plugin = active_plugin(places, agent);
        if connected.is_empty() && plugin.is_none() {
            return self.not_connected(places, agent, ledger);
        }
        let on_path = first_in(&search_path(), "unstuck");
        let finds_us = on_path.is_some();
        if let Some(file) = plugin.as_ref().filter(|_| !finds_us) {
            let what = self.say(
                format!("the plugin ({}) finds no `unstuck` on PATH and does nothing", shown(file)),
                format!("插件（{}）在 PATH 中找不到 `unstuck`，不起作用", shown(file)),
            );
            let todo = self.say(
                format!("put `unstuck` on PATH, or disable the plugin and run `unstuck install {about}`"),
                format!("请将 `unstuck` 放入 PATH，或停用插件并运行 `unstuck install {about}`"),
            );
            match connected.is_empty() {
                true => self.fail(about, "plugin", what, todo),
                false => self.warn(about, "plugin", what, todo),
            }
        }
        let plugin = plugin.filter(|_| finds_us);
        if let (Some(plugin), Some(file)) = (&plugin, connected.first().map(|connected| &connected.file)) {
            let (plugin, file) = (shown(plugin), shown(file));
            let what = self.say(
                format!("both the plugin ({plugin}) and entries ({file}) call us: every event is told twice"),
                format!("插件（{plugin}）和条目（{file}）都会调用我们：每个事件都会收到两次"),
            );
            let todo = self.say(
                format!("`unstuck uninstall {about}` takes the entries out"),
                format!("`unstuck uninstall {about}` 可移除条目"),
            );
            self.warn(about, "twice", what, todo);
        }
        for switch in switched_off(places, agent) {
            let (file, key) = (shown(&switch.file), switch.key);
            let what = self.say(
                format!("{key} in {file} keeps it from calling us"),
                format!("{file} 中的 {key} 使它不会调用我们"),
            );
            let todo = self.say("change that setting, if it is yours", "如果是您的设置，请修改它");
            self.fail(about, "switched_off", what, todo);
        }
        let mut lines = BTreeSet::new();
        for connected in &connected {
            self.look_at_entries(places, agent, connected, &version, ledger);
            let all: BTreeSet<(&Path, &str)> =
                connected.entries.iter().map(|entry| (entry.program.as_path(), &*entry.line)).collect();
            for (program, line) in all {
                match self.line_to_try(program, line, agent.host, known(ledger, &connected.file)) {
                    Some(line) => drop(lines.insert(line)),
                    None => self.not_tried(about, &connected.file, program),
                }
            }
        }
        // The line of the plugin finds its program on PATH, where it may be any program.
        if let (Some(file), Some(program)) = (&plugin, &on_path) {
            match self.line_to_try(program, "", agent.host, None) {
                Some(line) => drop(lines.insert(line)),
                None => self.not_tried(about, file, program),
            }
        }
        for line in lines {
            self.try_line(about, &line, agent.host, &format!("unstuck install {about}"));
        }
        if connected.is_empty() && plugin.is_none() {
            return;
        }
        let in_plugin = plugin.iter().flat_map(|_| agent.events_of(&version).0).map(|event| event.name);
        let in_files = connected.iter().flat_map(|each| &each.entries).map(|entry| entry.event.as_str());
        let registered: BTreeSet<&str> = in_plugin.chain(in_files).collect();
        let written = connected.iter().filter_map(|each| known(ledger, &each.file));
        let since = written.map(|written| written.at_ms).max().unwrap_or_default();
        self.hold_against(about, &Registered { events: registered, since }, heard);
    }

    /// Returns what is run to see whether a line works: itself where the ledger says that we wrote it, and this program where the
    /// line names this program. Nothing else is run: anybody can write a line that looks like ours into a repository.
    fn line_to_try(&self, program: &Path, line: &str, host: Host, known: Option<&Written>) -> Option<String> {
        if is_noted(line, known) && self.cellar.root().is_ok() {
            return Some(line.to_owned());
        }
        let own = self.program.as_ref().filter(|_| is_this_program(program))?;
        Some(command_line(own.to_str()?, host))
    }

    fn not_tried(&mut self, about: &str, file: &Path, program: &Path) {
        // That it is gone is found already.
        if !is_program(program) {
            return;
        }
        let (file, program) = (shown(file), shown(program));
        let what = self.say(
            format!(
                "{file} starts {program}, which is not this program, and `install` did not write that: it was not run"
            ),
            format!("{file} 启动 {program}，它不是本程序，也不是 `install` 写入的：未运行"),
        );
        let todo = self.say(
            format!("remove that entry, or, if it is yours, run `unstuck install {about}` with that program"),
            format!("请删除该条目；如果它是您的，请用该程序运行 `unstuck install {about}`"),
        );
        self.warn(about, "self_test", what, todo);
    }

    fn look_at_its_program(&mut self, places: &Places, agent: &Agent) -> Reported {
        let (about, name) = (agent.host.word(), agent.name);
        let Some(program) = places.program(agent) else {
            let what =
                self.say(format!("the program of {name} was not found"), format!("未找到 {name} 的程序"));
            self.note(about, "program", what, None);
            return Reported::NotFound;
        };
        let version = places.version(agent);
        let path = shown(&program);
        match &version {
            Reported::Version(version) => self.fine(about, "program", format!("{name} {version}, {path}")),
            Reported::NotFound | Reported::NotAsked => self.fine(about, "program", format!("{name}, {path}")),
            Reported::Unreadable(why) => {
                let why = plain::short(&why.in_words(self.lang), 200);
                let what = self.say(
                    format!("{path} does not tell its version: {why}"),
                    format!("{path} 没有给出版本：{why}"),
                );
                let todo = self.say(
                    format!("try `{} --version`", agent.programs[0]),
                    format!("请尝试 `{} --version`", agent.programs[0]),
                );
                self.warn(about, "program", what, todo);
            }
        }
        version
    }

    /// The files in which entries of ours stand.
    fn look_for_entries(
        &mut self,
        places: &Places,
        agent: &Agent,
        ledger: Option<&Ledger>,
    ) -> Vec<Connected> {
        let mut connected: Vec<Connected> = Vec::new();
        for scope in [Scope::User, Scope::Project] {
            let Some(file) = places.file(agent, scope) else { continue };
            // In the home itself, both are the same file.
            if connected.iter().any(|other| other.file == file) {
                continue;
            }
            match entries::in_file(agent, &file, ledger) {
                Ok(entries) if entries.is_empty() => {}
                Ok(entries) => connected.push(Connected { scope, file, entries }),
                Err(error) => {
                    let what = plain::line(&error.in_words(self.lang)).into_owned();
                    self.fail(agent.host.word(), "file", what, error.hint(self.lang));
                }
            }
        }
        connected
    }

    fn not_connected(&mut self, places: &Places, agent: &Agent, ledger: Option<&Ledger>) {
        let about = agent.host.word();
        let files = [Scope::User, Scope::Project].into_iter().filter_map(|scope| places.file(agent, scope));
        let lost = files.into_iter().find(|file| {
            let real = file.canonicalize().unwrap_or_else(|_| file.clone());
            ledger.is_some_and(|ledger| ledger.about(&real).or_else(|| ledger.about(file)).is_some())
        });
        let todo = self.say(format!("`unstuck install {about}`"), format!("`unstuck install {about}`"));
        match lost {
            Some(file) => {
                let file = shown(&file);
                let what = self.say(
                    format!("our entries in {file} have vanished: somebody else wrote that file"),
                    format!("{file} 中我们的条目已消失：有其他程序写过该文件"),
                );
                self.fail(about, "entries", what, todo);
            }
            None => {
                let what = self.say("it does not call unstuck", "它没有调用 unstuck");
                self.note(about, "entries", what, Some(todo));
            }
        }
    }

    fn look_at_entries(
        &mut self,
        places: &Places,
        agent: &'static Agent,
        connected: &Connected,
        version: &Reported,
        ledger: Option<&Ledger>,
    ) {
        let about = agent.host.word();
        let before = self.findings.iter().filter(|finding| finding.severity.is_bad()).count();
        let install = match connected.scope {
            Scope::User => format!("`unstuck install {about}`"),
            Scope::Project => format!("`unstuck install {about} --project`"),
        };
        let file = shown(&connected.file);
        self.look_at_events(agent, connected, version, &install);
        self.look_at_called_program(about, connected, &install);
        self.look_at_limits(agent, connected);
        self.look_at_matchers(about, connected);
        match agent.host {
            Host::Codex => self.look_at_codex_trust(places, agent, connected),
            Host::Gemini if connected.scope == Scope::Project => self.look_at_gemini_trust(places, agent),
            Host::Claude
            | Host::Gemini
            | Host::Qwen
            | Host::Opencode
            | Host::Copilot
            | Host::Cursor
            | Host::Generic => {}
        }
        let is_sound = before == self.findings.iter().filter(|finding| finding.severity.is_bad()).count();
        let program = connected.entries.first().map(|entry| entry.program.to_string_lossy().into_owned());
        // Without the version nobody knows what the installer would write, unless it writes the same for all.
        let is_known = matches!(version, Reported::Version(_)) || !agent.asks_for_version();
        let as_written = match (program, ledger) {
            (Some(program), Some(ledger)) if is_known => {
                let file = connected.file.clone();
                let installation = Installation::new(agent, file, program, version.clone());
                installation.is_in(ledger).unwrap_or(true)
            }
            (_, _) => true,
        };
        if is_sound && !as_written {
            let what = self.say(
                format!("our entries in {file} are not as `install` would write them"),
                format!("{file} 中我们的条目与 `install` 会写入的不同"),
            );
            self.warn(about, "entries", what, install);
        } else if is_sound {
            let count = connected.entries.len();
            let what = self.say(format!("{count} entries in {file}"), format!("{file} 中有 {count} 个条目"));
            self.fine(about, "entries", what);
        }
    }

    fn look_at_events(&mut self, agent: &Agent, connected: &Connected, version: &Reported, install: &str) {
        let about = agent.host.word();
        let file = shown(&connected.file);
        let stands = |name: &str| connected.entries.iter().any(|entry| entry.event == name);
        let (expected, unknown) = agent.events_of(version);
        let missing: Vec<&str> =
            expected.iter().map(|event| event.name).filter(|name| !stands(name)).collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            let what = self.say(
                format!("{file} has no entry of ours for {missing}"),
                format!("{file} 中没有我们的 {missing} 条目"),
            );
            self.warn(about, "entries", what, install.to_owned());
        }
        if let Reported::Version(version) = version {
            let foreign: Vec<&str> =
                unknown.iter().map(|event| event.name).filter(|name| stands(name)).collect();
            if !foreign.is_empty() {
                let foreign = foreign.join(", ");
                let what = self.say(
                    format!("version {version} does not know {foreign}, and may ignore all of {file}"),
                    format!("版本 {version} 不认识 {foreign}，可能忽略整个 {file}"),
                );
                let todo = self.say(
                    format!("update {}, or run {install}", agent.name),
                    format!("请更新 {}，或运行 {install}", agent.name),
                );
                self.fail(about, "entries", what, todo);
            }
        }
    }

    /// The programs that the entries start.
    fn look_at_called_program(&mut self, about: &str, connected: &Connected, install: &str) {
        let programs: BTreeSet<&Path> =
            connected.entries.iter().map(|entry| entry.program.as_path()).collect();
        let own = self.program.as_ref().and_then(|program| program.canonicalize().ok());
        for program in programs {
            let path = shown(program);
            if !is_program(program) {
                let what = self.say(
                    format!("its entries start {path}, which is gone or cannot be run"),
                    format!("它的条目启动 {path}，该程序已不存在或无法运行"),
                );
                self.fail(about, "called", what, install.to_owned());
            } else if program.canonicalize().ok() != own {
                let what = self.say(
                    format!("its entries start another unstuck than this one: {path}"),
                    format!("它的条目启动的是另一个 unstuck：{path}"),
                );
                self.note(about, "called", what, Some(install.to_owned()));
            }
        }
    }

    /// An agent that waits for us too briefly cuts us off; one that waits without end can be held up by us.
    fn look_at_limits(&mut self, agent: &Agent, connected: &Connected) {
        let about = agent.host.word();
        let mut wrong: Vec<String> = Vec::new();
        let mut settings_ask_too_much = false;
        for entry in &connected.entries {
            let limit = agent.events.iter().find(|event| event.name == entry.event).map(|event| event.limit);
            let needed = self.needed(limit.unwrap_or(Limit::End));
            match entry.limit {
                None => wrong.push(format!("{}: –", entry.event)),
                Some(set) if set < needed => {
                    wrong.push(format!("{}: {set} s < {needed} s", entry.event));
                    settings_ask_too_much |= limit.is_some_and(|limit| limit.is_below(needed));
                }
                Some(_) => {}
            }
        }
        if wrong.is_empty() {
            return;
        }
        let wrong = wrong.join(", ");
        let what = self.say(
            format!("time limits that are shorter than what we may need, or missing ({wrong})"),
            format!("时间限制短于我们可能需要的时间，或没有设置（{wrong}）"),
        );
        let todo = match settings_ask_too_much {
            // What `install` writes would be too short as well.
            true => self.say(
                "shorten `vault.deadline`, `hook.hold-max`, `hook.deadline-before` or `hook.deadline-after`",
                "请缩短 `vault.deadline`、`hook.hold-max`、`hook.deadline-before` 或 `hook.deadline-after`",
            ),
            false => self.anew(about, connected.scope),
        };
        self.warn(about, "limits", what, todo);
    }

    /// The longest that a hook may take at such an event, in whole seconds.
    fn needed(&self, limit: Limit) -> f64 {
        let hook = self.cellar.settings.hook();
        let vault = self.cellar.settings.vault();
        let snapshot = match vault.protect {
            Protect::Off => Duration::ZERO,
            Protect::Risky | Protect::Edits => vault.deadline + TO_SAY_SO,
        };
        let needed = match limit {
            Limit::BeforeTool => hook.hold_max + hook.deadline_before + snapshot,
            Limit::AfterTool => hook.deadline_after + snapshot,
            Limit::AfterToolAndAgain => hook.deadline_after + LONGEST_WAIT + snapshot,
            Limit::Session => hook.deadline_after,
            // Nobody waits for what is done then, and what was not recorded waits in the spool.
            Limit::End => Duration::from_secs(1),
        };
        needed.as_secs_f64().ceil()
    }

    /// A person may want us to be told of some tools only.
    fn look_at_matchers(&mut self, about: &str, connected: &Connected) {
        let narrow =
            |entry: &Entry| Some(format!("{}: {}", entry.event, plain::short(entry.tools.as_ref()?, 80)));
        let narrow: Vec<String> = connected.entries.iter().filter_map(narrow).collect();
        if narrow.is_empty() {
            return;
        }
        let narrow = narrow.join(", ");
        let what = self.say(
            format!("it tells us of some tools only ({narrow})"),
            format!("它只告诉我们部分工具（{narrow}）"),
        );
        let todo = self.anew(about, connected.scope);
        self.note(about, "matchers", what, Some(todo));
    }

    /// How entries are written anew: what stands there already, `install` leaves as it is.
    fn anew(&self, about: &str, scope: Scope) -> String {
        let flag = match scope {
            Scope::User => "",
            Scope::Project => " --project",
        };
        self.say(
            format!("`unstuck uninstall {about}{flag}`, then `unstuck install {about}{flag}`"),
            format!("先 `unstuck uninstall {about}{flag}`，再 `unstuck install {about}{flag}`"),
        )
    }

    fn look_at_codex_trust(&mut self, places: &Places, agent: &Agent, connected: &Connected) {
        let about = agent.host.word();
        let Some(folder) = places.folder(agent) else { return };
        let real = connected.file.canonicalize().unwrap_or_else(|_| connected.file.clone());
        let config = folder.join("config.toml");
        let by_name = trust::untrusted_by_codex(&config, &connected.file, &connected.entries);
        let by_real = trust::untrusted_by_codex(&config, &real, &connected.entries);
        let untrusted = if by_real.len() < by_name.len() { by_real } else { by_name };
        if untrusted.is_empty() {
            let what = self.say("its owner has agreed to our entries", "其用户已同意我们的条目");
            return self.fine(about, "trust", what);
        }
        let names: Vec<&str> = untrusted.iter().map(|entry| entry.event.as_str()).collect();
        let names = names.join(", ");
        let what = self.say(
            format!("it skips these entries until you agree to them: {names}"),
            format!("在您同意之前，它会跳过这些条目：{names}"),
        );
        let todo = self
            .say("start `codex`, open `/hooks` and trust them", "请启动 `codex`，打开 `/hooks` 并信任它们");
        self.fail(about, "trust", what, todo);
    }

    fn look_at_gemini_trust(&mut self, places: &Places, agent: &Agent) {
        let about = agent.host.word();
        let (Some(folder), Some(project)) = (places.folder(agent), places.project()) else { return };
        match trust::trusted_by_gemini(&folder.join("trustedFolders.json"), project) {
            Trust::Trusted => {}
            Trust::Distrusted => {
                let what = self.say(
                    "you told it not to trust this folder, so it ignores its entries",
                    "您设置了不信任此文件夹，因此它会忽略其中的条目",
                );
                let todo = self.say(
                    "`/permissions` in `gemini` changes that, or install with --user",
                    "在 `gemini` 中用 `/permissions` 修改，或用 --user 安装",
                );
                self.fail(about, "trust", what, todo);
            }
            Trust::Unsaid => {
                let what = self.say(
                    "entries of a project count only in a folder that you trust",
                    "项目中的条目只在您信任的文件夹中生效",
                );
                self.note(about, "trust", what, None);
            }
        }
    }
}

/// What was noted of a file.
fn known<'l>(ledger: Option<&'l Ledger>, file: &Path) -> Option<&'l Written> {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    ledger?.about(&real)
}

fn shown(path: &Path) -> String {
    plain::line(&path.to_string_lossy()).into_owned()
}
