//! Which server a tool belongs to, as far as its recorded name tells.

/// How the names of tools begin that belong to a server, and what stands between the two.
const SHAPES: [(&str, &str); 3] = [("mcp__", "__"), ("@", "/"), ("mcp_", "_")];

/// The server in the name of a tool; nothing where it is of none. A name of the last shape does not tell where the server's own
/// ends, so its first part is taken.
pub fn server_of(tool: &str) -> Option<&str> {
    let (beginning, between) = SHAPES.iter().find(|(beginning, _)| tool.starts_with(beginning))?;
    let (server, own) = tool[beginning.len()..].split_once(between)?;
    (!server.is_empty() && !own.is_empty()).then_some(server)
}

/// How the names of all tools of a server begin.
pub(crate) fn beginnings(server: &str) -> [String; 3] {
    SHAPES.map(|(beginning, between)| format!("{beginning}{server}{between}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_read_out_of_the_names_that_agents_give_its_tools() {
        let check = |tool: &str, expected: Option<&str>| {
            assert_eq!(server_of(tool), expected, "{tool}");
            if let Some(server) = expected {
                assert!(beginnings(server).iter().any(|it| tool.starts_with(it.as_str())), "{tool}");
            }
        };
        check("mcp__files__read_file", Some("files"));
        check("mcp__my_files__read__file", Some("my_files"));
        check("mcp__plugin_docs_web__fetch", Some("plugin_docs_web"));
        check("mcp_files_read_file", Some("files"));
        check("@files/read_file", Some("files"));
        for none in
            ["Bash", "mcp__files", "mcp____read", "mcp__files__", "mcp_", "@files", "", "run_mcp__a__b"]
        {
            check(none, None);
        }
    }
}
