import { expect, test } from "vitest"
import { largeOf, pathText, rangeSize, rowsOf, search, sizeText, wayTo } from "./data_rows"

const none = new Map<string, unknown>()
const open = (depth: number, ...keys: string[]) => ({ depth, touched: new Map(keys.map((k) => [k, true])) })

test("a path is written as the server writes it", () => {
  expect(pathText(["a", "b-c", 0, "x y", "名", 'q"'])).toBe('a.b-c[0]["x y"].名["q\\""]')
  expect(pathText([])).toBe("")
})

test("what is folded has no rows, and many children are folded into ranges", () => {
  const value = { list: Array.from({ length: 2 * rangeSize + 1 }, (_, i) => i), small: { a: 1 } }
  expect(rowsOf(value, open(1), none).map((r) => pathText(r.path))).toEqual(["", "list", "small"])
  const list = rowsOf(value, open(1), none)[1]!
  const ranges = rowsOf(value, open(1, list.key), none)
  expect(ranges.filter((r) => r.range).map((r) => r.range)).toEqual([
    { from: 0, to: 1000 },
    { from: 1000, to: 2000 },
    { from: 2000, to: 2001 },
  ])
  const last = ranges.filter((r) => r.range)[2]!
  expect(rowsOf(value, open(1, list.key, last.key), none).map((r) => pathText(r.path))).toContain("list[2000]")
})

test("names that look alike have keys of their own", () => {
  const rows = rowsOf({ "a.b": 1, a: { b: 2 }, "#0": 3, "~0": 4 }, open(3), none)
  expect(new Set(rows.map((r) => r.key)).size).toBe(rows.length)
})

test("the way to a hit opens everything above it, ranges and large values included", async () => {
  const read = new Map<string, unknown>([["h", { deep: Array.from({ length: 3000 }, (_, i) => ({ n: `v${i}` })) }]])
  const value = { big: { $blob: "h", size: 9 } }
  const hits = await search(value, "v2999", read, new AbortController().signal)
  expect(hits).toEqual([["big", "deep", 2999, "n"]])
  const rows = rowsOf(value, open(0, ...wayTo(value, hits[0]!, read)), read)
  expect(rows.map((r) => pathText(r.path))).toContain("big.deep[2999].n")
})

test("search finds names and values in any case, and no large value that was not read", async () => {
  const value = { Alpha: 1, b: ["x", "ALPHA"], c: { $blob: "alpha", size: 1 } }
  expect(await search(value, "alpha", none, new AbortController().signal)).toEqual([["Alpha"], ["b", 1]])
})

test("only what stands for a large value counts as one", () => {
  expect(largeOf({ $blob: "x", size: 3 })).toEqual({ hash: "x", size: 3 })
  expect(largeOf({ $omitted: true, size: 3 })).toEqual({ size: 3 })
  expect(largeOf({ $blob: "x", size: 3, more: 1 })).toBeUndefined()
  expect(largeOf(["$blob"])).toBeUndefined()
})

test("sizes are said as people do", () => {
  expect([5, 2_500, 40_000, 5_242_880].map(sizeText)).toEqual(["5 B", "2.5 kB", "40 kB", "5.2 MB"])
})
