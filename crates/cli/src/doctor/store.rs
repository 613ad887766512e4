//! The store: can it be used, is it sound, does it have room, and what went wrong with us lately.

use std::fs;
use std::path::Path;

use unstuck_judge::Lang;
use unstuck_store::{ChainFault, Examined, Filesystem, Root, Store, StoreError};

use super::Doctor;
use crate::breaker::Breaker;
use crate::cellar::Waits;
use crate::commands::recover::examined_in_words;
use crate::exit::CommandError;
use crate::moment;
use crate::plain;
use crate::progress::Progress;
use crate::removed;

const STORE: &str = "store";
const MB: u64 = 1 << 20;
/// With less room than this, something should be done soon, or now.
const ROOM_LITTLE: u64 = 200 * MB;
const ROOM_NONE: u64 = 20 * MB;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How far ahead an event may lie before somebody's clock is called wrong.
const AHEAD_MS: u64 = 2 * 60 * 1000;
/// How many different faults are told.
const FAULTS_MAX: u32 = 5;

impl Doctor<'_> {
    pub(super) fn look_at_the_store(&mut self) {
        let root = match self.cellar.root() {
            Ok(root) => root,
            Err(CommandError::Store(StoreError::Missing { path })) => return self.nothing_yet(&path),
            Err(error) => return self.store_fails("folder", &error),
        };
        self.look_at_the_disk(&root);
        self.write_a_probe(&root);
        self.look_at_the_breaker(&root);
        let waiting = root.waiting_bytes();
        match self.cellar.to_read() {
            Ok(store) => self.look_inside(&store, waiting),
            Err(CommandError::Store(StoreError::Missing { path })) => self.nothing_yet(&path),
            Err(error) => self.store_fails("database", &error),
        }
        self.look_at_what_was_set_aside(&root);
    }

    /// Reading proves nothing: the folder may lie on a disk that is full or read-only, or may have lost its rights.
    fn write_a_probe(&mut self, root: &Root) {
        let wrote = root.probe().map_err(CommandError::from);
        let wrote = wrote.and_then(|()| match root.timeline().exists() {
            true => Ok(self.cellar.to_write_soon()?.probe()?),
            false => Ok(()),
        });
        match wrote {
            Ok(()) => {
                let what = self.say("a probe was written there", "已在其中写入并删除测试内容");
                self.fine(STORE, "writable", what);
            }
            // Nothing is written to a database there.
            Err(CommandError::Store(StoreError::Network { .. })) => {}
            Err(error) => self.store_fails("writable", &error),
        }
    }

    fn look_at_the_breaker(&mut self, root: &Root) {
        let Some((until, faults)) = Breaker::at(Some(root.path())).rest(self.now) else { return };
        let left = moment::span(until.saturating_sub(self.now));
        let what = self.say(
            format!("after {faults} faults in a row hooks leave the store alone for {left} more: calls wait in the spool, and nothing is refused or explained from memory"),
            format!("连续 {faults} 次故障后，钩子还会有 {left} 不使用存储：调用在暂存区等待，不会依据记忆拒绝或解释"),
        );
        let todo = self.say(
            "mend what is named here; `unstuck heartbeat` ends the rest once the store works",
            "请处理此处列出的问题；存储恢复后 `unstuck heartbeat` 会结束这段等待",
        );
        self.warn(STORE, "rest", what, todo);
    }

    fn nothing_yet(&mut self, path: &Path) {
        if let Err(error) = Root::probe_place(path) {
            return self.store_fails("writable", &CommandError::from(error));
        }
        let path = plain::line(&path.to_string_lossy()).into_owned();
        let what = self.say(format!("nothing is recorded in {path} yet"), format!("{path} 中尚无记录"));
        let todo = self.say(
            "`unstuck install` connects an agent; its first call is recorded here",
            "`unstuck install` 连接智能体；它的第一次调用会记录在这里",
        );
        self.note(STORE, "folder", what, Some(todo));
    }

    fn store_fails(&mut self, check: &'static str, error: &CommandError) {
        let what = plain::line(&error.in_words(self.lang)).into_owned();
        self.fail(STORE, check, what, error.hint(self.lang));
    }

    fn look_at_the_disk(&mut self, root: &Root) {
        if let Filesystem::Network { name } = root.filesystem() {
            let what = self.say(
                format!("the state folder lies on a network filesystem ({name}): only the spool is written, nothing is refused"),
                format!("状态文件夹位于网络文件系统（{name}）：只写入暂存文件，不会拒绝任何调用"),
            );
            let todo = self.say(
                "point `store.state-dir` at a folder on a local disk",
                "请将 `store.state-dir` 指向本地磁盘上的文件夹",
            );
            self.warn(STORE, "filesystem", what, todo);
        }
        let Some(free) = root.free_bytes() else { return };
        let size = removed::size(free);
        let what = self.say(format!("{size} free on its disk"), format!("所在磁盘剩余 {size}"));
        let todo = self.say("free some space on that disk", "请在该磁盘上腾出空间");
        match free {
            0..ROOM_NONE => self.fail(STORE, "disk", what, todo),
            ROOM_NONE..ROOM_LITTLE => self.warn(STORE, "disk", what, todo),
            ROOM_LITTLE.. => self.fine(STORE, "disk", what),
        }
    }

    fn look_inside(&mut self, store: &Store, waited: u64) {
        let lang = self.lang;
        let mut progress = Progress::new();
        let examined = store.examine(&mut |examined| {
            progress.show(|| examined_in_words(examined, lang));
        });
        progress.end();
        match examined {
            Ok(examined) => {
                self.look_at_the_rows(store, &examined);
                self.look_at_what_is_foreign(&examined);
                self.look_at_the_chain(&examined);
            }
            Err(error) => self.store_fails("database", &CommandError::from(error)),
        }
        self.look_at_the_format(store);
        self.look_at_the_spool(store.root().waiting_bytes(), waited);
        self.look_at_the_clock(store);
        self.look_at_our_faults(store);
    }

    /// All that is there was read: is it whole?
    fn look_at_the_rows(&mut self, store: &Store, examined: &Examined) {
        let path = plain::line(&store.root().timeline().to_string_lossy()).into_owned();
        if examined.is_readable() {
            let size = removed::size(store.size().map_or(0, |size| size.database + size.log));
            let path = plain::line(&store.root().path().to_string_lossy()).into_owned();
            let rows = examined.rows;
            let counted = removed::counted(rows, ["row", "rows"]);
            let what = self.say(
                format!("{path} is sound ({size}, {counted})"),
                format!("{path} 完好（{size}，{rows} 行）"),
            );
            return self.fine(STORE, "database", what);
        }
        let todo = self.say(
            "`unstuck recover` sets the damaged database aside and brings back what can be read of it",
            "`unstuck recover` 会将损坏的数据库移到一旁，并恢复其中可读取的内容",
        );
        if let Some(why) = examined.structure.first() {
            let why = plain::short(why, 200);
            let what = self.say(format!("{path} is damaged: {why}"), format!("{path} 已损坏：{why}"));
            self.fail(STORE, "database", what, todo.clone());
        }
        if examined.damaged > 0 {
            let first = examined.first.clone().unwrap_or_default();
            let counted = removed::counted(examined.damaged, ["row", "rows"]);
            let what = self.say(
                format!(
                    "{counted} of {path} cannot be read whole (the first: {first}); answers leave them out"
                ),
                format!("{path} 中有 {} 行无法完整读取（第一处：{first}）；回答中会略过", examined.damaged),
            );
            self.fail(STORE, "rows", what, todo);
        }
    }

    /// Is there something in it that another program made?
    fn look_at_what_is_foreign(&mut self, examined: &Examined) {
        if examined.foreign.is_empty() {
            return;
        }
        let names = plain::short(&examined.foreign.join(", "), 200);
        let what = self.say(
            format!(
                "the database holds what unstuck did not make: {names}; no trigger and no view is ever run"
            ),
            format!("数据库中有并非由 unstuck 建立的内容：{names}；触发器和视图一律不会运行"),
        );
        let todo = self.say(
            "another program changed the database: find out which, and take that out again",
            "有其他程序改动了数据库：请查明是哪个程序，并将其内容移除",
        );
        self.warn(STORE, "foreign", what, todo);
    }

    /// Is every event, and every call that one tells of, as it was written?
    fn look_at_the_chain(&mut self, examined: &Examined) {
        let Some(chain) = &examined.chain else { return };
        let Some(first) = chain.first else {
            let head = chain.head.as_deref().unwrap_or("-");
            let counted = removed::counted(chain.events, ["event", "events"]);
            let what = self.say(
                format!("{counted} in a row, each linked to the one before it; the last link is {head}"),
                format!("{} 个事件逐一相连；最后的链接为 {head}", chain.events),
            );
            return self.fine(STORE, "chain", what);
        };
        let what = match first {
            ChainFault::Event { seq } => self
                .say(format!("event {seq} is not as unstuck wrote it"), format!("事件 {seq} 与写入时不符")),
            ChainFault::Missing { first, last } if first == last => self.say(
                format!("event {first} is gone, and unstuck did not remove it"),
                format!("事件 {first} 已不在，且并非由 unstuck 删除"),
            ),
            ChainFault::Missing { first, last } => self.say(
                format!("events {first} to {last} are gone, and unstuck did not remove them"),
                format!("事件 {first} 至 {last} 已不在，且并非由 unstuck 删除"),
            ),
            ChainFault::Call { call, seq } => self.say(
                format!("call {call} is not as event {seq} says that unstuck wrote it"),
                format!("调用 {call} 与事件 {seq} 所记录的写入内容不符"),
            ),
        };
        let more = chain.faults.saturating_sub(1);
        let what = match (more, self.lang) {
            (0, _) => what,
            (more, Lang::En) => format!("{what}; so are {more} more"),
            (more, Lang::Zh) => format!("{what}；另有 {more} 处"),
        };
        let todo = self.say(
            "another program changed the database: compare it with an `unstuck export` or a backup from before",
            "有其他程序改动了数据库：请与之前的 `unstuck export` 或备份比较",
        );
        self.warn(STORE, "chain", what, todo);
    }

    /// Can this version write what it reads?
    fn look_at_the_format(&mut self, store: &Store) {
        let Ok(Some(format)) = store.newer_format() else { return };
        let (what, todo) = match store.is_misnumbered() {
            Ok(true) => (
                self.say(
                    format!("the database bears the number of a format ({format}) that it does not have: everything waits in the spool"),
                    format!("数据库的格式号（{format}）与其内容不符：所有记录都在暂存区等待"),
                ),
                self.say(
                    "`unstuck recover` brings everything back under the right number",
                    "`unstuck recover` 会以正确的格式号恢复全部内容",
                ),
            ),
            Ok(false) | Err(_) => (
                self.say(
                    format!("a newer version of unstuck wrote the database (format {format}): this one only reads it, and everything waits in the spool"),
                    format!("数据库由更新的版本写入（格式 {format}）：此版本只能读取，所有记录都在暂存区等待"),
                ),
                self.say(
                    "update unstuck, or point `store.state-dir` elsewhere",
                    "请更新 unstuck，或将 `store.state-dir` 指向别处",
                ),
            ),
        };
        self.fail(STORE, "format", what, todo);
    }

    /// Databases that could not be read any more. Whoever opens the store may have put one there just now.
    fn look_at_what_was_set_aside(&mut self, root: &Root) {
        let aside = fs::read_dir(root.damaged()).map_or(0, |entries| entries.flatten().count());
        if aside == 0 {
            return;
        }
        let path = plain::line(&root.damaged().to_string_lossy()).into_owned();
        let what = self.say(
            format!("a database that could not be read any more was set aside in {path}"),
            format!("无法读取的数据库已移到 {path}"),
        );
        let left = self.cellar.to_read().and_then(|store| Ok(store.unrecovered()?));
        if left.is_ok_and(|left| left.is_empty()) {
            let todo = self.say(
                "look at the disk; what could be read came back, so that folder may go",
                "请检查磁盘；可读取的内容已恢复，该文件夹可以删除",
            );
            return self.note(STORE, "damaged", what, Some(todo));
        }
        let todo = self.say(
            "look at the disk, then `unstuck recover` brings back what can be read of it",
            "请检查磁盘，然后 `unstuck recover` 会恢复其中可读取的内容",
        );
        self.warn(STORE, "damaged", what, todo);
    }

    fn look_at_the_spool(&mut self, waiting: u64, waited: u64) {
        let (size, were) = (removed::size(waiting), removed::size(waited));
        match (waiting, waited) {
            (0, 0) => {}
            (0, _) => {
                let what = self.say(
                    format!("{were} waited in the spool and were taken in: the database was held or could not be written"),
                    format!("暂存区有 {were} 等待，现已写入：数据库曾被占用或无法写入"),
                );
                self.note(STORE, "spool", what, None);
            }
            (_, _) => {
                let what = self.say(
                    format!("{size} wait in the spool and could not be taken in"),
                    format!("暂存区有 {size} 等待，未能写入数据库"),
                );
                let (why, todo) = match self.cellar.lines_wait() {
                    // The format is told of already, with what to do.
                    Some(why @ Waits::TooNew { .. }) => (Some(why), None),
                    Some(why @ Waits::Full) => {
                        let todo = self.say("free some space on that disk", "请在该磁盘上腾出空间");
                        (Some(why), Some(todo))
                    }
                    why @ (Some(Waits::Held) | None) => {
                        let todo = self.say(
                            "end what holds the database, then run `unstuck heartbeat`",
                            "请结束占用数据库的进程，然后运行 `unstuck heartbeat`",
                        );
                        (why, Some(todo))
                    }
                };
                let what = match why {
                    None => what,
                    Some(why) => {
                        let why = why.in_words(self.lang);
                        self.say(format!("{what}: {why}"), format!("{what}：{why}"))
                    }
                };
                self.warn(STORE, "spool", what, todo);
            }
        }
    }

    fn look_at_the_clock(&mut self, store: &Store) {
        let Ok(Some(last)) = store.last_event_at() else { return };
        if last <= self.now.saturating_add(AHEAD_MS) {
            return;
        }
        let ahead = moment::span(last - self.now);
        let what = self.say(
            format!("the newest event lies {ahead} in the future: a clock was wrong then, or is now"),
            format!("最新的事件在 {ahead} 之后：当时或现在的时钟有误"),
        );
        let todo = self.say("set the clock of this machine", "请校准本机时钟");
        self.warn(STORE, "clock", what, todo);
    }

    fn look_at_our_faults(&mut self, store: &Store) {
        let faults = match store.own_faults(self.now.saturating_sub(DAY_MS), FAULTS_MAX) {
            Ok(faults) => faults,
            Err(error) => return self.store_fails("faults", &CommandError::from(error)),
        };
        if faults.is_empty() {
            let what = self.say("no faults of our own in the last day", "最近一天没有自身故障");
            return self.fine(STORE, "faults", what);
        }
        for fault in faults {
            let (part, text) = (plain::short(&fault.part, 40), plain::short(&fault.what, 240));
            let ago = moment::ago(fault.last_at, self.now, self.lang);
            let what = self.say(
                format!("{part}: {text} ({}×, last {ago})", fault.count),
                format!("{part}：{text}（{} 次，最近 {ago}）", fault.count),
            );
            let todo = self.say(
                "`unstuck log --channel monitor` shows all of them",
                "`unstuck log --channel monitor` 列出全部",
            );
            self.warn(STORE, "faults", what, todo);
        }
    }
}
