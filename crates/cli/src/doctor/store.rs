//! The store: can it be used, is it sound, does it have room, and what went wrong with us lately.

use std::fs;
use std::path::Path;

use unstuck_store::{Filesystem, Root, Store, StoreError};

use super::Doctor;
use crate::exit::CommandError;
use crate::moment;
use crate::plain;
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
        let waiting = root.waiting_bytes();
        match self.cellar.to_read() {
            Ok(store) => self.look_inside(&store, waiting),
            Err(CommandError::Store(StoreError::Missing { path })) => self.nothing_yet(&path),
            Err(error) => self.store_fails("database", &error),
        }
        self.look_at_what_was_set_aside(&root);
    }

    fn nothing_yet(&mut self, path: &Path) {
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
        match store.check() {
            Ok(()) => {
                let size = store.size().map_or(0, |size| size.database + size.log);
                let path = plain::line(&store.root().path().to_string_lossy()).into_owned();
                let size = removed::size(size);
                let what = self.say(format!("{path} is sound ({size})"), format!("{path} 完好（{size}）"));
                self.fine(STORE, "database", what);
            }
            Err(error) => self.store_fails("database", &CommandError::from(error)),
        }
        self.look_at_the_spool(store.root().waiting_bytes(), waited);
        self.look_at_the_clock(store);
        self.look_at_our_faults(store);
    }

    /// Databases that could not be read any more. Whoever opens the store may have put one there just now.
    fn look_at_what_was_set_aside(&mut self, root: &Root) {
        let aside = fs::read_dir(root.damaged()).map_or(0, |entries| entries.flatten().count());
        if aside > 0 {
            let path = plain::line(&root.damaged().to_string_lossy()).into_owned();
            let what = self.say(
                format!("a database that could not be read any more was set aside in {path}"),
                format!("无法读取的数据库已移到 {path}"),
            );
            let todo = self.say("look at the disk, then remove that folder", "请检查磁盘，然后删除该文件夹");
            self.note(STORE, "damaged", what, Some(todo));
        }
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
                let todo = self.say(
                    "end what holds the database, then run `unstuck heartbeat`",
                    "请结束占用数据库的进程，然后运行 `unstuck heartbeat`",
                );
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
