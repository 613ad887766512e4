//! What the model is told to do about a failure.

use serde_json::{Value, json};
use unstuck::{Annotations, Failure, Kind, Toolbox};

use crate::{call, tool};

#[tokio::test]
async fn advice_comes_from_the_failure_then_from_the_tool_then_from_the_rules() {
    let annotations = Annotations::new()
        .recommend(None, "read the manual")
        .recommend(Kind::PathNotFound, "list the folder first")
        .recommend(Kind::Network, "check the proxy");
    let check = async |failure: Failure, first: &[&str]| {
        let fails = tool("work", annotations.clone(), move |_| Err(failure.clone()));
        let tools = Toolbox::builder().tool(fails).build().unwrap();
        let result = call(&tools, "work", json!({})).await;
        let told = result.recommendations();
        assert_eq!(told[..first.len()], *first, "{result:?}");
        assert!(!told.iter().any(|advice| advice == "check the proxy"), "that is for another kind: {told:?}");
        // The rules know something too, of what they know.
        assert!(told.len() > first.len() || result.diagnosis().unwrap().kind == Kind::Unknown, "{told:?}");
        assert_eq!(result.to_json()["recommendations"], json!(told));
    };
    let missing = || Failure::unexpected("No such file or directory (os error 2)");
    check(missing(), &["read the manual", "list the folder first"]).await;
    let own = ["try `src/lib.rs`", "read the manual", "list the folder first"];
    check(missing().recommend(own[0]), &own).await;
}

#[tokio::test]
async fn errors_by_any_road_have_the_type_they_deserve() {
    let check = async |failure: Failure, error_type: &str, kind: &str, stage: &str| {
        let fails = tool("work", Annotations::new().writes(), move |_| Err(failure.clone()));
        let tools = Toolbox::builder().tool(fails).build().unwrap();
        let result = call(&tools, "work", json!({})).await;
        let found = result.diagnosis().unwrap().kind.word();
        assert_eq!((result.error_type(), found), (Some(error_type), kind), "{result:?}");
        assert_eq!(result.to_json()["diagnosis"]["stage"], stage);
    };
    check(Failure::expected("no such user: ann"), "logical", "path_not_found", "reported_failure").await;
    check(Failure::invalid("`from` is after `to`"), "validation", "unknown", "rejected").await;
    check(Failure::unexpected("permission denied (os error 13)"), "runtime", "permission", "threw").await;
    check(Failure::timed_out("timed out after 3 s"), "aborted", "timeout", "timed_out").await;
    check(Failure::interrupted("stopped"), "aborted", "aborted", "interrupted").await;
    check(Failure::exited(127, "", "sh: 1: frob: not found"), "runtime", "command_not_found", "exited").await;
}

#[tokio::test]
async fn the_causes_below_an_error_decide_what_it_is() {
    #[derive(Debug)]
    struct Outer(std::io::Error);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the report could not be made")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let fails = tool("work", Annotations::new(), |_| {
        let read: Result<String, Outer> = std::fs::read_to_string("/no/such/file").map_err(Outer);
        Ok(read?.into())
    });
    let tools = Toolbox::builder().tool(fails).build().unwrap();
    let result = call(&tools, "work", json!({})).await;
    assert_eq!(result.error(), Some("the report could not be made"));
    assert_eq!(result.diagnosis().unwrap().kind, Kind::PathNotFound, "{result:?}");
}

#[tokio::test]
async fn results_that_tell_of_a_failure_are_understood_whatever_their_words() {
    let check = async |answer: Value, stage: Value, error_type: Option<&str>| {
        let said = answer.clone();
        let tools = Toolbox::builder().tool(tool("work", Annotations::new(), move |_| Ok(said.clone())));
        let result = call(&tools.build().unwrap(), "work", json!({})).await;
        let found = (&result.to_json()["diagnosis"]["stage"], result.error_type());
        assert_eq!(found, (&stage, error_type), "{answer}: {result:?}");
    };
    let words = "it is blue";
    check(json!({ "error": words }), Value::Null, None).await;
    check(json!({ "ok": false, "error": words }), json!("reported_failure"), Some("exception")).await;
    check(json!({ "error": words, "_validationError": true }), json!("rejected"), Some("validation")).await;
    check(json!({ "error": words, "_thrownError": true }), json!("threw"), Some("exception")).await;
}
