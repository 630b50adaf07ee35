
const ABORTED = "MessageAbortedError"

export const Minder = async ({ client, directory }) => {
  const known = new Map()

  // A conversation that a person can speak to; nothing for a sub-agent's.
  async function conversation(id, info) {
    if (!id) return undefined
    const old = known.get(id)
    // Another instance of this harness in this process may have spoken for it meanwhile.
    if ((await old)?.over && known.get(id) === old) known.delete(id)
    if (!known.has(id)) known.set(id, begin(id, info).catch(() => known.delete(id) && undefined))
    return known.get(id)
  }

  async function begin(id, info) {
    if (!info) {
      const answer = await within(ACCEPT_MS, client.session.get({ path: { id } }))
      if (!answer) throw new Error("no answer")
      info = answer.data
    }
    if (!info || info.parentID) return undefined
    const one = Conversation.begin(id, info.directory ?? directory, "startup", async (text) => {
      // As the person's last message was: another agent may do what theirs may not.
      const body = { ...one.as, parts: [{ type: "text", text }] }
      one.entering = new Promise((resolve) => (one.entered = (part) => part?.text === text && resolve()))
      await client.session.promptAsync({ path: { id }, body })
    })
    return one
  }

  async function lastAnswer(id) {
    const messages = (await client.session.messages({ path: { id }, query: { limit: 5 } })).data ?? []
    const answer = messages.findLast((message) => message.info.role === "assistant")
    return textOf(answer?.parts ?? [])
  }

  function textOf(parts) {
    return parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
  }

  // A failure after which something happens has not ended the turn.
  function goesOn(one) {
    if (one.failure?.name !== ABORTED) one.failure = undefined
  }

  async function heard({ type, properties }) {
    if (type === "session.created") return void (await conversation(properties.info?.id, properties.info))
    const one = await known.get(properties?.sessionID ?? properties?.part?.sessionID ?? properties?.info?.id)
    if (!one) return
    if (type === "message.part.updated") {
      one.entered?.(properties.part)
    } else if (type === "permission.asked") {
      const { permission, patterns, metadata } = properties
      one.tell("PermissionRequest", { tool_name: permission, tool_input: { command: patterns?.join(" "), ...metadata } })
    } else if (type === "permission.replied") {
      one.tell("PermissionReplied")
    } else if (type === "session.error" && one.running) {
      // The turn may go on after it, as it does when its context is too long. What is over is idle.
      one.failure = properties.error ?? {}
    } else if (type === "session.idle" && one.running) {
      one.running = false
      const failure = one.failure
      one.failure = undefined
      if (failure?.name === ABORTED) return void one.tell("Interrupt")
      if (failure) return void one.tell("StopFailure", { error: failure.data?.message ?? failure.name ?? "unknown" })
      // Told before a prompt that comes while the answer is fetched.
      one.tell("Stop", lastAnswer(one.id).then((text) => ({ last_assistant_message: text }), () => ({})))
    } else if (type === "session.compacted") {
      goesOn(one)
      one.tell("PostCompact")
    } else if (type === "session.deleted") {
      known.delete(one.id)
      await one.end("deleted")
    }
  }

  return {
    event: quiet(({ event }) => heard(event)),
    "chat.message": quiet(async ({ sessionID }, { message, parts }) => {
      const one = await conversation(sessionID)
      if (!one) return
      one.running = true
      one.failure = undefined
      one.as = { agent: message.agent, model: message.model }
      await one.tell("UserPromptSubmit", { prompt: textOf(parts) })
      const text = one.takeContext()
      if (text) {
        const id = `prt_zz${Date.now().toString(16)}${Math.random().toString(16).slice(2, 10)}`
        parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
      }
    }),
    "tool.execute.after": quiet(async ({ sessionID, tool, args }) => {
      const one = await known.get(sessionID)
      // The calls of a turn that was aborted end after it.
      if (!one?.running) return
      goesOn(one)
      await one.tell("PostToolUse", { tool_name: tool, tool_input: args })
      // OpenCode accepts a message before it has it. The step after this tool reads what is there by then; what comes while that
      // step runs is older than its answer, and is answered by none.
      await within(ACCEPT_MS, one.entering)
      one.entering = undefined
    }),
    "shell.env": quiet(async ({ sessionID }, { env }) => {
      if (sessionID) env.MINDER_SESSION = `${HARNESS}:${sessionID}`
    }),
  }
}
