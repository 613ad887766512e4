//! What a server is called and how it is shown, by the command that starts it: nothing of it may tell a secret.

use std::ffi::OsString;

use hyper::Uri;

/// What the name of an option has in it whose value nobody else may know.
const SECRETS: [&str; 6] = ["token", "key", "secret", "password", "auth", "credential"];
/// What stands in the place of such a value.
const REDACTED: &str = "[redacted:argument]";

/// What only starts others.
const LAUNCHERS: [&str; 27] = [
    "npx", "npm", "pnpm", "pnpx", "yarn", "dlx", "uvx", "uv", "pipx", "node", "tsx", "python", "python3",
    "bunx", "bun", "deno", "docker", "podman", "nerdctl", "sh", "bash", "env", "run", "tool", "exec", "cmd",
    "c",
];
/// What starts containers, and has many options with values.
const CONTAINERS: [&str; 3] = ["docker", "podman", "nerdctl"];
/// The options of these whose value is the next word.
const WITH_VALUE: [&str; 17] = [
    "-e",
    "--env",
    "--env-file",
    "-v",
    "--volume",
    "--mount",
    "-p",
    "--publish",
    "-u",
    "--user",
    "-w",
    "--workdir",
    "--name",
    "--network",
    "--net",
    "--platform",
    "--entrypoint",
];
/// The endings of files that are programs.
const ENDINGS: [&str; 8] = [".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".sh", ".exe"];
/// What programs and folders are called whatever they hold.
const SAYS_NOTHING: [&str; 59] = [
    // Files.
    "index",
    "main",
    "__main__",
    "__init__",
    "mod",
    "server",
    "mcp",
    "mcp-server",
    "mcp_server",
    "app",
    "cli",
    "start",
    "run",
    "stdio",
    // Folders of a project.
    "dist",
    "build",
    "src",
    "lib",
    "lib64",
    "libexec",
    "out",
    "bin",
    "sbin",
    "esm",
    "cjs",
    "js",
    "scripts",
    "packages",
    "servers",
    "target",
    "release",
    "debug",
    "node_modules",
    "site-packages",
    "dist-packages",
    "venv",
    ".venv",
    // Folders of a machine.
    "usr",
    "local",
    "opt",
    "srv",
    "var",
    "etc",
    "tmp",
    "home",
    "root",
    "users",
    "share",
    "code",
    "work",
    "workspace",
    "projects",
    "repos",
    "desktop",
    "documents",
    "program files",
    "~",
    ".",
    "..",
];
/// What only stands for a server that is elsewhere.
const STAND_INS: [&str; 2] = ["mcp-remote", "supergateway"];

/// The words of a command, without the values that their names call secret. What tells a secret by itself is looked for by
/// whoever keeps the line.
pub(crate) fn without_secrets(command: &[OsString]) -> Vec<String> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        SECRETS.iter().any(|word| name.contains(word))
    };
    let is_name = |text: &str| text.chars().all(|sign| sign.is_ascii_alphanumeric() || "-_.".contains(sign));
    let mut before = String::new();
    let mut shown = Vec::new();
    for word in command {
        let word = word.to_string_lossy().into_owned();
        let named = word.split_once('=').filter(|(name, _)| is_name(name));
        shown.push(match (&*before, named) {
            ("-H" | "--header", _) => without_value(&word),
            (_, Some(("--header", value))) => format!("--header={}", without_value(value)),
            (_, Some((name, _))) if is_secret(name) => format!("{name}={REDACTED}"),
            (option, _) if option.starts_with("--") && is_secret(option) && !word.starts_with('-') => {
                REDACTED.to_owned()
            }
            (_, _) => word.clone(),
        });
        before = if word.contains('=') { String::new() } else { word };
    }
    shown
}

/// A header without what it says.
fn without_value(header: &str) -> String {
    match header.split_once(':') {
        Some((name, _)) => format!("{name}: {REDACTED}"),
        None => REDACTED.to_owned(),
    }
}

