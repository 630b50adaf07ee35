
const LAST_WORDS_MS = 1_000
const SOURCES = { new: "clear", resume: "resume", fork: "fork", reload: "resume" }

export default function (pi) {
  let one
  let turn = Promise.resolve()
  let turnIsOver = () => {}

  function textOf(content) {
    if (typeof content === "string") return content
    return (content ?? []).filter((part) => part.type === "text").map((part) => part.text).join("\n")
  }

  const on = (name, handler) => pi.on(name, quiet(handler))

  on("session_start", (event, ctx) => {
    const id = ctx.sessionManager.getSessionId()
    if (!id || (one?.id === id && !one.over)) return
    // One conversation a process: what its tools inherit is this process's own.
    process.env.MINDER_SESSION = `${HARNESS}:${id}`
    one = Conversation.begin(id, ctx.cwd, SOURCES[event.reason] ?? "startup", async (text) => {
      pi.sendUserMessage(text, { deliverAs: "steer" })
    })
  })

  on("before_agent_start", async () => {
    await one?.told()
    const content = one?.takeContext()
    if (content) return { message: { customType: "minder", content, display: true } }
  })

  on("agent_start", () => {
    turn = new Promise((resolve) => (turnIsOver = resolve))
  })

  on("message_start", async ({ message }) => {
    if (message.role === "user") await one?.tell("UserPromptSubmit", { prompt: textOf(message.content) })
  })

  on("tool_result", async ({ toolName, input }) => {
    await one?.tell("PostToolUse", { tool_name: toolName, tool_input: input })
  })

  on("agent_end", async ({ messages }) => {
    const answer = messages.findLast((message) => message.role === "assistant")
    if (answer?.stopReason === "aborted") await one?.tell("Interrupt")
    else if (answer?.stopReason === "error") await one?.tell("StopFailure", { error: answer.errorMessage ?? "unknown" })
    else await one?.tell("Stop", { last_assistant_message: textOf(answer?.content) })
    turnIsOver()
  })

  on("session_before_compact", () => void one?.tell("PreCompact"))
  on("session_compact", () => void one?.tell("PostCompact"))

  on("session_shutdown", async ({ reason }) => {
    // A run without a terminal says that it ends before it says that its turn is over.
    await within(LAST_WORDS_MS, turn)
    if (reason === "reload") one?.leave()
    else await one?.end(reason === "new" ? "clear" : (reason ?? "other"))
  })
}
