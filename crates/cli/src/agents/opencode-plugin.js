// unstuck for opencode. Written by `unstuck install opencode`, removed by `unstuck uninstall opencode`; changes made here are lost.
//
// opencode has no hooks, only plugins: this one hands every tool call and every result to the program `unstuck` and does what it
// answers. It decides nothing, and whatever goes wrong with it (no program, no answer in time, an answer that is no JSON) looks to
// opencode as if it were not there.
//
// The program is started once for each event, as `unstuck hook opencode`, and reads one JSON object:
//   hook_event_name  "tool.execute.before" | "tool.execute.after" | "message.part.updated" (a call that ended in an error, for which
//                    opencode calls no `after`) | "chat.message" (a person wrote) | "session.deleted"
//   sessionID, cwd   always
//   parentID         the session that started this one, where it is a subagent's
//   callID, tool, args           of a call
//   output, metadata             "after": its text, and what opencode knows of it (bash: `exit`, an integer, null after a time limit)
//   error, metadata              "message.part.updated": its text
// It answers with nothing, or with one JSON object:
//   deny  a text: the call is not made, and the model reads this (before)
//   args  an object: all arguments of the call, in place of those the model gave (before)
//   say   a text for the model, put below the result or the error (after, message.part.updated)
import { spawn } from "node:child_process"

const PROGRAM = "unstuck"
const MOST_READ = 1 << 20
const MOST_KEPT = 4096
// By event. A snapshot before a risky call may take its time; everything else is answered in a fraction of this, or not at all.
const LIMIT_MS = {}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value)
const text = (value) => (typeof value === "string" && value !== "" ? value : undefined)

/** The program's answer; an empty one whatever goes wrong. Never rejects. */
const ask = (payload) =>
  new Promise((resolve) => {
    let timer
    const end = (answer) => {
      clearTimeout(timer)
      resolve(isObject(answer) ? answer : {})
    }
    try {
      const question = JSON.stringify(payload)
      const child = spawn(PROGRAM, ["hook", "opencode"], { stdio: ["pipe", "pipe", "ignore"], windowsHide: true })
      const pieces = []
      let size = 0
      const give_up = () => {
        child.kill("SIGKILL")
        end()
      }
      timer = setTimeout(give_up, LIMIT_MS[payload.hook_event_name] ?? 2_000)
      child.on("error", () => end())
      child.stdin.on("error", () => {})
      child.stdout.on("error", () => end())
      child.stdout.on("data", (piece) => {
        size += piece.length
        size > MOST_READ ? give_up() : pieces.push(piece)
      })
      child.on("close", () => {
        try {
          end(JSON.parse(Buffer.concat(pieces).toString("utf8")))
        } catch {
          end()
        }
      })
      child.stdin.end(question)
    } catch {
      end()
    }
  })

/** The words of a result: built-in tools give a text, tools of MCP servers a list of parts. */
const words = (result) => {
  if (typeof result?.output === "string") return result.output
  const parts = Array.isArray(result?.content) ? result.content : []
  return parts.flatMap((part) => text(part?.text) ?? []).join("\n")
}

export const Unstuck = async (around) => {
  const cwd = around?.directory
  const begun = Date.now()
  /** What was answered for each call that ended in an error, by its id. */
  const answers = new Map()
  /** Calls that never ran because we said so: their error is our own text. */
  const denied = new Set()
  /** The session that started a session, by the started one. */
  const parents = new Map()

  const keep = (kept) => {
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value)
  }
  const about = (name, session, more) =>
    ask({ hook_event_name: name, sessionID: session, parentID: parents.get(session), cwd, ...more })

  /** The answer for a call that ended in an error. It is asked for once, by whoever sees the error first. */
  const failed = (part, session = part?.sessionID) => {
    const id = part?.callID
    if (part?.type !== "tool" || part.state?.status !== "error" || typeof part.state.error !== "string") return
    // History of an earlier run was told in that run.
    const is_new = !(part.state.time?.end < begun)
    if (!id || denied.has(id) || (!is_new && !answers.has(id))) return
    if (!answers.has(id)) {
      const { input, error, metadata } = part.state
      const more = { callID: id, tool: part.tool, args: input, error, metadata }
      answers.set(id, about("message.part.updated", session, more))
      keep(answers)
    }
    return answers.get(id)
  }

  return {
    "tool.execute.before": async (input, output) => {
      const { sessionID, callID, tool } = input
      const answer = await about("tool.execute.before", sessionID, { callID, tool, args: output?.args })
      if (isObject(answer.args) && isObject(output?.args)) {
        // opencode holds on to the object itself, so another one in its place would not be seen.
        for (const name of Object.keys(output.args)) if (!(name in answer.args)) delete output.args[name]
        Object.assign(output.args, answer.args)
      }
      if (text(answer.deny)) {
        denied.add(callID)
        keep(denied)
        throw new Error(answer.deny)
      }
    },

    "tool.execute.after": async (input, output) => {
      const { sessionID, callID, tool, args } = input
      const more = { callID, tool, args, output: words(output), metadata: output?.metadata }
      const say = text((await about("tool.execute.after", sessionID, more)).say)
      if (!say || !output) return
      if (typeof output.output === "string") output.output = `${output.output.trimEnd()}\n\n${say}`
      else if (Array.isArray(output.content)) output.content.push({ type: "text", text: say })
    },

    event: async ({ event }) => {
      const about_it = event?.properties
      if (event?.type === "message.part.updated") await failed(about_it?.part)
      if (event?.type === "session.created" && about_it?.info?.parentID) {
        parents.set(about_it.info.id, about_it.info.parentID)
        keep(parents)
      }
      if (event?.type === "session.deleted" && about_it?.info?.id) await about("session.deleted", about_it.info.id)
    },

    // What a subagent is asked was written by its parent, not by a person.
    "chat.message": async (input) => {
      if (input?.sessionID && !parents.has(input.sessionID)) await about("chat.message", input.sessionID)
    },

    // opencode calls no `after` for an error, and keeps nothing of what is changed here: it is said again with each request.
    "experimental.chat.messages.transform": async (_input, output) => {
      const told = (output?.messages ?? []).flatMap((message) =>
        (message?.parts ?? []).map((part) => [part, part?.sessionID ?? message.info?.sessionID]),
      )
      await Promise.all(
        told.map(async ([part, session]) => {
          const say = text((await failed(part, session))?.say)
          if (say && !part.state.error.includes(say)) part.state.error = `${part.state.error}\n\n${say}`
        }),
      )
    },
  }
}
