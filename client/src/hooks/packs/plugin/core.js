// Written by minder for HARNESS; `minder hooks uninstall HARNESS` takes it away. Do not edit: an upgrade replaces it.
// minder-hook

import { spawn } from "node:child_process"

const PROGRAM = "/path/of/minder"
const HARNESS = "name"

// minder answers an event within a third of a second. This is for a machine that swaps; where it was not enough, the
// next one gets less.
const PATIENCE_MS = 10_000
const IMPATIENCE_MS = 1_000
// A process that minder left may hold what it wrote to: what it said is there when it ends, or soon after.
const GRACE_MS = 200
// What the harness may take to accept a message, or to answer. Nobody waits for longer: a message that is not seen is
// given again.
const ACCEPT_MS = 2_000
// Each waiter is a process. Only conversations that were spoken to lately have one.
const WAITERS = 8
// A text that was not seen is given again. One that comes more often than this is said by something that is broken.
const TIMES = 3
const KEPT = 64

const FILE = String(import.meta.url).split("?")[0]

// Who speaks for a conversation in this process, the one that waits since last at the end. Every copy of this file has
// the same: a person's and a project's may both be loaded, and one may be loaded anew.
const speakers = (globalThis[Symbol.for("minder.speakers")] ??= withLastWord(new Map()))

function withLastWord(speakers) {
  process.on("exit", () => speakers.forEach((one) => one.rest()))
  return speakers
}

let patience = PATIENCE_MS

// What comes of a promise; nothing where it fails or takes longer.
function within(ms, promise) {
  let timer
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)))
  return Promise.race([Promise.resolve(promise).catch(() => {}), late]).finally(() => clearTimeout(timer))
}

// A handler that is nothing to its harness when it breaks.
function quiet(handler) {
  return async (...given) => {
    try {
      return await handler(...given)
    } catch {}
  }
}

// Never one that was not started: to Node its pid is 0, and a signal to that goes to all of the harness's group.
function stop(child, signal) {
  if (child?.pid) child.kill(signal)
}

// Runs minder once. It never fails, and never takes longer than the patience there is: where the program is gone,
// breaks or hangs, nothing was said.
function run(event, wait, started) {
  return new Promise((resolve) => {
    const said = { code: 0, out: "", err: "" }
    let child, timer
    const end = (said) => {
      clearTimeout(timer)
      for (const pipe of [child?.stdin, child?.stdout, child?.stderr]) pipe?.destroy()
      resolve(said)
    }
    const nothing = () => end({ code: 0, out: "", err: "" })
    try {
      const text = JSON.stringify(event)
      const env = { ...process.env, MINDER_HARNESS_PID: String(process.pid) }
      child = spawn(PROGRAM, wait ? ["hook", HARNESS, "--wait"] : ["hook", HARNESS], { env })
      child.on("error", nothing)
      const ended = (code) => end({ ...said, code: code ?? 0 })
      child.on("close", ended)
      child.on("exit", (code, signal) => {
        if (!wait && !signal) patience = PATIENCE_MS
        clearTimeout(timer)
        timer = setTimeout(ended, GRACE_MS, code)
        timer.unref?.()
      })
      child.stdin.on("error", () => {})
      child.stdout.on("data", (data) => (said.out += data))
      child.stderr.on("data", (data) => (said.err += data))
      child.stdout.setEncoding("utf8")
      child.stderr.setEncoding("utf8")
      child.stdin.end(text)
      if (wait) {
        // It stays for as long as the conversation is idle, and keeps no program from ending.
        for (const part of [child, child.stdin, child.stdout, child.stderr]) part.unref?.()
        started(child)
        return
      }
      timer = setTimeout(() => {
        patience = IMPATIENCE_MS
        stop(child, "SIGKILL")
        nothing()
      }, patience)
      timer.unref?.()
    } catch {
      nothing()
    }
  })
}

// One conversation: tells its events in order, and keeps a waiter that ends when a message may enter.
class Conversation {
  // Nothing where another copy of this file speaks for it already.
  static begin(id, cwd, source, deliver) {
    const other = speakers.get(id)
    if (other && other.file !== FILE) return undefined
    other?.leave()
    return new Conversation(id, cwd, source, deliver)
  }

  constructor(id, cwd, source, deliver) {
    Object.assign(this, { id, cwd, source, deliver, file: FILE })
    this.last = Promise.resolve()
    this.context = ""
    this.over = false
    this.kept = false
    this.deaf = false
    this.given = new Map()
    speakers.set(id, this)
    this.tell("SessionStart", { source })
  }

  event(name, fields) {
    return { session_id: this.id, hook_event_name: name, cwd: this.cwd, ...fields }
  }

  // Whatever is told after this is told after it. The fields may be a promise of them.
  tell(name, fields = {}) {
    if (this.over) return Promise.resolve()
    this.last = this.last.then(() => this.say(name, fields)).catch(() => {})
    return this.told()
  }

  // When all of it is told, or nobody waits for it any more.
  told() {
    return within(patience, this.last)
  }

  async say(name, promised) {
    const fields = { ...(await within(ACCEPT_MS, promised)) }
    // Somebody else speaks: whatever was broken may be whole again.
    if (name === "UserPromptSubmit" && !this.given.has(fields.prompt)) {
      this.deaf = false
      this.given.clear()
    }
    if (name === "Stop") {
      fields.stop_hook_active = this.kept
      this.kept = false
    }
    const said = await run(this.event(name, fields), false)
    if (said.code === 2 && said.err) {
      this.kept = (await this.give(said.err)) && name === "Stop"
    } else {
      this.context += contextOf(said.out)
    }
    if (["SessionStart", "UserPromptSubmit", "Stop", "StopFailure", "Interrupt"].includes(name)) this.wait()
  }

  wait() {
    if (this.over || this.deaf) return
    speakers.delete(this.id)
    speakers.set(this.id, this)
    if (this.waiter) return
    const event = this.event("SessionStart", { source: this.source })
    run(event, true, (child) => (this.waiter = child)).then(async (said) => {
      this.waiter = undefined
      if (said.code !== 2 || !said.err || this.over) return
      await this.give(said.err)
      this.wait()
    }).catch(() => {})
    const waiting = [...speakers.values()].filter((one) => one.waiter)
    for (const one of waiting.slice(0, Math.max(0, waiting.length - WAITERS))) one.rest()
  }

  // True for what was given. What is not of minder's making is not, nor what was given again and again: until somebody
  // else speaks nothing is waited for then.
  async give(text) {
    const times = this.given.get(text) ?? 0
    this.deaf = !text.startsWith("[minder] ") || times >= TIMES
    if (this.deaf) return false
    this.given.delete(text)
    this.given.set(text, times + 1)
    if (this.given.size > KEPT) this.given.delete(this.given.keys().next().value)
    await within(ACCEPT_MS, this.deliver(text))
    return true
  }

  // What is to be put before the model, once.
  takeContext() {
    const text = this.context
    this.context = ""
    return text
  }

  // It waits no more, until it is spoken to.
  rest() {
    stop(this.waiter)
  }

  // Nobody here speaks for it any more.
  leave() {
    this.over = true
    this.rest()
    if (speakers.get(this.id) === this) speakers.delete(this.id)
  }

  // The conversation is over in this process.
  async end(reason) {
    const told = this.tell("SessionEnd", { reason })
    this.leave()
    await within(ACCEPT_MS, told)
  }
}

function contextOf(text) {
  try {
    return JSON.parse(text).hookSpecificOutput?.additionalContext ?? ""
  } catch {
    return ""
  }
}
