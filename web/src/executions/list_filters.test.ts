import { expect, test } from "vitest"
import { ranges, timeOf } from "./list_filters"

const at = (text: string) => timeOf(new URLSearchParams(text), 1_000_000_000_000)

test("a named range ends now, two times are taken as they are, and anything else is not a filter", () => {
  expect(at("since=day")).toEqual({ started_after: 1_000_000_000_000 - ranges.day })
  expect(at("from=5&to=9")).toEqual({ started_after: 5, started_before: 9 })
  expect(at("to=9")).toEqual({ started_before: 9 })
  expect(at("since=ever&from=x&to=-1")).toEqual({})
})
