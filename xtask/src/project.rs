//! Where the project lies, and how its programs are built and fed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, thread};

use serde_json::Value;

use crate::Fault;

/// The project's root folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the project")
}

/// The cargo that runs this chore, at the project's root.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    command
}

/// Where cargo puts what it builds.
pub fn target() -> Result<PathBuf, Fault> {
    let output = cargo(&["metadata", "--format-version=1", "--no-deps"]).output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    Ok(metadata["target_directory"].as_str().ok_or("cargo names no target directory")?.into())
}

/// Builds with `args` and returns the executables that came out, in the order in which cargo names them.
pub fn build(args: &[&str]) -> Result<Vec<PathBuf>, Fault> {
    let mut command = cargo(&["build", "--quiet", "--message-format=json-render-diagnostics"]);
    let output = command.args(args).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("cargo build {} failed", args.join(" ")).into());
    }
    let messages = json_lines(&String::from_utf8_lossy(&output.stdout));
    Ok(messages.iter().filter_map(|message| message["executable"].as_str()).map(PathBuf::from).collect())
}

/// Builds the release binary that people get.
pub fn unstuck() -> Result<PathBuf, Fault> {
    let built = build(&["--release", "--package", "unstuck-cli", "--bin", "unstuck"])?;
    built.into_iter().next().ok_or_else(|| "cargo built no binary `unstuck`".into())
}

/// The lines that are JSON; others are left out.
pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Runs a program on `input` and returns what it printed, whatever its exit code: a verdict may be told by code, too.
pub fn pipe_through(command: &mut Command, input: String) -> Result<String, Fault> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().expect("it is piped");
    // A program that stops reading early is judged by what it printed, so a broken pipe is no fault.
    let feeder = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    let _fed = feeder.join();
    if output.stdout.is_empty() {
        return Err(format!("{command:?} printed nothing ({})", output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Shows what a command prints while it runs, and returns it with whether it succeeded.
pub fn tee(mut command: Command) -> Result<(Vec<String>, bool), Fault> {
    let (reader, writer) = std::io::pipe()?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command holds our copies of the pipe's end; while they live, the pipe does not end.
    drop(command);
    let mut lines = Vec::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        println!("{line}");
        lines.push(line);
    }
    Ok((lines, child.wait()?.success()))
}
