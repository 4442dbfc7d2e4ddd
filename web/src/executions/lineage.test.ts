import { expect, test } from "vitest"
import { type Origin, originsOf, outputPath, pathSteps, sourceStep } from "./lineage"
import { Run } from "./run"

const lineage: Origin[] = [
  { path: "amount", sources: [{ layer: "trigger", path: "amount" }] },
  { path: "customer.name", sources: [{ layer: "connection", node_id: "read" }] },
  { path: "customer.city", sources: [{ layer: "literal" }] },
  { path: "customers", sources: [{ layer: "env" }] },
]
const paths = (list: Origin[]) => list.map((o) => o.path)

test("a value has the origin that it is a part of, an object those of its parts", () => {
  expect(paths(originsOf(lineage, ["amount", "currency"]))).toEqual(["amount"])
  expect(paths(originsOf(lineage, ["customer"]))).toEqual(["customer.name", "customer.city"])
  expect(paths(originsOf(lineage, []))).toHaveLength(4)
  expect(paths(originsOf([{ path: "", sources: [] }], ["x", 0]))).toEqual([""])
})

test("paths are read as they are written", () => {
  expect(pathSteps('a.b-c[0]["x y"].名')).toEqual(["a", "b-c", 0, "x y", "名"])
})

test("the step of a source is the visit that this step could see", () => {
  const run = new Run()
  let seq = 0
  for (const id of ["read", "each", "each[0]/read", "each[1]/read", "each[1]/send"]) {
    const node = { node_id: id.split("/").pop()!, node_name: id, node_type: "CALL", node_subtype: "EMPTY", status: "completed", start_time: ++seq, retry_count: 0, max_retries: 0, credits_consumed: 0, activation_id: id, attempt: 1 }
    run.take(`${seq}.1`, JSON.stringify({ event_type: "node_completed", timestamp: 1, data: { node_execution: node } }))
  }
  const send = run.step("each[1]/send")!
  expect(sourceStep(run, send, { layer: "connection", node_id: "read" })?.id).toBe("each[1]/read")
  expect(sourceStep(run, send, { layer: "step_results", node_id: "read", activation_id: "read" })?.id).toBe("read")
  expect(sourceStep(run, send, { layer: "scope", scope: "each[1]", name: "item" })?.id).toBe("each")
  expect(sourceStep(run, send, { layer: "literal" })).toBeUndefined()
})

test("a value is found in the output of its step, as far as it is there", () => {
  expect(outputPath({ layer: "connection", output_key: "true", path: "a[1].b" }, { true: { a: [0, { b: 1 }] } })).toEqual(["true", "a", 1, "b"])
  expect(outputPath({ layer: "connection", path: "gone.x" }, { result: { a: 1 } })).toEqual(["result"])
})
