//! What a server says of a failure stands in the words of the proxy as quoted data.

use serde_json::json;

use super::client::{Client, envelope, text, without_ladder};
use crate::injection::{all_quote, corpus, quotes, shows_all};
use crate::world::World;

#[test]
fn no_failure_of_a_server_speaks_in_the_words_of_the_proxy() {
    let world = without_ladder(World::empty());
    let mut client = Client::ready(&world, &["--retries", "0"], &[]);
    for row in corpus() {
        for printed in
            [row.subject.clone(), format!("ENOENT: no such file or directory, open '{}'", row.subject)]
        {
            let ours = client.fails("fail", json!({ "text": printed }));
            shows_all(&ours.to_string(), "fail");
            all_quote(&ours, &row.tell, &[], "fail");
            // The protocol's error becomes a text of ours.
            let result =
                client.call("rpc_error", json!({ "code": -32603, "message": printed, "data": printed }));
            quotes(&text(&result, 0), &row.tell, "rpc_error");
            all_quote(&envelope(&result), &row.tell, &[], "rpc_error");
        }
    }
}
