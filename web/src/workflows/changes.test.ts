import { expect, test } from "vitest"
import { changesOf } from "./changes"

const node = (id: string, more: object = {}) => ({ id, type: "CALL", subtype: "EMPTY", ...more })
const before = {
  metadata: { name: "a", description: "x" },
  nodes: [node("start"), node("same", { configurations: { a: 1, b: { c: 2 } } }), node("other", { configurations: { url: "x", deep: { list: [1] } } }), node("gone"), node("moved", { position: { x: 1, y: 1 } })],
  connections: [{ from_node: "start", to_node: "same" }, { from_node: "same", to_node: "gone" }, { from_node: "same", to_node: "other", conversion_function: "x" }],
}
const after = {
  metadata: { description: "x", name: "b" },
  nodes: [node("start"), node("same", { configurations: { b: { c: 2 }, a: 1 } }), node("other", { configurations: { url: "y", deep: { list: [1, 2] }, method: "GET" } }), node("moved", { position: { x: 9, y: 1 } }), node("new", { name: "Newcomer" })],
  connections: [{ id: "c9", fromNode: "start", toNode: "same" }, { from_node: "same", to_node: "other", conversion_function: "y" }, { from_node: "other", to_node: "new" }],
}

test("nodes and connections of two revisions are told apart: added, removed, changed", () => {
  const c = changesOf(before, after)
  expect([...c.nodes].map(([id, n]) => [id, n.mark])).toEqual([["other", "changed"], ["new", "added"], ["gone", "removed"]])
  expect(c.nodes.get("other")!.fields).toEqual([
    { path: "configurations.url", before: "x", after: "y" },
    { path: "configurations.deep.list", before: [1], after: [1, 2] },
    { path: "configurations.method", before: undefined, after: "GET" },
  ])
  expect([...c.wires.values()].map((w) => [w.from, w.to, w.mark])).toEqual([["same", "other", "changed"], ["other", "new", "added"], ["same", "gone", "removed"]])
  expect(c.moved).toBe(1)
  expect(c.other).toEqual([{ path: "metadata.name", before: "a", after: "b" }])
  expect((c.both.nodes as { id: string }[]).map((n) => n.id)).toEqual(["start", "same", "other", "moved", "new", "gone"])
})

test("the same file twice has no changes, however it is spelled", () => {
  const c = changesOf(before, JSON.parse(JSON.stringify(before)) as typeof before)
  expect([c.nodes.size, c.wires.size, c.other, c.moved]).toEqual([0, 0, [], 0])
})
