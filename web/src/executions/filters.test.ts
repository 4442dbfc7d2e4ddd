import { expect, test } from "vitest"
import { loopsOf } from "./filters"

const steps = ["start", "work[0]/plan", "work[0]/call", "each[0]/a", "each[1]/a", "each[2]/a"].map((id) => ({ id, inner: undefined }))

test("there is something to choose only of a loop that went round more than once", () => {
  expect([...loopsOf(steps, "")]).toEqual([["each", 2]])
  expect([...loopsOf(steps, "work")]).toEqual([
    ["work", 0],
    ["each", 2],
  ])
})
