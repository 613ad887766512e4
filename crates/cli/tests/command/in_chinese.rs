//! What goes wrong is told in Chinese to whoever reads Chinese; names, paths and keys stay as they are.

use std::fs;
use std::os::unix::fs::symlink;

use crate::world::World;

const USER: &str = "config/unstuck/config.toml";
const STATE: &str = ".local/state/unstuck";

/// Fails unless these are all the words on standard error; `~` stands for the home.
#[track_caller]
fn check(world: &World, args: &[&str], exit: i32, expected: &str) {
    let said = world.run(&[&["--lang", "zh"], args].concat(), "");
    let home = world.path("");
    let home = home.to_string_lossy();
    assert_eq!(said.exit, exit, "{said}");
    assert_eq!(said.stderr().replace(home.trim_end_matches('/'), "~"), expected, "{said}");
}

/// Writes another format number into the header of the database, where SQLite keeps it.
fn give_format(world: &World, format: u32) {
    let path = world.path(STATE).join("timeline.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&format.to_be_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_name_that_nothing_has_is_told_with_what_may_have_been_meant() {
    let world = World::with_failures();
    check(
        &world,
        &["log", "--session", "zzzz"],
        1,
        "unstuck: 没有名为 zzzz 的会话\n提示：`unstuck stats --by session` 列出全部\n",
    );
    check(
        &world,
        &["problems", "--kind", "netwrk"],
        2,
        "unstuck: 没有名为 netwrk 的类别\n提示：您指的是 network 吗？\n",
    );
    check(
        &world,
        &["show", "zzzz"],
        1,
        "unstuck: 没有名为 zzzz 的调用或问题\n\
         提示：`unstuck log` 以 #N 显示调用，`unstuck problems --all` 以 e1:… 显示问题\n",
    );
}

#[test]
fn a_mistake_in_the_settings_is_told_with_its_place() {
    let check = |text: &str, expected: &str| {
        check(&World::empty().with(USER, text), &["rules", "list"], 2, expected);
    };
    check(
        "[store]\nkeep-evnts = \"1d\"\n",
        "unstuck: ~/config/unstuck/config.toml:2:1：没有名为 store.keep-evnts 的设置\n\
         提示：您指的是 store.keep-events 吗？\n",
    );
    check(
        "[store]\ntool-errors = 3\n",
        "unstuck: ~/config/unstuck/config.toml:2:1：store.tool-errors 应为：true 或 false；写的是 integer 类型的值\n\
         提示：`unstuck config explain store.tool-errors` 有更多说明\n",
    );
    check(
        "[[alert]]\nname = \"x\"\nwhen = \"rat\"\n",
        "unstuck: ~/config/unstuck/config.toml:3:1：告警 x：when 应为：以下之一：failures, rate, event；\
         写的是 \"rat\"；您指的是 rate 吗？\n",
    );
}

#[test]
fn a_store_that_cannot_be_used_is_told_with_its_path() {
    check(
        &World::empty(),
        &["log"],
        1,
        "unstuck: ~/.local/state/unstuck 中尚无记录\n\
         提示：`unstuck install` 连接智能体，之后会记录它的调用；`unstuck scan` 可读入已有的会话记录\n",
    );
    let newer = World::with_failures();
    give_format(&newer, 999);
    let said = newer.run(&["gc", "--lang", "zh"], "");
    said.complains(125, &["timeline.db 的格式是 999，此版本最高只写到 ", "\n提示：请更新 unstuck，"]);
    let linked = World::with_failures();
    fs::rename(linked.path(STATE), linked.path("elsewhere")).unwrap();
    symlink(linked.path("elsewhere"), linked.path(STATE)).unwrap();
    let said = linked.run(&["gc", "--lang", "zh"], "");
    said.complains(125, &["unstuck: 不使用 ", "它是符号链接\n", "\n提示：请将 `store.state-dir` 指向"]);
}

#[test]
fn the_language_of_the_locale_counts_before_settings_are_read() {
    let world = World::empty().with(USER, "[store");
    let said = world.command(&["rules", "list"]).env("LC_ALL", "zh_CN.UTF-8").output().unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("config.toml:1:7："), "{said}");
}
