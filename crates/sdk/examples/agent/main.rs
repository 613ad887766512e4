//! A small, complete agent: a model, tools that correct themselves, and a person who watches and decides.
//!
//! ```text
//! cargo run -p unstuck --example agent                         # a model that follows a script: nothing is needed
//! cargo run -p unstuck --example agent --features http -- "What is in this folder?"
//!     with MODEL_URL=http://localhost:11434/v1 MODEL=qwen3 [MODEL_KEY=…]: any server that speaks OpenAI's chat format
//! ```
//!
//! Everything an agent needs of this crate is in this file; `model.rs` beside it is only the model's side.
#![allow(clippy::print_stdout, reason = "an example that talks to whoever tries it")]

mod model;

use std::error::Error;
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use unstuck::tools::{Files, Safe, Shell};
use unstuck::{
    Annotations, Before, CallInfo, CallResult, Event, Failure, Hook, Session, Status, Store, Tool,
    ToolContext, Toolbox,
};

use model::{Model, Reply};

/// So many messages of the model are enough for anything this agent can do.
const TURNS: u64 = 30;

/// A tool of our own. Its first connection is always refused, to show what becomes of that.
struct Weather {
    calls: std::sync::atomic::AtomicU32,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of the city, in English.
    city: String,
}

impl Tool for Weather {
    type Args = Place;
    type Output = String;

    fn name(&self) -> &str {
        "weather"
    }

    fn description(&self) -> &str {
        "Tells today's weather in a city."
    }

    fn annotations(&self) -> Annotations {
        // It only looks, so it may be sent again.
        Annotations::new().read_only()
    }

    async fn call(&self, place: Place, _context: ToolContext) -> Result<String, Failure> {
        match self.calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Err(Failure::unexpected("connection reset by peer (os error 104)")),
            _ => Ok(format!("sun over {}", place.city)),
        }
    }
}

/// Nothing is run in a shell that a person has not seen.
struct AskFirst;

impl Hook for AskFirst {
    fn name(&self) -> &str {
        "ask-first"
    }

    async fn before(&self, call: Arc<CallInfo>) -> Before {
        match call.tool() {
            "shell" => {
                Before::Ask(format!("run `{}`?", call.input()["command"].as_str().unwrap_or_default()))
            }
            _ => Before::Allow,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let task = std::env::args().nth(1);
    // With a task of yours it works in this folder; the script plays in one of its own.
    let playground = tempfile::tempdir()?;
    let folder = match &task {
        Some(_) => std::env::current_dir()?,
        None => prepare(playground.path())?,
    };
    let mut model = Model::new(task.as_deref())?;

    let safe = Safe::at(playground.path().join("safe"));
    let files = Files::in_folder(&folder).protected_by(&safe);
    let tools = Toolbox::builder()
        .tool(files.read())
        .tool(files.find())
        .tool(files.search())
        .tool(files.edit())
        .tool(Shell::new().folder(&folder).protected_by(&safe))
        .tool(Weather { calls: 0.into() })
        .hook(AskFirst)
        .store(Store::at(playground.path().join("state")).folder(&folder))
        .build()?;
    let session = Session::new();
    let shown = tools.events().on("tool:*", show);

    let mut messages = vec![json!({ "role": "user", "content": task.as_deref().unwrap_or(model::TASK) })];
    println!("user   {}", messages[0]["content"].as_str().unwrap_or_default());
    for turn in 0..TURNS {
        match model.reply(&messages, &tools.definitions()).await? {
            Reply::Words(words) => {
                println!("model  {words}");
                break;
            }
            Reply::Calls { message, calls } => {
                messages.push(message);
                for (id, call) in calls {
                    println!("model  {call}");
                    let call = call.session(&session).id(&*id).round(turn);
                    let result = decided(&tools, tools.call(call).await).await;
                    if result.status() == Status::Halted {
                        println!(
                            "\nThe agent is stuck. What it tried:\n{}",
                            result.table().unwrap_or_default()
                        );
                        return Ok(());
                    }
                    let told: Value = result.to_json();
                    messages.push(json!({ "role": "tool", "tool_call_id": id, "content": told.to_string() }));
                }
            }
        }
    }
    drop(shown);
    tools.shutdown().await;
    println!("\nThe record:");
    for record in tools.records(&session).await? {
        println!("  {:<18} {:<8} {}", record.id, record.tool, record.state);
    }
    Ok(())
}

/// A call that waits for a person: asks, on a terminal, and lets it run elsewhere.
async fn decided(tools: &Toolbox, result: CallResult) -> CallResult {
    if result.status() != Status::Paused {
        return result;
    }
    let question = result.error().unwrap_or_default().to_owned();
    let answer = tokio::task::spawn_blocking(move || {
        print!("you    {question} [y/n] ");
        let _ = std::io::stdout().flush();
        let mut answer = String::from("y");
        match std::io::stdin().is_terminal() {
            true => {
                answer.clear();
                let _ = std::io::stdin().lock().read_line(&mut answer);
            }
            false => println!("y"),
        }
        answer.trim().eq_ignore_ascii_case("y")
    });
    let after = match answer.await {
        Ok(true) => tools.approve(result.call()).await,
        Ok(false) | Err(_) => {
            tools.deny(result.call(), "the person said no; ask what they want instead").await
        }
    };
    after.unwrap_or(result)
}

/// What a person sees while it goes on.
fn show(event: &Event) {
    let text =
        |key: &str| event.get(key).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
    match event.kind() {
        "tool:error" => println!("       ✗ {} ({})", text("error"), text("kind")),
        "tool:retry" => println!("       … {}", text("text")),
        "tool:advice" => println!("       ! {}", text("text")),
        "tool:denied" => println!("       ✋ {}", text("text")),
        _ => {}
    }
}

/// A folder with something in it that is not where the script looks for it.
fn prepare(playground: &Path) -> std::io::Result<std::path::PathBuf> {
    let folder = playground.join("work");
    std::fs::create_dir_all(folder.join("docs"))?;
    std::fs::write(folder.join("docs/plan.txt"), "Meet in Paris.\nBring an umbrella.\n")?;
    Ok(folder)
}