/// What a server is called by its command: the first word that looks like the name of a program, and not like an option, its
/// value, a variable, or what only starts others. Where that says nothing, as `index.js` does, it is the nearest folder above
/// that does. One that is elsewhere is called by its host.
pub(crate) fn named_by(command: &[OsString]) -> String {
    let words: Vec<String> = without_secrets(command);
    let is_container = words.first().is_some_and(|first| CONTAINERS.contains(&stem(first)));
    let is_value = |at: usize| is_container && at > 0 && WITH_VALUE.contains(&&*words[at - 1]);
    let is_variable =
        |word: &str| word.contains('=') || !word.contains(|sign: char| sign.is_ascii_lowercase());
    let is_name = |at: usize, word: &str| {
        !word.starts_with('-') && !word.contains(REDACTED) && !is_variable(word) && !is_value(at)
    };
    let called = |word| {
        let name = match is_container {
            true => stem(word).split(':').next().unwrap_or_default(),
            false => stem(word),
        };
        let folder = if says_nothing(name) { folder_of(word) } else { None };
        folder.or_else(|| Some(name).filter(|name| !name.is_empty() && !LAUNCHERS.contains(name)))
    };
    let mut words_of_its_own = words.iter().enumerate().filter(|(at, word)| is_name(*at, word));
    let name = words_of_its_own.find_map(|(_, word)| called(word)).unwrap_or("server");
    let elsewhere = || words.iter().filter(|word| word.contains("://")).find_map(|word| host(word));
    let host = if STAND_INS.contains(&name) { elsewhere() } else { None };
    host.unwrap_or_else(|| name.to_owned())
}

/// A word without its path, its version, and the ending of its file.
fn stem(word: &str) -> &str {
    let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let last = last.split('@').next().unwrap_or(last);
    ENDINGS.iter().find_map(|ending| last.strip_suffix(ending)).unwrap_or(last)
}

/// The nearest folder of a path whose name says what is in it. An address has none: its parts may be secrets.
fn folder_of(word: &str) -> Option<&str> {
    let (above, _) = word.rsplit_once(['/', '\\']).filter(|_| !word.contains("://"))?;
    above.rsplit(['/', '\\']).map(folder_name).find(|name| !name.is_empty() && !says_nothing(name))
}

/// The name of a folder, without the sign of a scope and without a version; nothing where it is no plain name.
fn folder_name(folder: &str) -> &str {
    let name = folder.strip_prefix("npm:").unwrap_or(folder);
    let name = name.strip_prefix('@').unwrap_or(name);
    let name = name.split('@').next().unwrap_or(name);
    let is_plain = |sign: char| sign.is_alphanumeric() || "-_. ".contains(sign);
    if name.chars().all(is_plain) { name } else { "" }
}

/// Is this what a program, or a folder, is called whatever it holds? Versions are as well.
fn says_nothing(name: &str) -> bool {
    let is_number = |sign: char| sign.is_ascii_digit() || sign == '.';
    let version = name.strip_prefix('v').unwrap_or(name);
    SAYS_NOTHING.contains(&&*name.to_ascii_lowercase()) || version.chars().all(is_number)
}

