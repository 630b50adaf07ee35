// Written by minder for HARNESS; `minder hooks uninstall HARNESS` takes it away. Do not edit: an upgrade replaces it.
// minder-hook

import { spawn } from "node:child_process"

const PROGRAM = "/path/of/minder"
const HARNESS = "name"

// minder answers an event within a third of a second. This is for a machine that swaps.
const PATIENCE_MS = 10_000
// What the harness may take to accept a message. It goes on without it: a message that is not seen is given again.
const ACCEPT_MS = 2_000

// Runs minder once. It never fails: where the program is gone or breaks, nothing was said.
function run(event, wait, started) {
  return new Promise((resolve) => {
    const said = { code: 0, out: "", err: "" }
    let child
    try {
      const env = { ...process.env, MINDER_HARNESS_PID: String(process.pid) }
      child = spawn(PROGRAM, wait ? ["hook", HARNESS, "--wait"] : ["hook", HARNESS], { env })
    } catch {
      return resolve(said)
    }
    const timer = wait ? undefined : setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS)
    const end = (code) => {
      clearTimeout(timer)
      resolve({ ...said, code: code ?? 0 })
    }
    child.on("error", () => end(0))
    child.on("close", end)
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => (said.out += data))
    child.stderr.on("data", (data) => (said.err += data))
    child.stdout.setEncoding("utf8")
    child.stderr.setEncoding("utf8")
    child.stdin.end(JSON.stringify(event))
    if (wait) {
      // It stays for as long as the conversation is idle, and keeps no program from ending.
      for (const part of [child, child.stdin, child.stdout, child.stderr]) part.unref?.()
      started(child)
    }
  })
}

// One conversation: tells its events in order, and keeps a waiter that ends when a message may enter.
class Conversation {
  constructor(id, cwd, source, deliver) {
    Object.assign(this, { id, cwd, source, deliver })
    this.last = Promise.resolve()
    this.context = ""
    this.over = false
    this.kept = false
    this.onExit = () => this.waiter?.kill()
    process.on("exit", this.onExit)
    this.tell("SessionStart", { source })
  }

  event(name, fields) {
    return { session_id: this.id, hook_event_name: name, cwd: this.cwd, ...fields }
  }

  // Whatever is told after this is told after it.
  tell(name, fields = {}) {
    if (this.over) return this.last
    this.last = this.last.then(() => this.say(name, fields)).catch(() => {})
    return this.last
  }

  async say(name, fields) {
    if (name === "Stop") {
      fields = { ...fields, stop_hook_active: this.kept }
      this.kept = false
    }
    const said = await run(this.event(name, fields), false)
    if (said.code === 2 && said.err) {
      this.kept = name === "Stop"
      await this.give(said.err)
    } else if (said.out) {
      this.context += JSON.parse(said.out).hookSpecificOutput?.additionalContext ?? ""
    }
    if (["SessionStart", "UserPromptSubmit", "Stop", "StopFailure", "Interrupt"].includes(name)) this.wait()
  }

  wait() {
    if (this.waiter || this.over) return
    const event = this.event("SessionStart", { source: this.source })
    run(event, true, (child) => (this.waiter = child)).then(async (said) => {
      this.waiter = undefined
      if (said.code !== 2 || !said.err || this.over) return
      await this.give(said.err)
      this.wait()
    }).catch(() => {})
  }

  give(text) {
    let timer
    const late = new Promise((resolve) => (timer = setTimeout(resolve, ACCEPT_MS)))
    return Promise.race([this.deliver(text).catch(() => {}), late]).finally(() => clearTimeout(timer))
  }

  // What is to be put before the model, once.
  takeContext() {
    const text = this.context
    this.context = ""
    return text
  }

  // Nobody here speaks for it any more.
  leave() {
    this.over = true
    this.waiter?.kill()
    process.off("exit", this.onExit)
  }

  // The conversation is over in this process.
  async end(reason) {
    const told = this.tell("SessionEnd", { reason })
    this.leave()
    await told
  }
}
