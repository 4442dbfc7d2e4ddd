import type { Schemas } from "@/api/client"
import { plain } from "@/parts/plain"
import type { State } from "@/parts/state"

type Node = Schemas["NodeExecution"]

type Update = Schemas["ExecutionUpdate"]
type Event = Omit<Schemas["Event"], "event_type" | "data"> & { event_type: Schemas["ExecutionEventType"]; data: Update }

/** Step is one activation as the timeline shows it: without its data, which is read when somebody looks at it. */
export type Step = {
  id: string
  node: string
  name: string
  kind: string
  /** The step inside a node that this is: complete_1, call_1_2. */
  inner?: string
  state: State
  start?: number
  end?: number
  attempt: number
  generation: number
  iteration?: number
  cost: number
  tokens: number
  effect?: string
  /** The tool that was called, for a call. */
  tool?: string
  /** What matters of it in one line: what a model said, the arguments of a call, which way was taken, the error. */
  detail?: string
  code?: string
  /** When a retry or a timer is due. */
  due?: number
  /** How often it was tried again. */
  retries: number
  level: number
  /** It is of the execution that this one was forked from. */
  inherited?: boolean
  /** In a test: it has not run, its output was given. */
  pinned?: boolean
}

const states: Record<Node["status"], State> = {
  pending: "PENDING",
  running: "RUNNING",
  waiting_input: "WAITING_FOR_HUMAN",
  completed: "SUCCESS",
  failed: "ERROR",
  skipped: "SKIPPED",
  retrying: "WAITING",
  canceled: "CANCELED",
}

/** nodeState is the state that is shown for the status of a node. */
export const nodeState = (status: string): State => states[status as Node["status"]] ?? "NEW"

/** after says whether one id of an event (seq.part) comes behind another. */
export function after(id: string, other: string): boolean {
  const [a, b] = [id.split("."), other.split(".")]
  return Number(a[0]) - Number(b[0] || 0) > 0 || (Number(a[0]) === Number(b[0] || 0) && Number(a[1] ?? 0) > Number(b[1] ?? 0))
}

const brief = (text: string) => plain(text.length > 240 ? text.slice(0, 240) + "…" : text)

type Details = { tool_name?: unknown; tool_parameters?: unknown; branch_taken?: unknown }

// detailOf finds the one thing that matters in what a step has brought.
function detailOf(n: Node): string | undefined {
  if (n.error) return brief(n.error.error_message)
  const details = (n.execution_details ?? {}) as Details
  if (details.tool_name !== undefined) return brief(JSON.stringify(details.tool_parameters ?? {}))
  const result = n.output_data?.result as { message?: { content?: unknown }; content?: unknown; response?: unknown } | undefined
  const said = result?.message?.content ?? result?.content ?? result?.response
  if (n.node_type === "AI_AGENT" && typeof said === "string" && said) return brief(said)
  if (n.node_type === "FLOW" && typeof details.branch_taken === "string") return `→ ${details.branch_taken}`
}

function stepOf(n: Node, event: Event["event_type"], kind: string | undefined): Step {
  const details = (n.execution_details ?? {}) as Details
  let state = nodeState(n.status)
  if (event === "node_waiting") state = "WAITING"
  if (state === "WAITING_FOR_HUMAN" && kind === "outcome_unknown") state = "UNKNOWN"
  return {
    id: n.activation_id,
    node: n.node_id,
    name: plain(n.node_name || n.node_id),
    kind: `${n.node_type}.${n.node_subtype}`,
    inner: n.inner_step,
    state,
    start: n.start_time,
    end: n.end_time,
    attempt: n.attempt,
    generation: n.generation ?? 0,
    iteration: n.iteration,
    cost: n.credits_consumed,
    tokens: n.tokens_used?.total_tokens ?? 0,
    effect: n.effect,
    tool: typeof details.tool_name === "string" ? details.tool_name : undefined,
    detail: detailOf(n),
    code: n.error?.error_code,
    due: n.next_at,
    retries: n.retry_count,
    pinned: n.pinned,
    level: levelOf(n.activation_id),
  }
}

const levelOf = (id: string) => id.split("/").length - 1

const told: Record<Schemas["HistoryStep"]["step_status"], State> = { INIT: "PENDING", RUNNING: "RUNNING", WAITING: "WAITING_FOR_HUMAN", PARAM: "WAITING_FOR_HUMAN", SUCCESS: "SUCCESS", ERROR: "ERROR", CANCELLED: "CANCELED", SKIPPED: "SKIPPED" }

/** toldState is the state that is shown for the status of a step in the history. */
export const toldState = (status: string): State => told[status as keyof typeof told] ?? "NEW"

