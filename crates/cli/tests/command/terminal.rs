//! Runs a command as a person does: at a terminal of its own.

use std::process::{Command, Stdio};

use crate::world::{Said, World};

impl World {
    /// What it says there, both streams as one; nothing where this machine cannot make a terminal.
    pub(crate) fn at_terminal(&self, args: &[&str]) -> Option<Said> {
        let ours = self.command(args);
        let line = format!("'{}' {}", ours.get_program().display(), args.join(" "));
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).current_dir(self.path(""));
        command.env_clear().envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().ok().map(Said::by)
    }
}
