import { expect, test } from "vitest"
import { actsOn, actsOnStep } from "./allowed"
import type { Step } from "./run"

const all = { operate: true, edit: true, admin: true }
const none = { operate: false, edit: false, admin: false }
const about = (status: string, more: object = {}) => ({ status, task: false, openQuestion: false, ...more })
const step = (state: Step["state"], more: Partial<Step> = {}): Step => ({ id: "a", node: "a", name: "a", kind: "CALL.EMPTY", state, attempt: 1, generation: 0, cost: 0, tokens: 0, retries: 0, level: 0, ...more })

test("a run that goes on is paused or cancelled, a paused one goes on", () => {
  expect(actsOn(about("RUNNING"), all)).toEqual(["pause", "cancel"])
  expect(actsOn(about("PAUSED"), all)).toEqual(["resume", "cancel"])
  expect(actsOn(about("WAITING_FOR_HUMAN"), { ...none, operate: true })).toEqual(["pause", "cancel"])
})

test("what has ended is deleted by admins, and not while a question is open", () => {
  expect(actsOn(about("SUCCESS"), all)).toEqual(["delete"])
  expect(actsOn(about("ERROR", { openQuestion: true }), all)).toEqual([])
  expect(actsOn(about("SUCCESS", { task: true }), { ...none, edit: true, operate: true })).toEqual(["freeze"])
})

test("who may only read is offered nothing", () => {
  expect(actsOn(about("RUNNING"), none)).toEqual([])
  expect(actsOnStep("ERROR", step("ERROR"), none)).toEqual([])
})

test("what failed is retried, left out or forked; what went well is forked", () => {
  expect(actsOnStep("ERROR", step("ERROR"), all)).toEqual(["retry_node", "skip_node", "fork"])
  expect(actsOnStep("SUCCESS", step("ERROR"), all)).toEqual(["fork"])
  expect(actsOnStep("SUCCESS", step("SUCCESS"), all)).toEqual(["fork"])
  expect(actsOnStep("RUNNING", step("RUNNING"), all)).toEqual(["skip_node", "fork"])
  expect(actsOnStep("ERROR", step("ERROR", { inner: "call_1_1" }), all)).toEqual(["retry_node"])
  expect(actsOnStep("SUCCESS", step("SKIPPED"), all)).toEqual([])
})
