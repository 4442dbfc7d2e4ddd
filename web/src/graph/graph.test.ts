import { expect, test } from "vitest"
import type { Schemas } from "@/api/client"
import kindKeys from "@/testing/kind_keys.json"
import { readDefinition, withKinds } from "./definition"
import { drawNodes, drawWires, type FlowNode, portsOf } from "./flow"
import { bodiesOf, entryKey, type Kinds, keyOf, mainKey, outputKeys } from "./keys"
import { layOut } from "./layout"

type Kind = Schemas["NodeKind"]
const kind = (name: string, output_keys: string[], more: Partial<Kind> = {}) => [name, { name, title: { en: name, zh: name }, output_keys, ...more } as unknown as Kind] as const
const kinds: Kinds = new Map([
  kind("TRIGGER.MANUAL", ["result"], { older_names: ["START"] }),
  kind("FLOW.FOR_EACH", ["iteration", "completed"], { body: { entry: "iteration", exits: ["completed"] } }),
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
  expect(Object.fromEntries(bodiesOf(loops, portsOf(loops, kinds, false)))).toEqual({ check: "outer", inner: "outer", agent: "outer", tool: "outer", step: "inner" })
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

// What the kinds say of their keys, and the keys that the engine has for some nodes: go test ./app -run TestKinds_KeysForAnEditor -update writes it.
const told = kindKeys as unknown as { kinds: Kind[]; cases: { kind: string; configurations: object; keys: string[]; entry?: string; main?: string }[] }
const real: Kinds = new Map(told.kinds.map((k) => [k.name, k]))

test.each(told.cases.map((c) => [`${c.kind} ${JSON.stringify(c.configurations)}`, c] as const))("the keys are those that the engine has: %s", (_, c) => {
  const one = readDefinition({ nodes: [node("n", c.kind, { configurations: c.configurations })] }).nodes[0]!
  const keys = outputKeys(one, real)
  expect(keys).toEqual(c.keys)
  expect(entryKey(keys, real.get(c.kind))).toBe(c.entry)
  expect(mainKey(keys, real.get(c.kind))).toBe(c.main ?? c.keys[0])
  expect(outputKeys({ ...one, configurations: { ...one.configurations, on_error: "continue" } }, real)).toEqual([...c.keys, "error"])
})

test("a connection may name a key as older files do, each kind in its own way", () => {
  const wired = (from: string, key: string) => {
    const { nodes, connections } = readDefinition({ nodes: [node("n", from), node("m", "FLOW.DELAY")], connections: [wire("n", "m", key)] })
    return keyOf(connections[0]!, outputKeys(nodes[0]!, real), real.get(from))
  }
  expect([wired("FLOW.FOR_EACH", "main"), wired("FLOW.FOR_EACH", "result"), wired("FLOW.DELAY", "delayed"), wired("HUMAN_IN_THE_LOOP.IN_APP_APPROVAL", "approved")]).toEqual(["completed", "completed", "result", "confirmed"])
  expect(wired("FLOW.FOR_EACH", "approved")).toBe("approved")
})

test("an older name of a kind is replaced by what the kind is called; whatever else there is stays the very same", () => {
  const file = { nodes: [{ id: "a", type: "start" }, node("b", "CALL.EMPTY"), { id: "c", type: "GONE" }], connections: [wire("a", "b")] }
  const read = readDefinition(file)
  const known = withKinds(read, kinds)
  expect(known.nodes.map((n) => n.kind)).toEqual(["TRIGGER.MANUAL", "CALL.EMPTY", "GONE"])
  expect(known.nodes[1]).toBe(read.nodes[1])
  expect(withKinds(readDefinition(file), kinds).nodes[0]).toBe(known.nodes[0])
  expect(withKinds(loops, kinds)).toBe(loops)
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
