//! A page that names a path nobody checks is wrong within a month.

use std::fs;
use std::path::Path;

const PAGES: [&str; 4] = ["ARCHITECTURE.md", "README.md", "README.zh-CN.md", "docs/rules.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the project")
}

/// The paths that a page names: code words that look like one, and the targets of its links.
fn paths(page: &str) -> Vec<String> {
    let mut prose = String::new();
    let mut fenced = false;
    for line in page.lines() {
        match line.trim_start().starts_with("```") {
            true => fenced = !fenced,
            false if !fenced => prose.extend([line, "\n"]),
            false => {}
        }
    }
    let code = prose.split('`').skip(1).step_by(2).filter(|word| is_path(word)).map(str::to_owned);
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    let links = links.filter(|link| !link.is_empty() && !link.contains("://")).map(str::to_owned);
    code.chain(links).collect()
}

/// One word with a slash or a file's ending, that is neither an address, a flag, a pattern with a gap, nor outside.
fn is_path(word: &str) -> bool {
    const ENDINGS: [&str; 6] = [".rs", ".toml", ".md", ".jsonl", ".json", ".lock"];
    const NOT_OURS: [&str; 8] = ["://", " ", "~", "<", "{", "$", "…", "--"];
    let named = word.contains('/')
        || ENDINGS.iter().any(|ending| word.ends_with(ending) && word.len() > ending.len());
    named && !word.starts_with('/') && !NOT_OURS.iter().any(|sign| word.contains(sign))
}

/// `rules/*.toml` stands for its folder.
fn exists(page: &str, path: &str) -> bool {
    let whole = path.split('*').next().unwrap_or_default();
    let beside = root().join(page).with_file_name(whole);
    beside.exists() || root().join(whole).exists()
}

#[test]
fn every_path_that_the_pages_name_exists() {
    let mut missing = Vec::new();
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap();
        missing.extend(
            paths(&text).into_iter().filter(|path| !exists(page, path)).map(|path| format!("{page}: {path}")),
        );
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn words_that_only_look_like_paths_are_not_checked() {
    let page = "`src/main.rs` `rules/*.toml` `cat a/b` `https://x.io/y` `~/.config/x` `--rules FILE` `/etc/x` `now`\n\
                ```\n`fenced/away`\n```\n[a](docs/rules.md#x) [b](#y) [c](https://x.io)";
    assert_eq!(paths(page), ["src/main.rs", "rules/*.toml", "docs/rules.md"]);
}

#[test]
fn every_workspace_crate_is_named_in_the_architecture() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for entry in fs::read_dir(root().join("crates")).unwrap().flatten() {
        let path = format!("`crates/{}/`", entry.file_name().to_string_lossy());
        assert!(text.contains(&path), "{path} is not named in ARCHITECTURE.md");
    }
}