/// The host of an address.
fn host(address: &str) -> Option<String> {
    address.parse::<Uri>().ok()?.host().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_the_first_word_that_is_its_own() {
        let check = |command: &str, expected: &str| {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(named_by(&words), expected, "{command}");
        };
        check("tide-server", "tide-server");
        check("/opt/tide/bin/tide-server --port 7", "tide-server");
        check("docker run -i --rm mcp/fetch", "fetch");
        check(
            "docker run -i --rm -e GITHUB_TOKEN ghcr.example/github/github-mcp-server",
            "github-mcp-server",
        );
        check("docker run -i --rm -e LEVEL=debug mcp/time --local", "time");
        check("docker run -v /srv/data:/data --network host mcp/tide:latest", "tide");
        check("podman run --rm -i registry.example/tide:1.2 serve", "tide");
        check("env LEVEL=debug tide", "tide");
        check("pnpm dlx tide-mcp", "tide-mcp");
        check("pipx run tide-mcp", "tide-mcp");
        check("cmd /c npx -y tide-mcp", "tide-mcp");
        check("npx -y mcp-remote https://user:pw@tide.example:8443/mcp?key=a", "tide.example");
        check("npx -y mcp-remote", "mcp-remote");
        check("npx -y @modelcontextprotocol/server-filesystem .", "server-filesystem");
        check("npx -y @modelcontextprotocol/server-filesystem@2025.8.21 .", "server-filesystem");
        check("npx --yes tide-mcp@latest", "tide-mcp");
        check("/usr/local/bin/npx -y tide-mcp", "tide-mcp");
        check("uvx mcp-server-git --repository .", "mcp-server-git");
        check("uv tool run mcp-server-git", "mcp-server-git");
        check("uv run --directory /srv/weather weather.py", "weather");
        check("python3 -m mcp_server_time", "mcp_server_time");
        check("/usr/bin/python3 -u server.py", "server");
        check("node /srv/tide/tide.js", "tide");
        check("deno run -A npm:@scope/tide", "tide");
        check("bunx tide", "tide");
        check("TIDE_TOKEN=1 tide", "tide");
        check("sh", "server");
        check("-", "server");
    }

    #[test]
    fn a_file_whose_name_says_nothing_is_called_by_its_folder() {
        let check = |command: &str, expected: &str| {
            let words: Vec<OsString> = command.split('|').map(OsString::from).collect();
            assert_eq!(named_by(&words), expected, "{command}");
        };
        check("node|/home/anna/github/dist/index.js", "github");
        check("node|/home/anna/mail/dist/index.js", "mail");
        check("node|servers/mail/build/index.mjs", "mail");
        check("node|./tide/index.cjs", "tide");
        check("npx|tsx|/srv/tide/src/index.ts", "tide");
        check("python3|/opt/tide/server.py", "tide");
        check("python3|/opt/tide/src/main.py|--port|7", "tide");
        check("node|/srv/tide/run.js", "tide");
        check("bash|/srv/tide/start.sh", "tide");
        check("/opt/tide/.venv/bin/mcp-server", "tide");
        check("node|/x/node_modules/@acme/tide/dist/index.js", "tide");
        check("node|/x/node_modules/@acme/mcp/cli.js", "acme");
        check("node|/home/anna/.cache/tide/1.2.0/index.js", "tide");
        check("node|/home/anna/.cache/tide@1.2.0/v2/index.js", "tide");
        check("npx|-y|@acme/mcp@latest", "acme");
        check("deno|run|npm:@acme/mcp", "acme");
        check("docker|run|-i|ghcr.example/acme/server:1.2", "acme");
        check(r"node|C:\Users\Anna\tide\dist\index.js", "tide");
        check(r"node|C:\Program Files\My Tide\index.js", "My Tide");
        check("node|/x/node_modules/mcp-remote/dist/index.js|https://tide.example/mcp", "tide.example");
        // Where no folder says more, it is what it was.
        check("node|dist/index.js", "index");
        check("node|/app/dist/index.js", "index");
        check("python3|server.py", "server");
        check("/usr/local/bin/server", "server");
        check("uvx|mcp", "mcp");
        check("node|../main.mjs", "main");
        check("npx|https://anna:lowtide@tide.example/mcp", "mcp");
        check("npx|anna:lowtide@tide.example/mcp", "mcp");
    }

    #[test]
    fn no_server_is_called_by_a_secret() {
        let check = |command: &str, expected: &str| {
            let command: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(named_by(&command), expected);
        };
        check("npx -y @scope/server-tide@1.2 .", "server-tide");
        check("npx --auth-token lowtide server-tide", "server-tide");
        check("npx --auth-token lowtide", "server");
    }

    #[test]
    fn what_is_kept_of_a_command_has_no_value_that_is_called_secret() {
        let check = |command: &str, expected: &str| {
            let command: Vec<OsString> = command.split('|').map(OsString::from).collect();
            let shown = without_secrets(&command).join("|").replace(REDACTED, "***");
            assert_eq!(shown, expected);
        };
        check("npx|-y|server|.", "npx|-y|server|.");
        check("s|--api-key|a|b", "s|--api-key|***|b");
        check("s|--api-key|--verbose|b", "s|--api-key|--verbose|b");
        check("s|--accessToken=a|b", "s|--accessToken=***|b");
        check("env|TIDE_PASSWORD=a=b|s", "env|TIDE_PASSWORD=***|s");
        check("docker|run|-e|TIDE_SECRET=a|s", "docker|run|-e|TIDE_SECRET=***|s");
        check("s|--auth=a|b|--credentials|c", "s|--auth=***|b|--credentials|***");
        check("s|-H|X-Tide: a|--header|ebb|--header=B:c", "s|-H|X-Tide: ***|--header|***|--header=B: ***");
        check("s|a key=b|--tide|key", "s|a key=b|--tide|key");
    }
}
