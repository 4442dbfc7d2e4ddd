import { expect, test } from "vitest"
import { read, write } from "./record"

test("a path is read and written, and the rest stays as it is", () => {
  const before = { name: "a", price: { input: 1, output: 2 } }
  expect(read(before, "price.output")).toBe(2)
  expect(read(before, "price.cached.x")).toBeUndefined()
  expect(write(before, "price.input", 5)).toEqual({ name: "a", price: { input: 5, output: 2 } })
  expect(before.price.input).toBe(1)
})

test("what is emptied is taken out, and so is an object that nothing is left of", () => {
  expect(write({ price: { input: 1 } }, "price.input", undefined)).toEqual({})
  expect(write({}, "retention.audit.days", 3)).toEqual({ retention: { audit: { days: 3 } } })
  expect(write({ on: true }, "on", false)).toEqual({ on: false })
})
