//! Snapshots before what destroys, and the way back.
#![cfg(all(unix, feature = "tools"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use unstuck::tools::{Files, Safe, SafeError, Shell};
use unstuck::{CallResult, Policy, ToolCall, Toolbox};

struct Desk {
    folder: TempDir,
    _kept: TempDir,
    safe: Safe,
    tools: Toolbox,
}

impl Desk {
    fn new() -> Desk {
        let kept = tempfile::tempdir().unwrap();
        Desk::with(Safe::at(kept.path().join("safe")), kept)
    }

    fn with(safe: Safe, kept: TempDir) -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::in_folder(folder.path()).protected_by(&safe);
        let tools = Toolbox::builder()
            .tool(files.write())
            .tool(files.edit())
            .tool(files.remove(&safe))
            .tool(Shell::new().folder(folder.path()).protected_by(&safe))
            .build()
            .unwrap();
        Desk { folder, _kept: kept, safe, tools }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn put(&self, path: &str, bytes: &[u8], mode: u32) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), bytes).unwrap();
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    async fn call(&self, tool: &str, input: Value) -> CallResult {
        self.tools.call(ToolCall::new(tool, input)).await
    }

    async fn snapshot(&self, tool: &str, input: Value) -> String {
        let result = self.call(tool, input).await;
        assert!(result.is_ok(), "{result:#?}");
        result.output()["snapshot"]
            .as_str()
            .unwrap_or_else(|| panic!("nothing was saved: {result:#?}"))
            .to_owned()
    }
}

fn state(path: &Path) -> (Vec<u8>, u32) {
    (fs::read(path).unwrap(), fs::metadata(path).unwrap().permissions().mode() & 0o7777)
}

#[tokio::test]
async fn what_a_file_tool_changed_comes_back_with_bytes_and_mode() {
    let desk = Desk::new();
    let odd = b"caf\xe9 = 1\n\0\xff";
    for (tool, input) in [
        ("fs_write", json!({ "path": "a", "content": "gone" })),
        ("fs_edit", json!({ "path": "a", "old": "= 1", "new": "= 2" })),
        ("fs_remove", json!({ "path": "a" })),
    ] {
        desk.put("a", odd, 0o640);
        let snapshot = desk.snapshot(tool, input).await;
        assert_ne!(fs::read(desk.path("a")).unwrap_or_default(), odd, "{tool}");
        let undone = desk.safe.undo(&snapshot).unwrap();
        assert_eq!((undone.restored.len(), undone.kept.len()), (1, 0), "{tool} {undone:?}");
        assert_eq!(state(&desk.path("a")), (odd.to_vec(), 0o640), "{tool}");
    }
}

#[tokio::test]
async fn an_undo_leaves_alone_what_somebody_changed_since_and_a_restore_does_not() {
    let desk = Desk::new();
    desk.put("a", b"first", 0o644);
    let snapshot = desk.snapshot("fs_write", json!({ "path": "a", "content": "second" })).await;
    fs::write(desk.path("a"), "third").unwrap();
    let undone = desk.safe.undo(&snapshot).unwrap();
    assert_eq!((undone.restored.len(), undone.kept.len()), (0, 1), "{undone:?}");
    assert_eq!(fs::read(desk.path("a")).unwrap(), b"third");
    desk.safe.restore(&snapshot).unwrap();
    assert_eq!(fs::read(desk.path("a")).unwrap(), b"first");
    assert!(matches!(desk.safe.undo("s9999"), Err(SafeError::Failed(_))));
    assert!(matches!(desk.safe.undo("../s1"), Err(SafeError::NoName { .. })));
}

#[tokio::test]
async fn a_new_file_and_a_write_that_changes_nothing_need_no_snapshot() {
    let desk = Desk::new();
    for changed in [true, false] {
        let result = desk.call("fs_write", json!({ "path": "new", "content": "x" })).await;
        assert_eq!((&result.output()["changed"], result.output().get("snapshot")), (&json!(changed), None));
    }
    let result = desk.call("shell", json!({ "command": "ls; cat new" })).await;
    assert_eq!((&result.output()["stdout"], result.output().get("snapshot")), (&json!("new\nx"), None));
}

