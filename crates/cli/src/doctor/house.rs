//! unstuck itself: is it on, are its settings and rules sound, does it cut out secrets.

use std::path::PathBuf;

use unstuck_wire::clean::Cleaner;

use super::Doctor;
use crate::knowledge;
use crate::moment;
use crate::plain;
use crate::program_file::{first_in, search_path};
use crate::switch::{self, Switch};

/// How findings about ourselves are headed.
const US: &str = "unstuck";

impl Doctor<'_> {
    pub(super) fn look_at_the_house(&mut self) {
        self.look_at_the_program();
        self.look_at_the_switch();
        self.look_at_the_settings();
        self.look_at_the_rules();
        self.plant_a_secret();
    }

    fn look_at_the_program(&mut self) {
        let version = env!("CARGO_PKG_VERSION");
        let Some(program) = self.program.clone() else {
            let what = self.say("nobody can say where this program lies", "无法得知本程序的位置");
            return self.note(US, "program", what, None);
        };
        let shown = plain::line(&program.to_string_lossy()).into_owned();
        self.fine(US, "program", format!("{version}, {shown}"));
        let on_path = first_in(&search_path(), "unstuck");
        let is_same = |found: &PathBuf| found.canonicalize().ok() == program.canonicalize().ok();
        match on_path {
            None => {
                let what = self.say(
                    "`unstuck` is not on PATH; the plugins for agents look for it there",
                    "PATH 中没有 `unstuck`；智能体的插件在那里查找它",
                );
                self.note(US, "path", what, None);
            }
            Some(found) if !is_same(&found) => {
                let found = plain::line(&found.to_string_lossy()).into_owned();
                let what = self.say(
                    format!("`unstuck` on PATH is another program: {found}"),
                    format!("PATH 中的 `unstuck` 是另一个程序：{found}"),
                );
                let todo = self.say(
                    "remove the one you do not want, or run `unstuck install` with the one you do",
                    "请删除不需要的那个，或用需要的那个运行 `unstuck install`",
                );
                self.note(US, "path", what, Some(todo));
            }
            Some(_) => {}
        }
    }

    fn look_at_the_switch(&mut self) {
        let switch = Switch::at(self.cellar.folder().ok(), self.now);
        match switch {
            Switch::On if self.cellar.settings.hook().enabled => {
                let mode = self.cellar.settings.ladder().mode.word();
                let what = self.say(format!("on, mode {mode}"), format!("已开启，模式 {mode}"));
                self.fine(US, "switch", what);
            }
            Switch::On => {
                let what = self
                    .say("hooks do nothing: hook.enabled is false", "钩子不起作用：hook.enabled 为 false");
                let todo = self.say(
                    "`unstuck config explain hook.enabled` says where it is set",
                    "`unstuck config explain hook.enabled` 说明设置的位置",
                );
                self.warn(US, "switch", what, todo);
            }
            Switch::Disabled => {
                let what = self.say(
                    format!(
                        "{} is set here: what is started from this shell works without unstuck",
                        switch::VARIABLE
                    ),
                    format!("此处设置了 {}：从这个 shell 启动的程序不使用 unstuck", switch::VARIABLE),
                );
                let todo = self
                    .say(format!("`unset {}`", switch::VARIABLE), format!("`unset {}`", switch::VARIABLE));
                self.warn(US, "switch", what, todo);
            }
            Switch::Paused(until) => {
                let until = moment::format_utc(until);
                let what = self.say(format!("paused until {until}"), format!("已暂停至 {until}"));
                let todo = self.say("`unstuck resume` ends it", "`unstuck resume` 可结束暂停");
                self.note(US, "switch", what, Some(todo));
            }
        }
    }

    fn look_at_the_settings(&mut self) {
        let lang = self.lang;
        let mistakes: Vec<(String, Option<String>)> = self
            .cellar
            .mistakes()
            .iter()
            .map(|mistake| (mistake.in_words(lang), mistake.hint(lang)))
            .collect();
        if mistakes.is_empty() {
            let what = self.say("settings without mistakes", "设置没有错误");
            self.fine(US, "settings", what);
        }
        for (what, hint) in mistakes {
            let todo = hint.unwrap_or_else(|| {
                self.say(
                    "`unstuck config edit` opens your own file",
                    "`unstuck config edit` 打开您自己的文件",
                )
            });
            self.warn(US, "settings", plain::line(&what).into_owned(), todo);
        }
        let (hook, store) = (self.cellar.settings.hook(), self.cellar.settings.store());
        let too_long = [
            ("store.wait-before", store.wait_before, "hook.deadline-before", hook.deadline_before),
            ("store.wait-after", store.wait_after, "hook.deadline-after", hook.deadline_after),
        ];
        for (wait, waits, limit, ends) in too_long {
            if waits > ends {
                let what = self.say(
                    format!("{wait} is longer than {limit}: a hook falls silent while it still waits for the store"),
                    format!("{wait} 长于 {limit}：钩子还在等待数据库时就会保持沉默"),
                );
                let todo = self.say(
                    format!("set {wait} no longer than {limit}"),
                    format!("请将 {wait} 设为不长于 {limit}"),
                );
                self.warn(US, "settings", what, todo);
            }
        }
    }

    fn look_at_the_rules(&mut self) {
        let (_, mistakes) = knowledge::load_quietly();
        for mistake in &mistakes {
            let todo =
                self.say("`unstuck rules test FILE` tells more", "`unstuck rules test FILE` 有更多说明");
            self.warn(US, "rules", plain::short(mistake, 300), todo);
        }
        if mistakes.is_empty() {
            let what = self.say("rules without mistakes", "规则没有错误");
            self.fine(US, "rules", what);
        }
    }

    /// What looks like a secret, what stands behind a secret's name, and what a variable holds must not come out again.
    fn plant_a_secret(&mut self) {
        let seed = format!(
            "{:016x}{:016x}{:04x}",
            self.now.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            u64::from(std::process::id()).wrapping_mul(0xd134_2543_de82_ef95),
            self.now & 0xffff
        );
        let token = format!("ghp_{seed}");
        let held = format!("held-{seed}");
        let cleaner = Cleaner::new(None, [("DOCTOR_API_KEY".to_owned(), held.clone())]);
        let kept =
            cleaner.text(&format!("fatal: {token} is not valid\npassword={seed}\nsent {held}\n"), 4096);
        match kept.as_str().contains(&seed) {
            false => {
                let what = self.say("a planted secret was cut out", "植入的机密已被去除");
                self.fine(US, "redaction", what);
            }
            true => {
                let what = self.say(
                    "a planted secret was not cut out of what would be kept",
                    "植入的机密没有从将要保存的内容中去除",
                );
                let todo = self.say(
                    "please report this; until then `unstuck pause`",
                    "请报告此问题；在此之前请 `unstuck pause`",
                );
                self.fail(US, "redaction", what, todo);
            }
        }
    }
}
