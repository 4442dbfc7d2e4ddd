import type { Schemas } from "./client"
import { valuesOf } from "./values"

type ExecutionEvent = Schemas["ExecutionEventType"]
type FlowEvent = Schemas["FlowEventType"]

// Whether what an event tells is recorded: what is not has no id, and what is recorded afterwards has all of it.
const ofExecutions: Record<ExecutionEvent, "recorded" | "passing"> = {
  execution_started: "recorded",
  execution_resumed: "recorded",
  execution_paused: "recorded",
  execution_completed: "recorded",
  execution_failed: "recorded",
  execution_canceled: "recorded",
  execution_timeout: "recorded",
  node_started: "recorded",
  node_output_update: "passing",
  node_logs_update: "passing",
  node_completed: "recorded",
  node_failed: "recorded",
  node_skipped: "recorded",
  node_canceled: "recorded",
  node_retrying: "recorded",
  node_waiting: "recorded",
  user_input_required: "recorded",
}

const told = (how: "recorded" | "passing") => valuesOf(ofExecutions).filter((name) => ofExecutions[name] === how)

/** recordedEvents are the events of an execution's stream that are part of its record. */
export const recordedEvents = told("recorded")

/** passingEvents are those that tell what is being written: they have no id, and the browser gives them that of the event before. */
export const passingEvents = told("passing")

/** textEvent brings the text of the answer to a task while it is written. */
export const textEvent = "text.add" satisfies FlowEvent

/** stepEvents are all other events of a task's stream. */
export const stepEvents = valuesOf<Exclude<FlowEvent, typeof textEvent>>({
  "flow.start": 1,
  "flow.resume": 1,
  "flow.stop": 1,
  "flow.success": 1,
  "flow.failed": 1,
  "flow.cancel": 1,
  "step.init": 1,
  "step.input": 1,
  "step.update": 1,
  "step.output": 1,
  "step.error": 1,
  "step.skip": 1,
  "step.retry": 1,
  "step.cancel": 1,
  "step.waiting_for_start": 1,
  "step.waiting_for_param": 1,
})
