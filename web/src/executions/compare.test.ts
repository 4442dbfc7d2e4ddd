import { expect, test } from "vitest"
import type { Schemas } from "@/api/client"
import { pairsOf } from "./compare"

const run = (nodes: Record<string, Partial<Schemas["NodeExecution"]>>) => ({ execution_sequence: Object.keys(nodes), node_executions: nodes as Record<string, Schemas["NodeExecution"]> })

test("nodes differ by their state, what they brought, and why they failed", () => {
  const left = run({ a: { status: "completed", output_data: { result: 1 } }, b: { status: "completed", output_data: { result: 1 } }, c: { status: "failed", error: { error_code: "x", error_message: "no stock for 1" } as never }, d: { status: "completed" } })
  const right = run({ a: { status: "completed", output_data: { result: 1 } }, b: { status: "completed", output_data: { result: 2 } }, c: { status: "failed", error: { error_code: "x", error_message: "no stock for 2" } as never }, e: { status: "completed" } })
  expect(pairsOf(left, right).map((p) => [p.node, p.same])).toEqual([
    ["a", true],
    ["b", false],
    ["c", false],
    ["d", false],
    ["e", false],
  ])
})
