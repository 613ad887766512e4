//! Messages over the limit are answered under their names, wherever in the message these stand, and in both directions.

use serde_json::json;

use super::client::{Client, with_setting};
use crate::world::World;

/// Messages of the client that are longer than 1 MB, each with the names that are answered.
fn questions() -> Vec<(String, Vec<&'static str>)> {
    let long = "x".repeat(1_200_000);
    let escaped = r#"\" ,\"id\":9,"#.repeat(120_000);
    vec![
        (
            format!(r#"{{"jsonrpc":"2.0","id":"first","method":"a","params":{{"text":"{long}"}}}}"#),
            vec!["\"first\""],
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","method":"a","params":{{"text":"{long}","id":1}},"id":"last"}}"#),
            vec!["\"last\""],
        ),
        (format!(r#"{{"method":"a","params":{{"text":"{escaped}"}}, "id" : -17 , "z":1}}"#), vec!["-17"]),
        (
            format!(r#"{{"params":["{long}"],"\u0069d":"\u0061b","extra":"{long}","method":"a"}}"#),
            vec!["\"ab\""],
        ),
        (format!(r#"{{"method":"a","params":["{long}"],"id":{{"id":3}}}}"#), vec!["null"]),
        (long.clone(), vec!["null"]),
        (
            format!(
                r#"[{{"method":"a","params":["{long}"],"id":1}},{{"method":"n"}},{{"id":"two","method":"a"}}]"#
            ),
            vec!["1", "\"two\""],
        ),
    ]
}

#[test]
fn a_question_is_answered_wherever_its_name_stands() {
    let world = with_setting(World::empty(), "max-message", "1MB");
    let mut client = Client::ready(&world, &[], &[]);
    for (question, names) in questions() {
        client.say(&question);
        for name in names {
            let answer = client.hear();
            assert_eq!(answer["id"].to_string(), *name.replace("\\u0061", "a"), "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains("1 MB"), "{answer}");
        }
    }
    assert_eq!(client.works("echo", json!({ "text": "a" })), "a");
    // The last line may come without an end.
    client.write(format!(r#"{{"method":"a","params":["{}"],"id":"end""#, "x".repeat(1_200_000)).into_bytes());
    client.write(b"}".to_vec());
    client.close();
    assert_eq!(client.hear()["id"], "end");
    assert_eq!(client.end(), (0, vec![]));
}

/// A server that answers everything, and says this for each call of a tool.
fn server(says: &str) -> String {
    format!(
        r#"long=$(head -c 1200000 /dev/zero | tr '\0' x)
while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case "$line" in
    *'"error"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"content":[],"told":true}}}}\n' "$asked";;
    *'"tools/call"'*) asked=$id; {says};;
    *'"method":"notifications'*) ;;
    *) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"capabilities":{{}},"tools":[]}}}}\n' "$id";;
  esac
done"#
    )
}

#[test]
fn an_answer_is_known_wherever_its_name_stands() {
    for says in [
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"a":"%s"}}\n' "$id" "$long""#,
        r#"printf '{"result":{"a":"%s","id":77},"jsonrpc":"2.0","id":%s}\n' "$long" "$id""#,
        r#"printf '{"result":{"a":"%s"}, "id" : %s, "x":[1,2,{}] }\n' "$long" "$id""#,
        r#"printf '[{"result":{"a":"%s"},"id":%s}]\n' "$long" "$id""#,
    ] {
        let world = with_setting(World::empty(), "max-message", "1MB");
        let mut client = Client::start(&world, &["--retries", "0"], &["sh", "-c", &server(says)]);
        client.introduce("tester");
        let envelope = client.fails("any", json!({}));
        assert!(envelope["error"].as_str().unwrap().contains("1 MB"), "{says}: {envelope}");
        client.ask("ping", json!({}));
    }
}

#[test]
fn a_question_of_the_server_is_answered_as_well() {
    for says in [
        r#"printf '{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"a":"%s"}}\n' "$long""#,
        r#"printf '{"method":"sampling/createMessage","params":{"a":"%s","id":1},"id":5}\n' "$long""#,
    ] {
        let world = with_setting(World::empty(), "max-message", "1MB");
        let mut client = Client::start(&world, &[], &["sh", "-c", &server(says)]);
        client.introduce("tester");
        assert_eq!(client.call("any", json!({}))["told"], true, "{says}");
    }
}
