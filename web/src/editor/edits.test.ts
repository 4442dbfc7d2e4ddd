import { expect, test } from "vitest"
import * as edits from "./edits"
import { begin, change, redo, undo } from "./history"

const file = {
  nodes: [{ id: "a", type: "AI_AGENT", subtype: "LLM", attached_nodes: ["t"] }, { id: "t", type: "TOOL", subtype: "MCP_TOOL" }, { id: "b", type: "CALL", subtype: "EMPTY", position: { x: 1, y: 2 } }],
  connections: [{ from_node: "a", to_node: "b" }],
  triggers: ["b"],
}

test("what is removed is named nowhere any more", () => {
  expect(edits.remove(file, new Set(["t"]), new Set())).toEqual({ ...file, nodes: [{ id: "a", type: "AI_AGENT", subtype: "LLM" }, file.nodes[2]] })
  expect(edits.remove(file, new Set(["b"]), new Set())).toEqual({ nodes: file.nodes.slice(0, 2), connections: [], triggers: [] })
})

test("a connection is added once, and names its key unless it is the usual one", () => {
  const once = edits.connect(file, "a", "structured_data", "b")
  expect((once as typeof file).connections[1]).toEqual({ from_node: "a", to_node: "b", output_key: "structured_data" })
  expect(edits.connect(once, "a", "structured_data", "b")).toBe(once)
  expect(edits.connect(file, "a", "result", "b")).toBe(file)
})

test("what is pasted has ids of its own, and its connections and attachments with it", () => {
  const { value, ids } = edits.paste(file, edits.copy(file, new Set(["a", "t", "b"])))
  expect([...ids]).toEqual(["a_2", "t_2", "b_2"])
  const v = value as typeof file
  expect(v.nodes.slice(3)).toEqual([
    { id: "a_2", type: "AI_AGENT", subtype: "LLM", attached_nodes: ["t_2"] },
    { id: "t_2", type: "TOOL", subtype: "MCP_TOOL" },
    { id: "b_2", type: "CALL", subtype: "EMPTY", position: { x: 41, y: 62 } },
  ])
  expect(v.connections[1]).toEqual({ from_node: "a_2", to_node: "b_2" })
})

test("a new field of a node stands where the format lists it", () => {
  const v = edits.setField(file, "b", "configurations", { pass_through: true }) as typeof file
  expect(Object.keys(v.nodes[2]!)).toEqual(["id", "type", "subtype", "configurations", "position"])
})

test("typing is one step of undoing, and a text that cannot be read leaves the drawing as it was", () => {
  let h = begin("nodes: [{id: a}]")
  h = change(h, "nodes: [{id: b", "text", 1000)
  expect(h.now.broken?.line).toBe(1)
  expect(h.now.definition.nodes[0]!.id).toBe("a")
  h = change(h, "nodes: [{id: bc}]", "text", 1100)
  h = change(h, "nodes: [{id: bc}]\n# x", "canvas", 1200)
  expect(h.past).toHaveLength(2)
  h = undo(undo(h))
  expect(h.now.text).toBe("nodes: [{id: a}]")
  h = redo(h)
  expect(h.now.text).toBe("nodes: [{id: bc}]")
  expect(undo(undo(undo(h))).now.text).toBe("nodes: [{id: a}]")
})
