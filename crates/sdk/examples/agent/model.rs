//! The model's side: one that follows a script, and any server that speaks OpenAI's chat format.

use std::error::Error;

use serde_json::{Value, json};
use unstuck::{ToolCall, ToolDefinition};

/// What the script is asked to do.
pub(crate) const TASK: &str = "Is the plan fine for today's weather? Correct it if not.";

/// What a model says.
pub(crate) enum Reply {
    /// It is done.
    Words(String),
    /// It wants tools to be called.
    Calls {
        /// Its message, to be sent back to it.
        message: Value,
        /// The calls, with the names that the model gave them.
        calls: Vec<(String, ToolCall)>,
    },
}

/// A model.
pub(crate) enum Model {
    /// Does one thing after the other, and makes the mistakes that models make.
    Script { next: usize },
    /// A server.
    #[cfg(feature = "http")]
    Server(server::Server),
}

impl Model {
    /// The script where there is no task, otherwise the server that the environment names.
    pub(crate) fn new(task: Option<&str>) -> Result<Model, Box<dyn Error>> {
        match task {
            None => Ok(Model::Script { next: 0 }),
            #[cfg(feature = "http")]
            Some(_) => Ok(Model::Server(server::Server::new()?)),
            #[cfg(not(feature = "http"))]
            Some(_) => {
                Err("a task of your own needs a model: add `--features http` and set MODEL_URL".into())
            }
        }
    }

    pub(crate) async fn reply(
        &mut self,
        messages: &[Value],
        tools: &[ToolDefinition],
    ) -> Result<Reply, Box<dyn Error>> {
        let _only_a_server_is_told = (messages, tools);
        match self {
            Model::Script { next } => {
                *next += 1;
                Ok(script(*next))
            }
            #[cfg(feature = "http")]
            Model::Server(server) => server.reply(messages, tools).await,
        }
    }
}

fn script(step: usize) -> Reply {
    let (tool, input) = match step {
        1 => ("fs_read", json!({ "file": "plan.txt" })),
        2 => ("fs_read", json!({ "path": "plan.txt" })),
        3 => ("fs_glob", json!({ "pattern": "plan*" })),
        4 => ("fs_read", json!({ "path": "docs/plan.txt" })),
        5 => ("weather", json!({ "city": "Paris" })),
        6 => {
            ("fs_edit", json!({ "path": "docs/plan.txt", "old": "Bring a umbrella.", "new": "Bring a hat." }))
        }
        7 => (
            "fs_edit",
            json!({ "path": "docs/plan.txt", "old": "Bring an umbrella.", "new": "Bring a hat." }),
        ),
        8 => ("shell", json!({ "command": "cat docs/plan.txt" })),
        _ => return Reply::Words("The sun shines over Paris, so the plan says now: bring a hat.".to_owned()),
    };
    Reply::Calls {
        message: json!({ "role": "assistant", "content": format!("({tool})") }),
        calls: vec![(format!("script-{step}"), ToolCall::new(tool, input))],
    }
}

#[cfg(feature = "http")]
mod server {
    use std::env;
    use std::error::Error;
    use std::time::Duration;

    use serde_json::{Value, json};
    use unstuck::tools::Http;
    use unstuck::{ToolCall, ToolDefinition, Toolbox};

    use super::Reply;

    /// A server that speaks OpenAI's chat format. It is asked through a toolbox too: a limit of its rate is waited for, as long
    /// as the server says, and a fault is told in words.
    pub(crate) struct Server {
        url: String,
        model: String,
        key: Option<String>,
        wire: Toolbox,
    }

    impl Server {
        pub(super) fn new() -> Result<Server, Box<dyn Error>> {
            let url = env::var("MODEL_URL")
                .map_err(|_| "set MODEL_URL, for example to http://localhost:11434/v1")?;
            let model = env::var("MODEL").map_err(|_| "set MODEL to the name of a model of that server")?;
            let wire = Toolbox::builder()
                .tool(Http::new().repeatable().timeout(Duration::from_secs(300)))
                .build()?;
            Ok(Server { url, model, key: env::var("MODEL_KEY").ok(), wire })
        }

        pub(super) async fn reply(
            &self,
            messages: &[Value],
            tools: &[ToolDefinition],
        ) -> Result<Reply, Box<dyn Error>> {
            let tools: Value = tools.iter().map(function).collect();
            let mut headers = json!({ "Content-Type": "application/json" });
            if let Some(key) = &self.key {
                headers["Authorization"] = format!("Bearer {key}").into();
            }
            let body = json!({ "model": self.model, "messages": messages, "tools": tools }).to_string();
            let url = format!("{}/chat/completions", self.url.trim_end_matches('/'));
            let request = json!({ "url": url, "method": "POST", "headers": headers, "body": body });
            let result = self.wire.call(ToolCall::new("http_fetch", request)).await;
            if let Some(error) = result.error() {
                return Err(format!("the model could not be asked: {error}").into());
            }
            let answer: Value = serde_json::from_str(result.output()["body"].as_str().unwrap_or_default())?;
            let message = answer["choices"][0]["message"].clone();
            let calls: Vec<_> = message["tool_calls"].as_array().into_iter().flatten().map(call).collect();
            match calls.is_empty() {
                true => Ok(Reply::Words(message["content"].as_str().unwrap_or_default().to_owned())),
                false => Ok(Reply::Calls { message, calls }),
            }
        }
    }

    fn function(tool: &ToolDefinition) -> Value {
        json!({
            "type": "function",
            "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema },
        })
    }

    fn call(call: &Value) -> (String, ToolCall) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let function = &call["function"];
        let arguments = text(&function["arguments"]);
        (text(&call["id"]), ToolCall::from_text(text(&function["name"]), &arguments))
    }
}
