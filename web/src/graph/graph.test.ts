import { expect, test } from "vitest"
import type { Schemas } from "@/api/client"
import { readDefinition } from "./definition"
import { drawNodes, drawWires, type FlowNode, portsOf } from "./flow"
import { bodiesOf, type Kinds, outputKeys } from "./keys"
import { layOut } from "./layout"

const kind = (name: string, output_keys: string[]) => [name, { name, title: { en: name, zh: name }, output_keys } as unknown as Schemas["NodeKind"]] as const
const kinds: Kinds = new Map([
  kind("TRIGGER.MANUAL", ["result"]),
  kind("FLOW.FOR_EACH", ["iteration", "completed"]),
  kind("FLOW.IF", ["true", "false"]),
  kind("FLOW.SWITCH", ["result"]),
  kind("CALL.EMPTY", ["result"]),
  kind("AI_AGENT.LLM", ["result", "structured_data"]),
  kind("TOOL.MCP_TOOL", ["result"]),
  kind("HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", ["result", "confirmed", "rejected", "unrelated", "timeout", "approve", "reject"]),
])

const node = (id: string, full: string, more: object = {}) => ({ id, type: full.split(".")[0], subtype: full.split(".")[1], ...more })
const wire = (from: string, to: string, output_key?: string) => ({ from_node: from, to_node: to, ...(output_key ? { output_key } : {}) })

const loops = readDefinition({
  nodes: [
    node("start", "TRIGGER.MANUAL"), node("outer", "FLOW.FOR_EACH"), node("check", "FLOW.IF"), node("inner", "FLOW.FOR_EACH"), node("step", "CALL.EMPTY"), node("agent", "AI_AGENT.LLM", { attached_nodes: ["tool"] }),
    node("tool", "TOOL.MCP_TOOL"), node("after", "CALL.EMPTY"),
  ],
  connections: [wire("start", "outer"), wire("outer", "check", "iteration"), wire("check", "inner", "true"), wire("check", "agent", "false"), wire("inner", "step", "iteration"), wire("step", "inner"), wire("inner", "outer", "completed"), wire("agent", "outer"), wire("outer", "after", "completed")],
})

test("a node belongs to the innermost loop that runs it", () => {
  expect(Object.fromEntries(bodiesOf(loops))).toEqual({ check: "outer", inner: "outer", agent: "outer", tool: "outer", step: "inner" })
})

test("a cycle that is not a loop is drawn all the same", () => {
  const odd = readDefinition({ nodes: [node("a", "FLOW.FOR_EACH"), node("b", "FLOW.FOR_EACH")], connections: [wire("a", "b", "iteration"), wire("b", "a", "iteration")] })
  expect(layOut(odd, portsOf(odd, kinds, true)).boxes.size).toBe(2)
})

test("frames are around their bodies, and what is attached is below its agent", () => {
  const { boxes } = layOut(loops, portsOf(loops, kinds, false))
  const inside = (a: string, b: string) => {
    const [x, y] = [boxes.get(a)!, boxes.get(b)!]
    return x.x > y.x && x.y > y.y && x.x + x.width < y.x + y.width && x.y + x.height < y.y + y.height
  }
  for (const [a, b] of [["check", "outer"], ["inner", "outer"], ["step", "inner"], ["agent", "outer"], ["tool", "outer"]]) expect([a, b, inside(a!, b!)]).toEqual([a, b, true])
  expect(inside("after", "outer")).toBe(false)
  expect(boxes.get("tool")!.y).toBeGreaterThan(boxes.get("agent")!.y + 60)
})

test("a position of the file is kept, and its frame follows", () => {
  const moved = { ...loops, nodes: loops.nodes.map((n) => (n.id === "step" ? { ...n, position: { x: 5000, y: 900 } } : n)) }
  const { boxes } = layOut(moved, portsOf(moved, kinds, false))
  expect(boxes.get("step")).toMatchObject({ x: 5000, y: 900 })
  expect(boxes.get("inner")!.x + boxes.get("inner")!.width).toBeGreaterThan(5232)
  expect(boxes.get("outer")!.x + boxes.get("outer")!.width).toBeGreaterThan(5232)
})

test("the keys of a switch and of a question come from how they are configured", () => {
  const { nodes } = readDefinition({
    nodes: [
      node("s", "FLOW.SWITCH", { configurations: { cases: [{ case: 1, output_key: "one" }, { case: "two" }], on_error: "continue" } }),
      node("q", "HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", { configurations: { selection_options: ["red", { value: "blue" }] } }),
    ],
  })
  expect(outputKeys(nodes[0]!, kinds)).toEqual(["one", "two", "default", "error"])
  expect(outputKeys(nodes[1]!, kinds)).toEqual(["result", "confirmed", "rejected", "unrelated", "timeout", "red", "blue"])
})

test("a connection ends where it belongs: at the input, or inside the frame it comes from", () => {
  const ports = portsOf(loops, kinds, false)
  const edges = drawWires({ definition: loops, layout: layOut(loops, ports), editing: false }, ports, new Set())
  const by = (from: string, to: string) => edges.find((e) => e.source === from && e.target === to)!
  expect(by("step", "inner").targetHandle).toBe("back")
  expect(by("inner", "outer").targetHandle).toBe("back")
  expect(by("start", "outer").targetHandle).toBe("in")
  expect(by("agent", "tool").sourceHandle).toBe("attach")
})

const large = (n: number) =>
  readDefinition({
    nodes: [node("n0", "TRIGGER.MANUAL"), ...Array.from({ length: n - 1 }, (_, i) => node(`n${i + 1}`, i % 7 === 3 ? "FLOW.IF" : "CALL.EMPTY"))],
    connections: Array.from({ length: n - 1 }, (_, i) => wire(`n${Math.max(0, i - (i % 5))}`, `n${i + 1}`)),
  })

test("what has not changed is drawn by the very same objects", () => {
  const definition = large(500)
  const ports = portsOf(definition, kinds, true)
  const layout = layOut(definition, ports)
  const base = { definition, kinds, layout, editing: true, chosen: new Set<string>(), language: "en" as const, labelOf: () => "" }
  const first = drawNodes(base, ports, new Map())
  const again = drawNodes({ ...base, states: { n7: { status: "RUNNING" } } }, ports, new Map<string, FlowNode>(first.map((n) => [n.id, n])))
  expect(again.filter((n, i) => n !== first[i]).map((n) => n.id)).toEqual(["n7"])
})

test("what is not a definition is an empty one", () => {
  for (const odd of [null, 3, "x", [], { nodes: 3 }, { nodes: [1, null, { id: 5 }, { id: "" }], connections: [{}] }, { nodes: [{ id: "a" }, { id: "a" }] }]) expect(readDefinition(odd).connections).toEqual([])
})