#[tokio::test]
async fn what_cannot_be_saved_is_not_touched() {
    let kept = tempfile::tempdir().unwrap();
    // A file where the safe would have to be.
    fs::write(kept.path().join("safe"), "").unwrap();
    let broken = Desk::with(Safe::at(kept.path().join("safe")), kept);
    let kept = tempfile::tempdir().unwrap();
    let full = Desk::with(Safe::at(kept.path().join("safe")).max_size(10), kept);
    let bytes: Vec<u8> =
        (0..50_000_u32).flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
    for desk in [broken, full] {
        desk.put("a", &bytes, 0o600);
        for (tool, input) in [
            ("fs_write", json!({ "path": "a", "content": "gone" })),
            ("fs_remove", json!({ "path": "a" })),
            ("shell", json!({ "command": "rm -f a" })),
        ] {
            let result = desk.call(tool, input).await;
            assert!(result.error().unwrap().contains("could not be saved first"), "{tool} {result:#?}");
            assert_eq!(state(&desk.path("a")), (bytes.clone(), 0o600), "{tool}");
        }
    }
}

#[tokio::test]
async fn a_risky_command_is_undone_as_a_whole() {
    let desk = Desk::new();
    for (path, mode) in [("src/a.rs", 0o644), ("src/deep/run.sh", 0o755), ("b.txt", 0o600)] {
        desk.put(path, path.as_bytes(), mode);
    }
    symlink("b.txt", desk.path("link")).unwrap();
    let snapshot = desk.snapshot("shell", json!({ "command": "rm -rf src link && echo new > b.txt" })).await;
    assert!(!desk.path("src").exists());
    desk.safe.undo(&snapshot).unwrap();
    assert_eq!(state(&desk.path("src/a.rs")), (b"src/a.rs".to_vec(), 0o644));
    assert_eq!(state(&desk.path("src/deep/run.sh")), (b"src/deep/run.sh".to_vec(), 0o755));
    assert_eq!(state(&desk.path("b.txt")), (b"b.txt".to_vec(), 0o600));
    assert_eq!(fs::read_link(desk.path("link")).unwrap(), Path::new("b.txt"));
}

#[tokio::test]
async fn a_command_that_failed_halfway_is_undone_too() {
    let desk = Desk::new();
    desk.put("a", b"a", 0o644);
    let result = desk.call("shell", json!({ "command": "rm a; exit 3" })).await;
    assert!(!result.is_ok() && !desk.path("a").exists(), "{result:#?}");
    desk.safe.undo(result.output()["snapshot"].as_str().unwrap()).unwrap();
    assert_eq!(fs::read(desk.path("a")).unwrap(), b"a");
}

#[tokio::test]
async fn a_command_that_was_given_up_is_found_by_its_call_and_undone() {
    let kept = tempfile::tempdir().unwrap();
    let desk = Desk::with(Safe::at(kept.path().join("safe")), kept);
    desk.put("a", b"a", 0o644);
    let shell = Shell::new().folder(desk.folder.path()).protected_by(&desk.safe);
    let policy = Policy::default().retries(0).deadline(Duration::from_millis(1_500));
    let tools = Toolbox::builder().tool(shell).policy(policy).build().unwrap();
    let result = tools.call(ToolCall::new("shell", json!({ "command": "rm a; sleep 60" }))).await;
    assert_eq!((result.error_type(), desk.path("a").exists()), (Some("aborted"), false), "{result:#?}");
    let snapshot = desk.safe.snapshot_of(result.call().id()).unwrap().unwrap();
    assert_eq!(desk.safe.snapshot_of(&"another".into()).unwrap(), None);
    // How it left things is known as soon as all that it started has ended.
    let begun = Instant::now();
    while desk.safe.undo(&snapshot).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(fs::read(desk.path("a")).unwrap(), b"a");
}

