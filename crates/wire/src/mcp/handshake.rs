//! How both sides introduce themselves, where they do.

use serde_json::value::RawValue;

use super::fields::Fields;

/// What a client says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Greeting {
    /// The revision it wants to speak.
    pub version: Option<String>,
    /// What it is called.
    pub client: Option<String>,
}

impl Greeting {
    /// Reads the parameters of `initialize`.
    pub fn of(params: &RawValue) -> Greeting {
        let Some(fields) = Fields::of(params) else { return Greeting::default() };
        Greeting {
            version: fields.text("protocolVersion").map(Into::into),
            client: named(&fields, "clientInfo"),
        }
    }

    /// Reads the `_meta` of a request, where clients of the stateless era say the same with each of them.
    pub fn of_request(params: &RawValue) -> Option<Greeting> {
        let fields = Fields::of(params)?;
        let meta = Fields::of(fields.get("_meta")?)?;
        let version = meta.text(super::VERSION_KEY)?;
        Some(Greeting {
            version: Some(version.into()),
            client: named(&meta, "io.modelcontextprotocol/clientInfo"),
        })
    }
}

/// What a server answers to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Welcome {
    /// The revision both speak from now on.
    pub version: Option<String>,
    /// What the server is called.
    pub server: Option<String>,
}

impl Welcome {
    /// Reads the result of `initialize` or `server/discover`.
    pub fn of(result: &RawValue) -> Welcome {
        let Some(fields) = Fields::of(result) else { return Welcome::default() };
        let in_meta = || named(&Fields::of(fields.get("_meta")?)?, "io.modelcontextprotocol/serverInfo");
        Welcome {
            version: fields.text("protocolVersion").map(Into::into),
            server: named(&fields, "serverInfo").or_else(in_meta),
        }
    }
}

/// The name in a field that introduces somebody.
fn named(fields: &Fields<'_>, field: &str) -> Option<String> {
    Some(Fields::of(fields.get(field)?)?.text("name")?.into())
}
