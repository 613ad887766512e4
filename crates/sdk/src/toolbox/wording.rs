//! What a model is told of a call that cannot even be looked at.

use unstuck_judge::{Lang, quote};
use unstuck_store::CallState;

use crate::schema::{TooLarge, near};

/// How many tools are named to somebody who asked for one that is not there.
const NAMED: usize = 20;

/// There is no such tool.
pub(super) fn unknown_tool<'a>(
    name: &str,
    tools: impl Iterator<Item = &'a str> + Clone,
    lang: Lang,
) -> String {
    let quoted = quote::name(name);
    let listed = tools.clone().take(NAMED).map(|tool| format!("`{tool}`")).collect::<Vec<_>>();
    let more = tools.clone().count().saturating_sub(NAMED);
    let hint = near(name, tools);
    match lang {
        Lang::En => {
            let hint = hint.map(|tool| format!(", did you mean `{tool}`?")).unwrap_or(".".to_owned());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("unknown tool {quoted}{hint} There are: {}{more}.", listed.join(", "))
        }
        Lang::Zh => {
            let hint = hint.map(|tool| format!("，是否指 `{tool}`？")).unwrap_or("。".to_owned());
            let more = if more > 0 { format!(" 等另外 {more} 个") } else { String::new() };
            format!("没有工具 {quoted}{hint}可用工具：{}{more}。", listed.join("、"))
        }
    }
}

/// What to do where there is no such tool.
pub(super) fn other_tools<'a>(
    name: &str,
    tools: impl Iterator<Item = &'a str> + Clone,
    lang: Lang,
) -> Vec<String> {
    let nearest = near(name, tools.clone()).map(|tool| match lang {
        Lang::En => format!("Call `{tool}` if that is meant."),
        Lang::Zh => format!("如果指的是 `{tool}`，请调用它。"),
    });
    let all = match (tools.clone().next(), lang) {
        (None, Lang::En) => "There are no tools: go on without.",
        (None, Lang::Zh) => "没有可用的工具：请不用工具继续。",
        (Some(_), Lang::En) => "Call one of the tools that are listed; no other name works.",
        (Some(_), Lang::Zh) => "请调用所列工具之一；其他名称都不可用。",
    };
    nearest.into_iter().chain([all.to_owned()]).collect()
}

/// What is true of a call whose process is gone; nothing where its state tells all that is known. `only_looks` where its tool
/// changes nothing.
pub(super) fn sealed(from: CallState, only_looks: bool, lang: Lang) -> Option<&'static str> {
    match (from, only_looks, lang) {
        (CallState::ApprovalRequired, _, Lang::En) => {
            Some("was waiting for a person's decision: it did not run")
        }
        (CallState::ApprovalRequired, _, Lang::Zh) => Some("正在等待人工决定：没有执行"),
        (CallState::Approved | CallState::Executing, true, Lang::En) => {
            Some("was running when its process ended; it changes nothing, so it may be sent again")
        }
        (CallState::Approved | CallState::Executing, true, Lang::Zh) => {
            Some("进程结束时正在运行；它不改变任何东西，可以再次发送")
        }
        (CallState::Approved | CallState::Executing, false, _)
        | (CallState::Pending | CallState::Completed | CallState::Failed, _, _)
        | (CallState::Denied | CallState::Sealed, _, _) => None,
    }
}

/// What to do about a call that did not run, or changed nothing, and whose process is gone.
pub(super) fn after_seal(from: CallState, lang: Lang) -> &'static str {
    match (from == CallState::ApprovalRequired, lang) {
        (true, Lang::En) => {
            "Nothing has to be undone. If it is still needed, send it: a person decides about it first."
        }
        (true, Lang::Zh) => "无需撤销任何东西。若仍然需要，可以发送：会先由人来决定。",
        (false, Lang::En) => "Nothing has to be undone: send it again if its answer is still needed.",
        (false, Lang::Zh) => "无需撤销任何东西：若仍需要结果，可以再次发送。",
    }
}

/// The arguments are too much for anybody.
pub(super) fn too_large(tool: &str, why: TooLarge, lang: Lang) -> String {
    match (why, lang) {
        (TooLarge::Bytes(most), Lang::En) => format!(
            "invalid arguments for `{tool}`: they are longer than {most} bytes; send less, or the path of a file"
        ),
        (TooLarge::Bytes(most), Lang::Zh) => {
            format!("`{tool}` 的参数无效：长度超过 {most} 字节；请减少内容，或传文件路径")
        }
        (TooLarge::Depth(most), Lang::En) => {
            format!("invalid arguments for `{tool}`: they are nested deeper than {most} levels; flatten them")
        }
        (TooLarge::Depth(most), Lang::Zh) => format!("`{tool}` 的参数无效：嵌套超过 {most} 层；请展平"),
    }
}

/// The arguments are a text that is no JSON.
pub(super) fn no_json(tool: &str, why: &str, lang: Lang) -> String {
    match lang {
        Lang::En => format!("invalid arguments for `{tool}`: they are no JSON: {why}"),
        Lang::Zh => format!("`{tool}` 的参数无效：不是 JSON：{why}"),
    }
}

/// A field that nobody knows is written almost like one that is missing.
pub(super) fn misspelt(tool: &str, field: &str, meant: &str, lang: Lang) -> String {
    // The schema may be that of a server.
    let [field, meant] = [field, meant].map(quote::name);
    match lang {
        Lang::En => format!("invalid arguments for `{tool}`: unknown field {field}, did you mean {meant}?"),
        Lang::Zh => format!("`{tool}` 的参数无效：未知字段 {field}，是否指 {meant}？"),
    }
}

/// What a model does first that has to do with a call of which nobody knows whether it did its work.
pub(super) fn look_first(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "It may have done its work, or a part of it: look before you send it again.",
        Lang::Zh => "它可能已经完成全部或部分工作：再次发送之前先检查。",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_schema_speak_only_in_quotations() {
        let check =
            |field, meant, expected: &str| assert_eq!(misspelt("t", field, meant, Lang::En), expected);
        check("pth", "path", "invalid arguments for `t`: unknown field `pth`, did you mean `path`?");
        let quoted = "invalid arguments for `t`: unknown field ⟦x. Obex⟧, did you mean ⟦x. Obey⟧?";
        check("x. Obex", "x. Obey", quoted);
    }
}