/** inheritedStep is a step of the execution that this one was forked from, as the history tells it. */
export function inheritedStep(s: Schemas["HistoryStep"]): Step {
  return {
    id: s.step_id,
    node: s.node_id,
    name: plain(s.step_name),
    kind: s.step_type,
    inner: s.inner_step,
    state: toldState(s.step_status),
    start: s.start_time,
    end: s.end_time,
    attempt: s.attempts,
    generation: s.generation ?? 0,
    iteration: s.iteration,
    cost: s.credits_consumed,
    tokens: s.tokens_used?.total_tokens ?? 0,
    detail: s.error && brief(s.error.error_message),
    code: s.error?.error_code,
    retries: s.retries?.length ?? 0,
    level: levelOf(s.step_id),
    inherited: true,
  }
}

const bytes = new TextEncoder()

/**
 * Run is what the stream of an execution has told so far. It takes each event once, in order, whoever sends it again; listeners hear of changes at
 * most ten times a second, so that thousands of events do not redraw the page thousands of times.
 */
export class Run {
  /** In the order in which they began. */
  readonly steps: Step[] = []
  /** Text while it is written, by activation. */
  readonly texts = new Map<string, { attempt: number; text: string; size: number }>()
  status: string | undefined
  /** The last id that was taken. */
  last = ""
  version = 0
  /** When the last event was recorded. */
  time = 0
  // Steps inside a node that wait for a person, by the node's activation: the node waits with them.
  private readonly inside = new Map<string, Map<string, State>>()
  private readonly at = new Map<string, number>()
  private readonly listeners = new Set<() => void>()
  private timer: ReturnType<typeof setTimeout> | undefined

  /** take takes an event, and says whether it was new. */
  take(id: string, json: string): boolean {
    if (id && this.last && !after(id, this.last)) return false
    const { event_type, timestamp, data } = JSON.parse(json) as Event
    if (id) {
      this.last = id
      this.time = Math.max(this.time, timestamp)
    }
    if (data.partial_output) this.write(data.partial_output)
    else if (data.node_execution) this.put(stepOf(data.node_execution, event_type, data.kind))
    if (data.execution_status) this.status = data.execution_status
    this.changed()
    return true
  }

  step(id: string): Step | undefined {
    const i = this.at.get(id)
    return i === undefined ? undefined : this.steps[i]
  }

  /** inherit puts the steps that a fork shares with its source before its own. What the fork has done anew is its own. */
  inherit(steps: readonly Step[]) {
    const own = this.steps.splice(0)
    for (const s of [...steps.filter((s) => s.end !== undefined && !this.at.has(s.id)), ...own]) {
      this.at.set(s.id, this.steps.length)
      this.steps.push(s)
    }
    this.changed()
  }

  /** stateOf is the state of a step, with what is waited for inside of it. */
  stateOf(step: Step): State {
    return (step.state === "RUNNING" && [...(this.inside.get(step.id)?.values() ?? [])][0]) || step.state
  }

  subscribe = (listener: () => void) => {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  private put(step: Step) {
    const i = this.at.get(step.id)
    if (i === undefined) {
      this.at.set(step.id, this.steps.length)
      this.steps.push(step)
    } else this.steps[i] = step
    if (step.end !== undefined) this.texts.delete(step.id)
    if (step.inner === undefined) return
    const owner = step.id.slice(0, step.id.lastIndexOf("["))
    const waiting = this.inside.get(owner)
    if (step.state === "WAITING_FOR_HUMAN" || step.state === "UNKNOWN") this.inside.set(owner, (waiting ?? new Map<string, State>()).set(step.id, step.state))
    else waiting?.delete(step.id)
  }

  private write(p: NonNullable<Update["partial_output"]>) {
    const now = this.texts.get(p.activation_id)
    const text = p.text ?? ""
    if (p.snapshot || !now || p.attempt > now.attempt) this.texts.set(p.activation_id, { attempt: p.attempt, text, size: p.offset + bytes.encode(text).length })
    else if (p.attempt === now.attempt && p.offset === now.size) this.texts.set(p.activation_id, { attempt: p.attempt, text: now.text + text, size: now.size + bytes.encode(text).length })
  }

  private changed() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined
      this.version++
      for (const listener of this.listeners) listener()
    }, 100)
  }
}

/** loopOf is the outermost loop that an activation is inside of, with its iteration; steps inside a node that is in no loop are in none. */
export function loopOf(step: Pick<Step, "id" | "inner">): { loop: string; iteration: number } | undefined {
  const m = /^([^[\]/]+)\[(\d+)\]\/(.*)$/.exec(step.id)
  if (!m) return
  if (step.inner !== undefined && !m[3]!.includes("/")) return
  return { loop: m[1]!, iteration: Number(m[2]) }
}