#[tokio::test]
async fn what_a_command_names_elsewhere_is_saved_as_well() {
    let desk = Desk::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = elsewhere.path().join("other");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("x.log"), "x").unwrap();
    let by_path = format!("rm -r {}", folder.display());
    let by_pattern = format!("rm {}/*.log", folder.display());
    let by_cd = format!("cd {} && rm x.log", folder.display());
    for command in [by_path, by_pattern, by_cd] {
        let snapshot = desk.snapshot("shell", json!({ "command": command })).await;
        assert!(!folder.join("x.log").exists());
        desk.safe.undo(&snapshot).unwrap();
        assert_eq!(fs::read(folder.join("x.log")).unwrap(), b"x", "{command}");
    }
    let by_cwd = json!({ "command": "rm x.log", "cwd": folder });
    let snapshot = desk.snapshot("shell", by_cwd).await;
    desk.safe.undo(&snapshot).unwrap();
    assert_eq!(fs::read(folder.join("x.log")).unwrap(), b"x");
}

#[tokio::test]
async fn what_git_would_throw_away_above_the_folder_is_saved_as_well() {
    let desk = Desk::new();
    desk.put("deep/work.txt", b"first", 0o644);
    desk.put("top.txt", b"first", 0o644);
    let git = "git -c init.defaultBranch=main init -q && git add -A && \
               git -c user.name=a -c user.email=a@mail.example commit -qm first";
    let made =
        std::process::Command::new("sh").args(["-c", git]).current_dir(desk.folder.path()).status().unwrap();
    assert!(made.success());
    fs::write(desk.path("top.txt"), "not committed").unwrap();
    let shell = Shell::new().folder(desk.path("deep")).protected_by(&desk.safe);
    let tools = Toolbox::builder().tool(shell).build().unwrap();
    let result = tools.call(ToolCall::new("shell", json!({ "command": "git reset --hard -q" }))).await;
    assert!(result.is_ok(), "{result:#?}");
    assert_eq!(fs::read(desk.path("top.txt")).unwrap(), b"first");
    desk.safe.undo(result.output()["snapshot"].as_str().unwrap()).unwrap();
    assert_eq!(fs::read(desk.path("top.txt")).unwrap(), b"not committed");
}

#[tokio::test]
async fn a_command_whose_paths_only_the_shell_can_tell_is_not_run() {
    let desk = Desk::new();
    let result = desk.call("shell", json!({ "command": "touch ran; rm -rf ~/no-such-folder-of-ours" })).await;
    assert!(result.recommendations()[0].contains("write the full path"), "{result:#?}");
    assert!(!desk.path("ran").exists());
}

#[tokio::test]
async fn the_safe_itself_is_not_written_by_file_tools() {
    let folder = tempfile::tempdir().unwrap();
    let safe = Safe::at(folder.path().join("safe"));
    let files = Files::in_folder(folder.path()).protected_by(&safe);
    let tools = Toolbox::builder().tool(files.write()).tool(files.remove(&safe)).build().unwrap();
    fs::write(folder.path().join("a"), "a").unwrap();
    let result = tools.call(ToolCall::new("fs_write", json!({ "path": "a", "content": "b" }))).await;
    assert!(result.is_ok(), "{result:#?}");
    let of_safe: Vec<PathBuf> =
        fs::read_dir(folder.path().join("safe")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let file = of_safe.iter().find(|path| path.is_file()).unwrap();
    let path = file.strip_prefix(folder.path()).unwrap();
    for (tool, input) in
        [("fs_write", json!({ "path": path, "content": "" })), ("fs_remove", json!({ "path": path }))]
    {
        let result = tools.call(ToolCall::new(tool, input)).await;
        assert!(result.error().unwrap().contains("lies in the safe"), "{result:#?}");
    }
    assert!(file.exists());
}
