//! File tools on real files, called as a model calls them.
#![cfg(all(unix, feature = "tools"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use unstuck::tools::Files;
use unstuck::{CallResult, Kind, Policy, ToolCall, Toolbox};

/// A folder, and tools that work in it.
struct Desk {
    folder: TempDir,
    tools: Toolbox,
}

impl Desk {
    fn new(files: &[(&str, &str)]) -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let given = Files::in_folder(folder.path());
        let tools = Toolbox::builder()
            .tool(given.read())
            .tool(given.write())
            .tool(given.edit())
            .tool(given.find())
            .tool(given.search())
            .policy(Policy::default().retries(0).timeout(Duration::from_secs(60)))
            .build()
            .unwrap();
        let desk = Desk { folder, tools };
        for (path, content) in files {
            let path = desk.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        desk
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    async fn call(&self, tool: &str, input: Value) -> CallResult {
        self.tools.call(ToolCall::new(tool, input)).await
    }

    #[track_caller]
    fn fine(result: CallResult) -> Value {
        assert!(result.is_ok(), "{result:#?}");
        result.into_output()
    }

    /// Whatever a call did, nothing of ours stays behind.
    fn nothing_else_is_there(&self, names: &[&str]) {
        let mut found: Vec<String> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        found.sort();
        assert_eq!(found, names);
    }
}

#[tokio::test]
async fn a_file_is_read_whole_or_in_parts() {
    let desk = Desk::new(&[("a.txt", "one\ntwo\nthree\n"), ("empty", "")]);
    let whole = Desk::fine(desk.call("fs_read", json!({ "path": "a.txt" })).await);
    assert_eq!(
        whole,
        json!({ "path": "a.txt", "content": "one\ntwo\nthree\n", "first_line": 1, "lines": 3, "size": 14 })
    );
    let part = Desk::fine(desk.call("fs_read", json!({ "path": "a.txt", "offset": 2, "limit": 1 })).await);
    assert_eq!((&part["content"], &part["next_offset"]), (&json!("two\n"), &json!(3)));
    let absolute = desk.path("a.txt").display().to_string();
    let same = Desk::fine(desk.call("fs_read", json!({ "path": absolute })).await);
    assert_eq!(same, whole);
    let empty = Desk::fine(desk.call("fs_read", json!({ "path": "./empty" })).await);
    assert_eq!((&empty["content"], &empty["notes"]), (&json!(""), &json!(["the file is empty"])));
    let past = desk.call("fs_read", json!({ "path": "a.txt", "offset": 9 })).await;
    assert_eq!(past.error(), Some("`a.txt` has 3 lines, and line 9 is past its end"));
}

#[tokio::test]
async fn a_file_that_is_not_there_is_a_failure_that_names_the_one_that_is() {
    let desk = Desk::new(&[("src/config.toml", "")]);
    for tool in ["fs_read", "fs_edit"] {
        let args = json!({ "path": "src/confg.toml", "old": "a", "new": "b" });
        let args = if tool == "fs_read" { json!({ "path": "src/confg.toml" }) } else { args };
        let result = desk.call(tool, args).await;
        assert_eq!(result.diagnosis().unwrap().kind, Kind::PathNotFound, "{result:#?}");
        assert_eq!(result.recommendations()[0], "did you mean `src/config.toml`?");
    }
}

#[tokio::test]
async fn a_huge_file_is_read_in_part_and_in_no_time() {
    let desk = Desk::new(&[]);
    // 200,000,000 bytes: many lines and then only one, and nothing but one.
    let huge = File::create(desk.path("huge.log")).unwrap();
    std::io::Write::write_all(
        &mut &huge,
        &b"0123456789012345678901234567890123456789012345678\n".repeat(4_000),
    )
    .unwrap();
    let line = File::create(desk.path("one-line")).unwrap();
    std::io::Write::write_all(&mut &line, &vec![b'x'; 100_000]).unwrap();
    [huge, line].into_iter().for_each(|file| file.set_len(200_000_000).unwrap());
    let begun = Instant::now();
    let read = Desk::fine(desk.call("fs_read", json!({ "path": "huge.log" })).await);
    assert_eq!(
        (&read["lines"], &read["next_offset"], &read["size"]),
        (&json!(2000), &json!(2001), &json!(200_000_000))
    );
    let far =
        Desk::fine(desk.call("fs_read", json!({ "path": "huge.log", "offset": 3_999, "limit": 2 })).await);
    assert_eq!((&far["lines"], far.get("next_offset")), (&json!(2), Some(&json!(4001))));
    let long = Desk::fine(desk.call("fs_read", json!({ "path": "one-line" })).await);
    assert_eq!(long["content"].as_str().unwrap().len(), 4 * 1024 + 1);
    assert_eq!(long["notes"], json!(["line 1 is longer: 199995904 bytes of it are left out"]));
    let edit = desk.call("fs_edit", json!({ "path": "huge.log", "old": "a", "new": "b" })).await;
    assert!(edit.error().unwrap().contains("are not edited"), "{edit:?}");
    let found = Desk::fine(desk.call("fs_grep", json!({ "pattern": "xx", "plain": true })).await);
    assert_eq!(found["matches"][0]["path"], "one-line");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_is_no_text_is_told_and_not_dumped() {
    let desk = Desk::new(&[]);
    fs::write(desk.path("picture.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    fs::write(desk.path("latin"), b"caf\xe9\n").unwrap();
    fs::create_dir(desk.path("folder")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(desk.path("pipe")).status().unwrap();
    assert!(pipe.success());
    let binary = desk.call("fs_read", json!({ "path": "picture.png" })).await;
    assert_eq!(binary.error(), Some("`picture.png` is a binary file of 16 bytes and is not shown"));
    let latin = Desk::fine(desk.call("fs_read", json!({ "path": "latin" })).await);
    assert_eq!(latin["content"], "caf\u{fffd}\n");
    assert!(latin["notes"][0].as_str().unwrap().contains("UTF-8"), "{latin}");
    let folder = desk.call("fs_read", json!({ "path": "folder" })).await;
    assert_eq!(folder.error(), Some("`folder` is a directory"));
    for (tool, args) in [
        ("fs_read", json!({ "path": "pipe" })),
        ("fs_write", json!({ "path": "pipe", "content": "" })),
        ("fs_edit", json!({ "path": "pipe", "old": "a", "new": "b" })),
    ] {
        let pipe = desk.call(tool, args).await;
        assert!(pipe.error().unwrap().contains("not a regular file"), "{pipe:?}");
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_folder() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let desk = Desk::new(&[("in/a.txt", "inside")]);
    symlink(&secret, desk.path("to-file")).unwrap();
    symlink(outside.path(), desk.path("to-folder")).unwrap();
    symlink("../../..", desk.path("in/up")).unwrap();
    symlink("/proc/self/root", desk.path("magic")).unwrap();
    let secret = secret.display().to_string();
    let name = outside.path().file_name().unwrap().to_str().unwrap().to_owned();
    let ways = [
        format!("../{name}/secret"),
        format!("in/../../{name}/secret"),
        secret.clone(),
        "to-file".to_owned(),
        "to-folder/secret".to_owned(),
        format!("magic{secret}"),
        "in/up/etc/passwd".to_owned(),
        "..".to_owned(),
        String::new(),
        "a\0b".to_owned(),
    ];
    for way in ways {
        for (tool, args) in [
            ("fs_read", json!({ "path": way })),
            ("fs_write", json!({ "path": way, "content": "overwritten" })),
            ("fs_write", json!({ "path": way, "content": "overwritten", "create_dirs": true })),
            ("fs_edit", json!({ "path": way, "old": "secret", "new": "overwritten" })),
            ("fs_glob", json!({ "path": way, "pattern": "*" })),
            ("fs_grep", json!({ "path": way, "pattern": "secret" })),
        ] {
            let result = desk.call(tool, args).await;
            assert!(!result.is_ok(), "{tool} {way}: {result:#?}");
            assert!(!result.to_json()["output"].to_string().contains("secret"), "{tool} {way}: {result:#?}");
        }
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    // Whoever goes through all of it does not follow links either.
    let found = Desk::fine(desk.call("fs_grep", json!({ "pattern": "secret" })).await);
    assert_eq!(found["matches"], json!([]));
    let found = Desk::fine(desk.call("fs_glob", json!({ "pattern": "**/*" })).await);
    assert_eq!(found["files"], json!(["in/a.txt"]));
}

#[tokio::test]
async fn a_link_that_stays_inside_is_read_but_never_written_through() {
    let desk = Desk::new(&[("real/a.txt", "inside")]);
    symlink("real/a.txt", desk.path("link")).unwrap();
    symlink("real", desk.path("folder")).unwrap();
    for path in ["link", "folder/a.txt"] {
        let read = Desk::fine(desk.call("fs_read", json!({ "path": path })).await);
        assert_eq!(read["content"], "inside");
    }
    let written = desk.call("fs_write", json!({ "path": "link", "content": "x" })).await;
    assert!(written.error().unwrap().contains("symbolic link to `real/a.txt`"), "{written:?}");
    let edited =
        Desk::fine(desk.call("fs_edit", json!({ "path": "folder/a.txt", "old": "in", "new": "out" })).await);
    assert_eq!((&edited["replaced"], desk.text("real/a.txt")), (&json!(1), "outside".to_owned()));
    assert!(desk.path("link").is_symlink());
}

#[tokio::test]
async fn a_file_is_written_whole_and_keeps_its_mode() {
    let desk = Desk::new(&[("run.sh", "old")]);
    fs::set_permissions(desk.path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    let written = Desk::fine(desk.call("fs_write", json!({ "path": "run.sh", "content": "new\n" })).await);
    assert_eq!(written, json!({ "path": "run.sh", "size": 4, "created": false, "changed": true }));
    assert_eq!(desk.text("run.sh"), "new\n");
    assert_eq!(fs::metadata(desk.path("run.sh")).unwrap().permissions().mode() & 0o7777, 0o750);
    let again = Desk::fine(desk.call("fs_write", json!({ "path": "run.sh", "content": "new\n" })).await);
    assert_eq!(again["changed"], false);

    let deep = json!({ "path": "a/b/c.txt", "content": "deep" });
    let missing = desk.call("fs_write", deep.clone()).await;
    assert_eq!(missing.diagnosis().unwrap().kind, Kind::PathNotFound, "{missing:#?}");
    assert!(
        missing.recommendations().contains(&"set `create_dirs` to make the folder".to_owned()),
        "{missing:#?}"
    );
    let deep = json!({ "path": "a/b/c.txt", "content": "deep", "create_dirs": true });
    assert_eq!(Desk::fine(desk.call("fs_write", deep).await)["created"], true);
    assert_eq!(desk.text("a/b/c.txt"), "deep");
    desk.nothing_else_is_there(&["a", "run.sh"]);
}

#[tokio::test]
async fn an_edit_changes_exactly_the_text_it_names() {
    let desk = Desk::new(&[("a.rs", "fn one() {}\nfn two() {}\nfn three() {}\n")]);
    let edited =
        Desk::fine(desk.call("fs_edit", json!({ "path": "a.rs", "old": "two", "new": "zwei" })).await);
    assert_eq!(edited, json!({ "path": "a.rs", "replaced": 1, "line": 2, "size": 39 }));
    assert_eq!(desk.text("a.rs"), "fn one() {}\nfn zwei() {}\nfn three() {}\n");

    let several = desk.call("fs_edit", json!({ "path": "a.rs", "old": "fn ", "new": "pub fn " })).await;
    assert_eq!(several.diagnosis().unwrap().kind, Kind::Conflict, "{several:#?}");
    assert_eq!(several.output(), &json!({ "matches": 3, "lines": [1, 2, 3] }));
    let all = json!({ "path": "a.rs", "old": "fn ", "new": "pub fn ", "all": true });
    assert_eq!(Desk::fine(desk.call("fs_edit", all).await)["replaced"], 3);
    assert_eq!(desk.text("a.rs"), "pub fn one() {}\npub fn zwei() {}\npub fn three() {}\n");

    let gone = desk.call("fs_edit", json!({ "path": "a.rs", "old": "pub fn  three()", "new": "" })).await;
    assert_eq!(gone.diagnosis().unwrap().kind, Kind::Conflict, "{gone:#?}");
    assert_eq!(gone.output(), &json!({ "nearest": { "line": 3, "text": "pub fn three() {}" } }));
    assert!(gone.recommendations()[0].contains("read the file again with fs_read"), "{gone:#?}");
    for (old, new) in [("", "x"), ("one", "one")] {
        let result = desk.call("fs_edit", json!({ "path": "a.rs", "old": old, "new": new })).await;
        assert_eq!(result.error_type(), Some("validation"), "{result:#?}");
    }
    desk.nothing_else_is_there(&["a.rs"]);
}

#[tokio::test]
async fn an_edit_leaves_bytes_that_are_no_text_as_they_are() {
    let desk = Desk::new(&[("dos.txt", "one\r\ntwo\r\n")]);
    fs::write(desk.path("latin"), b"caf\xe9 = 1\n\0").unwrap();
    Desk::fine(desk.call("fs_edit", json!({ "path": "latin", "old": "= 1", "new": "= 2" })).await);
    assert_eq!(fs::read(desk.path("latin")).unwrap(), b"caf\xe9 = 2\n\0");
    let dos = desk.call("fs_edit", json!({ "path": "dos.txt", "old": "one\ntwo", "new": "" })).await;
    assert!(dos.recommendations().iter().any(|advice| advice.contains(r"\r\n")), "{dos:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_edits_at_once_none_is_lost() {
    const EDITS: usize = 40;
    let lines: String = (0..EDITS).map(|n| format!("<{n}>\n")).collect();
    let desk = Desk::new(&[("a.txt", &lines)]);
    let calls = (0..EDITS).map(|n| {
        let tools = desk.tools.clone();
        let args = json!({ "path": "a.txt", "old": format!("<{n}>"), "new": format!("[{n}]") });
        tokio::spawn(async move { tools.call(ToolCall::new("fs_edit", args)).await })
    });
    for call in calls.collect::<Vec<_>>() {
        Desk::fine(call.await.unwrap());
    }
    assert_eq!(desk.text("a.txt"), lines.replace('<', "[").replace('>', "]"));
    desk.nothing_else_is_there(&["a.txt"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_program_writes_at_the_same_time_is_not_lost() {
    let desk = Desk::new(&[("count", "0 a")]);
    // It replaces the number each time, and never touches the letter; so do we the other way round.
    let path = desk.path("count");
    let other = std::thread::spawn(move || {
        for n in 1..=300 {
            let draft = path.with_extension("new");
            // What it wrote last must be there, at the latest when whoever saw that it had been quicker has put it back.
            let begun = Instant::now();
            let text = loop {
                let text = fs::read_to_string(&path).unwrap();
                if text.starts_with(&format!("{} ", n - 1)) {
                    break text;
                }
                assert!(begun.elapsed() < Duration::from_secs(5), "{} is lost: {text:?}", n - 1);
            };
            let (_, letter) = text.split_once(' ').unwrap();
            fs::write(&draft, format!("{n} {letter}")).unwrap();
            fs::rename(&draft, &path).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let (mut done, mut refused) = (0_usize, 0_usize);
    while !other.is_finished() {
        let turn = if done % 2 == 0 {
            json!({ "path": "count", "old": " a", "new": " b" })
        } else {
            json!({ "path": "count", "old": " b", "new": " a" })
        };
        let edited =
            desk.tools.call(ToolCall::new("fs_edit", turn).session(format!("{done} {refused}"))).await;
        match edited.is_ok() {
            true => done += 1,
            false => {
                // It was changed under our hands, or our last letter was written over.
                assert_eq!(edited.diagnosis().unwrap().kind, Kind::Conflict, "{edited:#?}");
                refused += 1;
                done += usize::from(edited.error().unwrap().contains("not found"));
            }
        }
    }
    other.join().unwrap();
    let last = desk.text("count");
    assert!(last.starts_with("300 "), "the last word of the other program is lost: {last:?}");
    assert!(done > 0 && refused > 0, "they never met: {done} {refused}");
}

#[tokio::test]
async fn what_is_changed_right_after_it_was_written_is_no_success() {
    let desk = Desk::new(&[("a.txt", &format!("<0>\n{}", "x".repeat(16 << 20)))]);
    let path = desk.path("a.txt");
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    // Whenever another file is in the place, it is changed at once.
    let other = std::thread::spawn(move || {
        let mut known = fs::metadata(&path).unwrap().ino();
        while !is_over.load(Ordering::SeqCst) {
            let now = fs::metadata(&path).unwrap().ino();
            if now != known {
                known = now;
                File::options().write(true).open(&path).unwrap().set_len(1_000).unwrap();
            }
        }
    });
    let mut seen = false;
    for n in 0..20 {
        let args = json!({ "path": "a.txt", "old": "<0>", "new": format!("<0>{n}") });
        let result = desk.tools.call(ToolCall::new("fs_edit", args).session(n.to_string())).await;
        if result.error().is_some_and(|error| error.contains("right after it was written")) {
            assert_eq!(result.diagnosis().unwrap().kind, Kind::Conflict, "{result:#?}");
            seen = true;
            break;
        }
        fs::write(desk.path("a.txt"), format!("<0>\n{}", "x".repeat(16 << 20))).unwrap();
    }
    over.store(true, Ordering::SeqCst);
    other.join().unwrap();
    assert!(seen, "it was called a success each time");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_a_failure_and_nothing_changes() {
    // Nobody may make files there, whoever they are.
    let tools = Toolbox::builder().tool(Files::in_folder("/proc/self").write()).build().unwrap();
    let result = tools.call(ToolCall::new("fs_write", json!({ "path": "new-file", "content": "x" }))).await;
    assert!(!result.is_ok(), "{result:#?}");
    assert!(!Path::new("/proc/self/new-file").exists());
    let long = "n".repeat(300);
    let desk = Desk::new(&[]);
    let result = desk.call("fs_write", json!({ "path": long, "content": "x" })).await;
    assert!(result.error().unwrap().contains("name too long"), "{result:#?}");
    desk.nothing_else_is_there(&[]);
}

#[tokio::test]
#[ignore = "a part of `on_a_full_disk_a_file_stays_as_it_was`"]
async fn writes_on_a_full_disk() {
    let desk = Desk::new(&[("a.txt", "before")]);
    let content = "x".repeat(1 << 20);
    for (tool, args) in [
        ("fs_write", json!({ "path": "a.txt", "content": content })),
        ("fs_write", json!({ "path": "new.txt", "content": content })),
        ("fs_edit", json!({ "path": "a.txt", "old": "before", "new": content })),
    ] {
        let result = desk.call(tool, args).await;
        assert!(result.error().unwrap().starts_with("could not write"), "{result:#?}");
        assert_eq!(desk.text("a.txt"), "before");
        desk.nothing_else_is_there(&["a.txt"]);
    }
}

#[test]
fn on_a_full_disk_a_file_stays_as_it_was() {
    // No file may grow past 60 blocks: to a program it is as if the disk were full in the middle of a write.
    let limited = "trap '' XFSZ; ulimit -f 60; exec \"$0\" --ignored --exact writes_on_a_full_disk";
    let ran = std::process::Command::new("sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && told.contains("1 passed"), "{told}");
}

#[tokio::test]
async fn files_are_found_by_name_and_what_is_not_seen_is_said() {
    let desk = Desk::new(&[
        ("src/a.rs", ""),
        ("src/deep/b.rs", ""),
        ("c.txt", ""),
        (".hidden/d.rs", ""),
        (".git/e.rs", ""),
        ("node_modules/x/f.rs", ""),
        ("target/CACHEDIR.TAG", ""),
        ("target/g.rs", ""),
    ]);
    let check = async |args: Value, expected: Value| {
        let found = Desk::fine(desk.call("fs_glob", args.clone()).await);
        assert_eq!(found["files"], expected, "{args} {found}");
        found
    };
    let found =
        check(json!({ "pattern": "*.rs" }), json!([".hidden/d.rs", "src/a.rs", "src/deep/b.rs"])).await;
    assert_eq!(
        found["notes"],
        json!(["left out, unless `path` names them: `.git`, `node_modules`, `target`"])
    );
    check(json!({ "pattern": "src/*.rs" }), json!(["src/a.rs"])).await;
    check(json!({ "pattern": "src/**/*.rs" }), json!(["src/a.rs", "src/deep/b.rs"])).await;
    check(json!({ "pattern": "**/*.rs", "path": "src" }), json!(["src/a.rs", "src/deep/b.rs"])).await;
    check(json!({ "pattern": "*.rs", "path": "target" }), json!(["target/g.rs"])).await;
    let cut = check(json!({ "pattern": "*.rs", "limit": 1 }), json!([".hidden/d.rs"])).await;
    assert!(cut["notes"][0].as_str().unwrap().contains("only the first"), "{cut}");
    check(json!({ "pattern": "*.rs", "limit": 3 }), json!([".hidden/d.rs", "src/a.rs", "src/deep/b.rs"]))
        .await;
    let bad = desk.call("fs_glob", json!({ "pattern": "a[" })).await;
    assert_eq!(bad.error_type(), Some("validation"), "{bad:#?}");
}

#[tokio::test]
async fn names_that_are_no_utf_8_are_shown_and_marked() {
    let desk = Desk::new(&[]);
    fs::write(desk.folder.path().join(OsStr::from_bytes(b"caf\xe9.txt")), "found").unwrap();
    let found = Desk::fine(desk.call("fs_glob", json!({ "pattern": "*.txt" })).await);
    assert_eq!(found["files"], json!(["caf\u{fffd}.txt"]));
    assert!(found["notes"][0].as_str().unwrap().contains("not UTF-8"), "{found}");
    let found = Desk::fine(desk.call("fs_grep", json!({ "pattern": "found" })).await);
    assert_eq!(found["matches"][0]["path"], "caf\u{fffd}.txt");
}

#[tokio::test]
async fn lines_are_found_by_expression_or_text() {
    let desk = Desk::new(&[("a.rs", "let x = 1;\nlet y = f(x);\n"), ("b.txt", "LET it be\n")]);
    fs::write(desk.path("bin"), b"let\0").unwrap();
    let check = async |args: Value, expected: Value| {
        let found = Desk::fine(desk.call("fs_grep", args.clone()).await);
        let lines: Vec<Value> =
            found["matches"].as_array().unwrap().iter().map(|m| json!([m["path"], m["line"]])).collect();
        assert_eq!(json!(lines), expected, "{args} {found}");
        found
    };
    let found = check(json!({ "pattern": r"let \w = \d" }), json!([["a.rs", 1]])).await;
    assert_eq!(
        (&found["files_searched"], &found["notes"]),
        (&json!(2), &json!(["1 binary files were passed over"]))
    );
    check(json!({ "pattern": "f(x)", "plain": true }), json!([["a.rs", 2]])).await;
    check(json!({ "pattern": "let", "ignore_case": true }), json!([["a.rs", 1], ["a.rs", 2], ["b.txt", 1]]))
        .await;
    check(
        json!({ "pattern": "LET", "ignore_case": true, "plain": true, "glob": "*.txt" }),
        json!([["b.txt", 1]]),
    )
    .await;
    let cut = check(json!({ "pattern": "let", "limit": 1 }), json!([["a.rs", 1]])).await;
    assert!(cut["notes"][0].as_str().unwrap().contains("only the first"), "{cut}");
    check(json!({ "pattern": "1;$" }), json!([["a.rs", 1]])).await;
    let bad = desk.call("fs_grep", json!({ "pattern": "f(x" })).await;
    assert_eq!(bad.error_type(), Some("validation"), "{bad:#?}");
}

#[tokio::test]
async fn a_search_that_nobody_waits_for_ends() {
    let desk = Desk::new(&[]);
    // A file that never ends for whoever reads it line by line: sparse, and without one line end.
    let endless = File::create(desk.path("endless")).unwrap();
    std::io::Write::write_all(&mut &endless, &vec![b'x'; 64 * 1024]).unwrap();
    endless.set_len(1 << 42).unwrap();
    let files = Files::in_folder(desk.folder.path());
    let policy = Policy::default().retries(0).timeout(Duration::from_millis(300));
    let tools = Toolbox::builder().tool(files.search()).tool(files.read()).policy(policy).build().unwrap();
    let begun = Instant::now();
    for call in [
        ToolCall::new("fs_grep", json!({ "pattern": "y" })),
        ToolCall::new("fs_read", json!({ "path": "endless" })),
    ] {
        let result = tools.call(call).await;
        assert_eq!(result.error_type(), Some("aborted"), "{result:#?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // The runtime waits for all threads when it ends: a reader that does not heed would hold this test for ever.
}

#[test]
fn the_judge_knows_what_these_tools_do_to_the_world() {
    let args = json!({ "path": "a.rs" });
    for (tool, moves) in [
        ("fs_read", false),
        ("fs_glob", false),
        ("fs_grep", false),
        ("fs_write", true),
        ("fs_edit", true),
        ("fs_remove", true),
    ] {
        let call = unstuck_judge::Call::new(tool, args.clone());
        assert_eq!(unstuck_judge::nature::moves_world(&call), moves, "{tool}");
    }
}
