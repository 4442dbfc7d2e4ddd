import { expect, test, vi } from "vitest"
import { after, inheritedStep, loopOf, Run } from "./run"

const node = (id: string, status: string, more: object = {}) => ({ node_id: id, node_name: id, node_type: "CALL", node_subtype: "EMPTY", status, retry_count: 0, max_retries: 0, credits_consumed: 0, activation_id: id, attempt: 1, ...more })
const event = (event_type: string, data: object) => JSON.stringify({ event_type, timestamp: 1, data })

test("ids are compared by number, not by text", () => {
  expect(after("10.1", "9.2")).toBe(true)
  expect(after("9.10", "9.9")).toBe(true)
  expect(after("9.1", "9.1")).toBe(false)
  expect(after("1.1", "")).toBe(true)
})

test("an event that comes again changes nothing", () => {
  const run = new Run()
  expect(run.take("1.1", event("node_started", { node_execution: node("a", "running") }))).toBe(true)
  expect(run.take("2.1", event("node_completed", { node_execution: node("a", "completed", { end_time: 5 }) }))).toBe(true)
  expect(run.take("1.1", event("node_started", { node_execution: node("a", "running") }))).toBe(false)
  expect(run.steps.map((s) => [s.id, s.state])).toEqual([["a", "SUCCESS"]])
})

test("text grows by its offset, a new attempt begins anew, and the completion takes its place", () => {
  const run = new Run()
  const piece = (p: object) => run.take("", event("node_output_update", { partial_output: { activation_id: "m", attempt: 1, offset: 0, ...p } }))
  piece({ text: "你好", snapshot: true })
  piece({ text: "，世界", offset: 6 })
  piece({ text: "twice", offset: 6 })
  expect(run.texts.get("m")?.text).toBe("你好，世界")
  piece({ text: "again", attempt: 2 })
  expect(run.texts.get("m")?.text).toBe("again")
  run.take("3.1", event("node_completed", { node_execution: node("m", "completed", { end_time: 1 }) }))
  expect(run.texts.has("m")).toBe(false)
})

test("a node waits for a person while a step inside of it does", () => {
  const run = new Run()
  const inner = (status: string) => node("w", status, { activation_id: "w[0]/approve_1", inner_step: "approve_1" })
  run.take("1.1", event("node_started", { node_execution: node("w", "running") }))
  run.take("2.1", event("user_input_required", { node_execution: inner("waiting_input") }))
  expect(run.stateOf(run.step("w")!)).toBe("WAITING_FOR_HUMAN")
  run.take("3.1", event("node_completed", { node_execution: inner("completed") }))
  expect(run.stateOf(run.step("w")!)).toBe("RUNNING")
})

test("a fork shows what it shares with its source before its own steps", () => {
  const run = new Run()
  run.take("1.1", event("node_started", { node_execution: node("ask", "running") }))
  const shared = (id: string, end?: number) => ({ id, task_id: "", executor_id: "", executor_name: "", executor_status: "RUNNING" as const, step_id: id, step_name: id, step_type: "CALL.EMPTY", step_status: "SUCCESS" as const, node_id: id, attempts: 1, updated_at: 1, credits_consumed: 0, end_time: end })
  run.inherit([shared("start", 1), shared("ask", 2), shared("open")].map(inheritedStep))
  expect(run.steps.map((s) => [s.id, !!s.inherited])).toEqual([
    ["start", true],
    ["ask", false],
  ])
  run.take("2.1", event("node_completed", { node_execution: node("ask", "completed", { end_time: 9 }) }))
  expect(run.step("ask")?.state).toBe("SUCCESS")
})

test("listeners hear of a thousand events a few times", () => {
  vi.useFakeTimers()
  const run = new Run()
  let heard = 0
  run.subscribe(() => heard++)
  for (let i = 1; i <= 1000; i++) run.take(`${i}.1`, event("node_started", { node_execution: node(`n${i}`, "running") }))
  vi.advanceTimersByTime(1000)
  expect(heard).toBe(1)
  expect(run.steps).toHaveLength(1000)
  vi.useRealTimers()
})

test("the loop around a step is found, and a node with a program is none", () => {
  expect(loopOf({ id: "each[3]/send" })).toEqual({ loop: "each", iteration: 3 })
  expect(loopOf({ id: "each[3]/inner[0]/send" })).toEqual({ loop: "each", iteration: 3 })
  expect(loopOf({ id: "writer[0]/complete_1", inner: "complete_1" })).toBeUndefined()
  expect(loopOf({ id: "each[2]/writer[0]/complete_1", inner: "complete_1" })).toEqual({ loop: "each", iteration: 2 })
  expect(loopOf({ id: "start" })).toBeUndefined()
})
