//! What is known of each agent program: where its settings lie, which events its versions know, what an entry looks like,
//! what its owner has to do afterwards. Rows, and what reads them; nothing here decides what a hook answers.

mod agent;
mod change;
mod client;
mod command_line;
mod installation;
mod installation_told;
mod note;
mod opencode;
mod own_program;
mod own_server;
mod place;
mod server;
mod switch;
mod tells_us;
mod told;
mod version;
mod wrapping;
mod wrapping_told;

pub(crate) use agent::{AGENTS, Agent, Carrier, LONGEST_WAIT, Limit, event_names};
pub(crate) use change::{Change, Direction, Done, Outcome, Tools};
pub(crate) use client::{CLIENTS, Client, Config, real};
pub(crate) use command_line::{command_line, is_noted, program_of};
pub(crate) use installation::{Alike, Installation};
pub(crate) use installation_told::Became;
pub(crate) use note::Note;
pub(crate) use opencode::{limits_of_plugin, program_of_plugin};
pub(crate) use own_program::{OwnProgram, is_this_program};
pub(crate) use place::{Places, Scope};
pub(crate) use server::{Server, State, Wrapper, host_of};
pub(crate) use switch::{active_plugin, switched_off};
pub(crate) use tells_us::names_us;
pub(crate) use tells_us::tells_us_itself;
pub(crate) use told::{Tells, Told};
pub(crate) use version::{Reported, Why};
pub(crate) use wrapping::{Aim, Wrapping};

#[cfg(test)]
mod tests;
