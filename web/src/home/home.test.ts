import { expect, test } from "vitest"
import type { Schemas } from "@/api/client"
import { countOf } from "./overview"
import { nextRuns } from "./upcoming"

test("counts are of some statuses, or of all", () => {
  const counts = { RUNNING: 2, ERROR: 3, TIMEOUT: 1 }
  expect(countOf(counts, "ERROR", "TIMEOUT", "UNHEARD")).toBe(4)
  expect(countOf(counts)).toBe(6)
})

test("the next runs of all triggers that are in force come in one order", () => {
  const trigger = (workflow_id: string, next_runs: number[], in_force = true) => ({ workflow_id, node_id: "n", in_force, next_runs }) as unknown as Schemas["Trigger"]
  expect(nextRuns([trigger("a", [5, 9]), trigger("b", [7]), trigger("c", [1], false)], 2)).toEqual([
    { workflow: "a", node: "n", at: 5 },
    { workflow: "b", node: "n", at: 7 },
  ])
})
