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
/// value, a variable, or what only starts others. One that is elsewhere is called by its host.
pub(crate) fn named_by(command: &[OsString]) -> String {
    let words: Vec<String> = without_secrets(command);
    let is_container = words.first().is_some_and(|first| CONTAINERS.contains(&stem(first)));
    let is_value = |at: usize| is_container && at > 0 && WITH_VALUE.contains(&&*words[at - 1]);
    let is_variable =
        |word: &str| word.contains('=') || !word.contains(|sign: char| sign.is_ascii_lowercase());
    let is_name = |at: usize, word: &str| {
        !word.starts_with('-') && !word.contains(REDACTED) && !is_variable(word) && !is_value(at)
    };
    let names = words.iter().enumerate().filter(|(at, word)| is_name(*at, word)).map(|(_, word)| stem(word));
    let mut names = names.filter(|name| !name.is_empty() && !LAUNCHERS.contains(name));
    let name = names.next().unwrap_or("server");
    let elsewhere = || words.iter().filter(|word| word.contains("://")).find_map(|word| host(word));
    let name = match is_container {
        true => name.split(':').next().unwrap_or(name),
        false => name,
    };
    let host = if STAND_INS.contains(&name) { elsewhere() } else { None };
    host.unwrap_or_else(|| name.to_owned())
}

/// A word without its path, its version, and the ending of its file.
fn stem(word: &str) -> &str {
    let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let last = last.split('@').next().unwrap_or(last);
    last.trim_end_matches(".js").trim_end_matches(".py").trim_end_matches(".exe")
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
