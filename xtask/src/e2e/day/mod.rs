//! A day's work: scripted sessions of honest work in small repositories, played by real agents while `unstuck` enforces.
//!
//! Every step of a session states how it ends. A plain shell plays each session first, so that a session which states what
//! is not so is found before any agent is judged by it.

mod rehearsal;
mod session;
mod tally;

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

pub use tally::DayTotal;
use tally::Tally;

use self::session::{Call, Event, Session};
use super::agents::Agent;
use super::heard::Words;
use super::model::Turn;
use super::scenarios::shown;
use super::stage::{Run, Stage, Tools};
use crate::Fault;

/// How scenarios of the day's work are named.
const PREFIX: &str = "day-";

/// The sessions, in the order of [`left_out`].
pub const SESSIONS: [&str; 10] =
    ["python", "node", "make", "shell", "branches", "service", "data", "refactor", "repair", "tools"];

/// The agents that play them.
const PLAYERS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// Which two of them play a session where not all do, session by session, and then from the beginning.
const TEAMS: [[usize; 2]; 6] = [[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]];

/// No session takes an agent longer, on a machine that has others to serve.
const LONGEST_DAY: Duration = Duration::from_secs(240);

/// Who commits.
const WHO: &str = "git config user.name Ada; git config user.email ada@harbour.example";

/// Is this scenario one of the day's work, and left to other agents where not all is asked for? Each session is played by
/// two agents, each agent plays five.
pub fn left_out(agent: &Agent, scenario: &str) -> Option<&'static str> {
    let session = SESSIONS.iter().position(|name| scenario.strip_prefix(PREFIX) == Some(name))?;
    let player = PLAYERS.iter().position(|name| *name == agent.name)?;
    let plays = TEAMS[session % TEAMS.len()].contains(&player);
    (!plays).then_some("two other agents play it; --day-all plays it here too")
}

/// Does this agent take part?
pub fn applies(agent: &Agent) -> Result<(), &'static str> {
    agent.resume.map(drop)
}

/// Plays one session; a fault is what was said or refused wrongly, or what did not end as the session states.
pub fn play(name: &str, agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let port = free_port()?;
    let session = Session::read(name, port)?;
    rehearsal::rehearse(&session, tools)?;
    let mut stage = prepared(&session, agent, tools)?;
    stage.set_longest(LONGEST_DAY);
    stage.install()?;
    let mut tally = Tally::default();
    let mut played = Vec::new();
    for (prompt, turns) in parts(&session) {
        let script: Vec<Turn> =
            turns.iter().map(|turn| turn.turn.clone()).chain([Turn::Say("done")]).collect();
        let run: Run = match prompt {
            None => stage.play(&script)?,
            Some(prompt) => stage.play_resumed(prompt, &script)?,
        };
        let answered = run.received.answers.len();
        if answered < turns.len() {
            let missing = format!("only {answered} of {} turns were answered", turns.len());
            return Err(format!("{missing}\n{}", shown(&run)).into());
        }
        played.extend(turns.into_iter().zip(run.received.answers));
    }
    tally.count(name, agent, &played, &stage.timeline()?, words);
    let verdict = tally.verdict();
    tools.day.add(tally);
    verdict
}

/// The machine on which a session is played.
fn prepared(session: &Session, agent: &'static Agent, tools: &Tools) -> Result<Stage, Fault> {
    let stage = Stage::bare(agent, tools)?;
    // In the repository itself: not every agent lets git see the user's own settings.
    let prepare = format!("{WHO}\n{}", session.prepare);
    let output = stage.clean("bash").args(["-e", "-c", &prepare]).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the repository of `{}` cannot be made: {said}", session.name).into());
    }
    if session.serves {
        let file = |name: &str| stage.folder(name).display().to_string();
        let words = [
            stage.scripted().display().to_string(),
            "--log".to_owned(),
            file("server.log"),
            "--state".to_owned(),
            file("server.state"),
            "--only".to_owned(),
            "echo,fail,typed".to_owned(),
        ];
        (agent.serving.add)(&stage, &words)?;
    }
    Ok(stage)
}

/// One turn with the calls it makes.
pub struct PlayedTurn<'a> {
    turn: Turn,
    calls: Vec<&'a Call>,
}

/// The turns between two prompts.
type Part<'a> = (Option<&'a str>, Vec<PlayedTurn<'a>>);

/// The runs of the agent: a prompt begins a new one.
fn parts(session: &Session) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = vec![(None, Vec::new())];
    let mut before: Option<String> = None;
    for event in &session.events {
        let Some((_, turns)) = parts.last_mut() else { continue };
        match event {
            Event::Prompt(prompt) => parts.push((Some(prompt), Vec::new())),
            Event::Outside(line) => before = Some(line.clone()),
            Event::Call(call) => match turns.last_mut() {
                Some(turn) if call.together => turn.calls.push(call),
                Some(_) | None => turns.push(PlayedTurn {
                    turn: Turn::AfterCommand { outside: before.take(), calls: Vec::new() },
                    calls: vec![call],
                }),
            },
        }
    }
    for played in parts.iter_mut().flat_map(|(_, turns)| turns) {
        if let Turn::AfterCommand { calls, .. } = &mut played.turn {
            calls.extend(played.calls.iter().map(|call| call.invocation.clone()));
        }
    }
    parts
}

/// A port that nobody listens on.
fn free_port() -> Result<u16, Fault> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::e2e::agents::AGENTS;

    #[test]
    fn two_agents_play_each_session_and_each_agent_five() {
        let players: Vec<&&Agent> = AGENTS.iter().filter(|agent| agent.resume.is_ok()).collect();
        assert_eq!(players.len(), PLAYERS.len());
        let plays = |agent: &Agent, session: &str| left_out(agent, &format!("{PREFIX}{session}")).is_none();
        for session in SESSIONS {
            let count = players.iter().filter(|agent| plays(agent, session)).count();
            assert_eq!(count, 2, "{session}");
        }
        for agent in players {
            let count = SESSIONS.iter().filter(|session| plays(agent, session)).count();
            assert_eq!(count, 5, "{}", agent.name);
        }
    }
}
