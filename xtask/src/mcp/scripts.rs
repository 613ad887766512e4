//! What is asked of each server: the same requests with and without us.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{io::Read, io::Write, thread};

use serde_json::{Value, json};

use super::{EVERYTHING, FILESYSTEM, MEMORY, THINKING, Tools};
use crate::Fault;

/// A server, and what is asked of it.
pub struct Play {
    /// Its name in the table.
    pub name: &'static str,
    /// What it states.
    pub states: &'static str,
    /// Its program; a fault is why it cannot be played.
    pub words: fn(&Tools, &Path) -> Result<Vec<PathBuf>, String>,
    /// Makes its folder ready, the same way each time.
    pub prepare: fn(&Path) -> Result<(), Fault>,
    /// What is asked.
    pub steps: fn(&Path) -> Vec<Step>,
    /// What of its answers is another each time.
    pub masks: &'static [Mask],
}

/// Text between these two is another each time, for a reason.
pub struct Mask {
    pub from: &'static str,
    pub to: &'static str,
    pub why: &'static str,
}

/// One thing that is asked.
#[derive(Debug, Clone)]
pub enum Step {
    /// A request whose answer is the same to the byte.
    Ask(&'static str, Value),
    /// A call that goes well: its answer is the same to the byte.
    Call(&'static str, Value),
    /// A call that fails: the answer begins with all that the server said.
    Fails(&'static str, Value),
    /// A call that we answer, in our own words, because its arguments cannot be right.
    Mistaken(&'static str, Value),
    /// A call with a token for its progress.
    Progress(&'static str, Value),
    /// A call that is cancelled: no answer to it comes.
    Cancelled(&'static str, Value),
    /// A notification.
    Notify(&'static str, Value),
    /// What comes by itself after the handshake is waited for.
    Settle,
}

/// All of them.
pub const PLAYS: [Play; 8] = [
    Play {
        name: "everything",
        states: "lists, resources, prompts, progress, cancellation, completion, logging, questions to the client",
        words: |tools, _| Ok(tools.node(EVERYTHING, "dist/index.js")),
        prepare: nothing,
        steps: everything,
        masks: &[
            Mask { from: "created at ", to: "\"", why: "a dynamic resource tells when it was made" },
            Mask { from: "session/", to: "\"", why: "names of a session's resources are drawn" },
        ],
    },
    Play {
        name: "filesystem",
        states: "files of one folder, and none outside",
        words: |tools, folder| {
            let mut words = tools.node(FILESYSTEM, "dist/index.js");
            words.push(folder.to_owned());
            Ok(words)
        },
        prepare: some_files,
        steps: filesystem,
        masks: &[
            Mask { from: "created: ", to: "\\n", why: "the folder is made anew" },
            Mask { from: "modified: ", to: "\\n", why: "the folder is made anew" },
            Mask { from: "accessed: ", to: "\\n", why: "it is read at another time" },
        ],
    },
    Play {
        name: "memory",
        states: "a graph in a file",
        words: |tools, _| Ok(tools.node(MEMORY, "dist/index.js")),
        prepare: nothing,
        steps: memory,
        masks: &[],
    },
    Play {
        name: "thinking",
        states: "one tool with many arguments",
        words: |tools, _| Ok(tools.node(THINKING, "dist/index.js")),
        prepare: nothing,
        steps: thinking,
        masks: &[],
    },
    Play {
        name: "time",
        states: "a server in Python",
        words: |tools, _| python(tools, "mcp_server_time", &["--local-timezone", "Etc/UTC"]),
        prepare: nothing,
        steps: time,
        masks: &[Mask { from: "datetime", to: "day_of_week", why: "it tells the time" }],
    },
    Play {
        name: "fetch",
        states: "pages of loopback",
        words: |tools, _| python(tools, "mcp_server_fetch", &["--ignore-robots-txt", "--allow-private-ips"]),
        prepare: nothing,
        steps: fetch,
        masks: &[],
    },
    Play {
        name: "git",
        states: "a repository",
        words: |tools, _| python(tools, "mcp_server_git", &[]),
        prepare: a_repository,
        steps: git,
        masks: &[],
    },
    Play {
        name: "scripted",
        states: "our own: unknown methods and fields, structures, answers of another era, noise",
        words: |tools, _| Ok(vec![tools.scripted.clone()]),
        prepare: nothing,
        steps: scripted,
        masks: &[],
    },
];

fn nothing(_: &Path) -> Result<(), Fault> {
    Ok(())
}

fn python(tools: &Tools, module: &str, args: &[&str]) -> Result<Vec<PathBuf>, String> {
    match &tools.no_python {
        Some(why) => Err(why.clone()),
        None => {
            let words = ["python3", "-m", module].into_iter().chain(args.iter().copied());
            Ok(words.map(PathBuf::from).collect())
        }
    }
}

fn some_files(folder: &Path) -> Result<(), Fault> {
    fs::create_dir(folder.join("tables"))?;
    fs::write(folder.join("tables/march.txt"), "low water at 06:12\nhigh water at 12:20\n")?;
    Ok(fs::write(folder.join("chart.bin"), [0, 1, 2, 3])?)
}

fn a_repository(folder: &Path) -> Result<(), Fault> {
    fs::write(folder.join("tide.txt"), "low water\n")?;
    for words in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-qm", "begin"]] {
        let mut git = Command::new("git");
        git.args([
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@harbour.example",
            "-c",
            "commit.gpgsign=false",
        ]);
        let day = "2026-01-01T00:00:00Z";
        git.args(words).current_dir(folder).env("GIT_AUTHOR_DATE", day).env("GIT_COMMITTER_DATE", day);
        if !git.status()?.success() {
            return Err("git made no repository".into());
        }
    }
    Ok(fs::write(folder.join("tide.txt"), "high water\n")?)
}

/// What can be asked of any server.
fn lists() -> Vec<Step> {
    use Step::Ask;
    vec![
        Step::Settle,
        Ask("tools/list", json!({})),
        Ask("resources/list", json!({})),
        Ask("resources/templates/list", json!({})),
        Ask("prompts/list", json!({})),
        Ask("ping", json!({})),
        Ask("vendor/unheard-of", json!({"b": 1, "a": 2.50})),
        Ask("server/discover", json!({})),
    ]
}

fn and(more: Vec<Step>) -> Vec<Step> {
    let mut steps = lists();
    steps.extend(more);
    steps
}

fn everything(_: &Path) -> Vec<Step> {
    use Step::{Ask, Call, Cancelled, Fails, Mistaken, Notify, Progress};
    let static_one = "demo://resource/static/document/features.md";
    and(vec![
        Call("echo", json!({"message": "tide"})),
        Call("get-sum", json!({"a": 1.5, "b": 2})),
        Call("get-tiny-image", json!({})),
        Call("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        Call("get-structured-content", json!({"location": "Chicago"})),
        Call("get-resource-links", json!({"count": 2})),
        Call("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})),
        Fails("get-resource-reference", json!({"resourceType": "Text", "resourceId": -1})),
        Mistaken("get-sum", json!({"a": {"no": "number"}})),
        Mistaken("echo", json!({})),
        Mistaken("no-such-tool", json!({})),
        Progress("trigger-long-running-operation", json!({"duration": 0.4, "steps": 4})),
        Cancelled("trigger-long-running-operation", json!({"duration": 2, "steps": 2})),
        Call("trigger-sampling-request", json!({"prompt": "How is the tide?", "maxTokens": 10})),
        Call("trigger-elicitation-request", json!({})),
        Call("get-roots-list", json!({})),
        Ask("resources/read", json!({"uri": static_one})),
        Ask("resources/read", json!({"uri": "demo://nothing"})),
        Ask("resources/subscribe", json!({"uri": static_one})),
        Ask("resources/unsubscribe", json!({"uri": static_one})),
        Ask("prompts/get", json!({"name": "simple-prompt"})),
        Ask("prompts/get", json!({"name": "args-prompt", "arguments": {"city": "Hull"}})),
        Ask("prompts/get", json!({"name": "no-such-prompt"})),
        Ask(
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "completable-prompt"}, "argument": {"name": "department", "value": "E"}}),
        ),
        Ask("logging/setLevel", json!({"level": "debug"})),
        Notify("notifications/roots/list_changed", json!({})),
        Step::Settle,
        Ask("ping", json!({})),
    ])
}

fn filesystem(folder: &Path) -> Vec<Step> {
    use Step::{Call, Fails, Mistaken};
    let path = |name: &str| folder.join(name).display().to_string();
    and(vec![
        Call("list_allowed_directories", json!({})),
        Call("list_directory", json!({"path": path("")})),
        Call("directory_tree", json!({"path": path("")})),
        Call("read_text_file", json!({"path": path("tables/march.txt")})),
        Call("read_text_file", json!({"path": path("tables/march.txt"), "head": 1})),
        Call("read_media_file", json!({"path": path("chart.bin")})),
        Call("write_file", json!({"path": path("april.txt"), "content": "neap\n"})),
        Call(
            "edit_file",
            json!({"path": path("april.txt"), "edits": [{"oldText": "neap", "newText": "spring"}]}),
        ),
        Call("search_files", json!({"path": path(""), "pattern": "**/*.txt"})),
        Call("get_file_info", json!({"path": path("april.txt")})),
        Call("move_file", json!({"source": path("april.txt"), "destination": path("may.txt")})),
        Fails("read_text_file", json!({"path": path("june.txt")})),
        Fails("read_text_file", json!({"path": "/etc/hostname"})),
        Fails(
            "edit_file",
            json!({"path": path("may.txt"), "edits": [{"oldText": "ebb", "newText": "flood"}]}),
        ),
        Mistaken("read_text_file", json!({"file": path("may.txt")})),
        Mistaken("read_multiple_files", json!({"paths": 7})),
        Call("read_text_file", json!({"path": path("may.txt")})),
    ])
}

fn memory(_: &Path) -> Vec<Step> {
    use Step::{Ask, Call, Fails, Mistaken};
    and(vec![
        Call(
            "create_entities",
            json!({"entities": [{"name": "Hull", "entityType": "port", "observations": ["tidal"]}]}),
        ),
        Call(
            "create_relations",
            json!({"relations": [{"from": "Hull", "to": "Humber", "relationType": "lies on"}]}),
        ),
        Call("add_observations", json!({"observations": [{"entityName": "Hull", "contents": ["deep"]}]})),
        Fails(
            "add_observations",
            json!({"observations": [{"entityName": "Atlantis", "contents": ["lost"]}]}),
        ),
        Mistaken("create_entities", json!({"entities": "Hull"})),
        Mistaken("search_nodes", json!({"words": "Hull"})),
        Call("search_nodes", json!({"query": "Hull"})),
        Call("read_graph", json!({})),
        Ask("resources/read", json!({"uri": "memory://knowledge-graph"})),
        Call("delete_entities", json!({"entityNames": ["Hull"]})),
    ])
}

fn thinking(_: &Path) -> Vec<Step> {
    use Step::{Call, Mistaken};
    and(vec![
        Call(
            "sequentialthinking",
            json!({"thought": "The tide turns.", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2}),
        ),
        Mistaken("sequentialthinking", json!({"thought": "The tide turns."})),
        Call(
            "sequentialthinking",
            json!({"thought": "It is low.", "nextThoughtNeeded": false, "thoughtNumber": 2, "totalThoughts": 2}),
        ),
    ])
}

fn time(_: &Path) -> Vec<Step> {
    use Step::{Call, Fails, Mistaken};
    and(vec![
        Call("get_current_time", json!({"timezone": "Europe/London"})),
        Call(
            "convert_time",
            json!({"source_timezone": "Etc/UTC", "time": "06:12", "target_timezone": "Asia/Tokyo"}),
        ),
        Fails("get_current_time", json!({"timezone": "Atlantis/Harbour"})),
        Fails(
            "convert_time",
            json!({"source_timezone": "Etc/UTC", "time": "low water", "target_timezone": "Asia/Tokyo"}),
        ),
        Mistaken("get_current_time", json!({})),
    ])
}

fn fetch(_: &Path) -> Vec<Step> {
    use Step::{Ask, Call, Fails, Mistaken};
    // Both plays have to ask at the same address. Raw, because it makes text of a page with programs that it downloads first.
    let url = |path: &str| format!("http://127.0.0.1:{FETCHED}{path}");
    and(vec![
        Call("fetch", json!({"url": url("/tide"), "raw": true})),
        Call("fetch", json!({"url": url("/tide"), "raw": true, "max_length": 20})),
        Fails("fetch", json!({"url": url("/missing"), "raw": true})),
        Mistaken("fetch", json!({"url": 7})),
        Ask("prompts/get", json!({"name": "fetch", "arguments": {"url": url("/missing")}})),
    ])
}

fn git(folder: &Path) -> Vec<Step> {
    use Step::{Call, Fails, Mistaken};
    let repo = folder.display().to_string();
    and(vec![
        Call("git_status", json!({"repo_path": repo})),
        Call("git_diff_unstaged", json!({"repo_path": repo})),
        Call("git_log", json!({"repo_path": repo, "max_count": 1})),
        Call("git_show", json!({"repo_path": repo, "revision": "HEAD"})),
        Call("git_add", json!({"repo_path": repo, "files": ["tide.txt"]})),
        Call("git_diff_staged", json!({"repo_path": repo})),
        Fails("git_show", json!({"repo_path": repo, "revision": "no-such-revision"})),
        Fails("git_checkout", json!({"repo_path": repo, "branch_name": "no-such-branch"})),
        Mistaken("git_log", json!({"repo_path": repo, "max_count": {"no": "number"}})),
        Call("git_branch", json!({"repo_path": repo, "branch_type": "local"})),
    ])
}

fn scripted(_: &Path) -> Vec<Step> {
    use Step::{Ask, Call, Cancelled, Fails, Mistaken, Progress};
    and(vec![
        Ask("vendor/anything", json!({"z": 1, "a": [1.0, 2.50, 1e3]})),
        Call("echo", json!({"text": "tide \u{1f30a} \\ \" \u{0007}"})),
        Call("structured", json!({})),
        Call("untyped", json!({"z": 1.50, "a": null})),
        Call("input_required", json!({})),
        Call("task", json!({})),
        Call("typed", json!({"name": "Hull", "count": 2, "place": {"port": "x"}, "extra": true})),
        Call("logging", json!({})),
        Call("elicit", json!({})),
        Call("sample", json!({})),
        Call("noise", json!({"kind": "two"})),
        Call("noise", json!({"kind": "split"})),
        Call("stray", json!({"text": "the answer"})),
        Call("big", json!({"megabytes": 3})),
        Call("grow", json!({})),
        Call("grown_1", json!({})),
        Ask("tools/list", json!({})),
        Progress("slow", json!({"ms": 200, "steps": 4})),
        Cancelled("slow", json!({"ms": 1500, "steps": 3})),
        Fails("fail", json!({"text": "gauge 7 disagrees with gauge 4"})),
        Fails("fail_struct", json!({})),
        Fails("fail_declared", json!({})),
        Fails("rpc_error", json!({"code": -32050, "message": "the gauge is stuck", "data": {"gauge": 4}})),
        Mistaken("typed", json!({"name": 7})),
        Mistaken("typd", json!({"name": "Hull"})),
        Ask("resources/read", json!({"uri": "tide://today"})),
        Ask("prompts/get", json!({"name": "forecast", "arguments": {"day": "Monday"}})),
    ])
}

/// Where `fetch` finds its pages.
const FETCHED: u16 = 28_417;

/// Serves the pages that `fetch` fetches, as long as this process lives.
pub fn serve_pages() -> Result<(), Fault> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, FETCHED))?;
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut head = [0; 4096];
                let count = stream.read(&mut head).unwrap_or(0);
                let asked = String::from_utf8_lossy(&head[..count]).into_owned();
                let (status, body) = match asked.starts_with("GET /tide ") {
                    true => ("200 OK", "<html><body><h1>Tide</h1><p>Low water at 06:12.</p></body></html>"),
                    false => ("404 Not Found", "<html><body>There is no such page.</body></html>"),
                };
                // Who asked may be gone.
                let _unheard = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            });
        }
    });
    Ok(())
}
