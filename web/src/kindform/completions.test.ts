import { expect, test } from "vitest"
import { type Completion, completionsFor, type Definition, valueAt } from "./completions"
import { resolvedIn } from "./complete"
import type { NodeKind } from "./schema"

const kind = (name: string, keys: { name: string; fields?: string[] }[], more: Partial<NodeKind> = {}): NodeKind =>
  ({
    ...more,
    name,
    type: name.split(".")[0],
    subtype: name.split(".")[1],
    output_keys: keys.map((k) => k.name),
    keys: keys.map((k) => ({ name: k.name, meaning: { en: "", zh: "" }, fields: k.fields?.map((f) => ({ name: f, meaning: { en: `the ${f}`, zh: f } })) })),
    output_schema: { properties: { status_code: { type: "integer" } } },
  }) as unknown as NodeKind

const kinds = [
  kind("TRIGGER.MANUAL", [{ name: "result", fields: ["user_id"] }], { older_names: ["START"] }),
  kind("ACTION.HTTP_REQUEST", [{ name: "result", fields: ["status_code", "items[].id", "*"] }]),
  kind("FLOW.FOR_EACH", [{ name: "iteration" }, { name: "completed", fields: ["results"] }], { body: { entry: "iteration", exits: ["completed"] }, key_aliases: { result: "completed" } }),
  kind("FLOW.IF", [{ name: "true", fields: ["condition_result"] }, { name: "false" }]),
]

const definition: Definition = {
  nodes: [
    { id: "start", type: "TRIGGER", subtype: "MANUAL", configurations: { input_schema: { type: "object", properties: { order: { type: "object", title: "The order", properties: { id: { type: "integer" } } } } } } },
    { id: "fetch", type: "action", subtype: "http_request", output_params: { total: "number" } },
    { id: "0f8fad5b-d9cb", name: "each", type: "FLOW", subtype: "FOR_EACH", configurations: { iteration_variable: "order_item" } },
    { id: "inner", type: "FLOW", subtype: "IF", input_params: { limit: 3 } },
    { id: "after", type: "ACTION", subtype: "HTTP_REQUEST" },
    { id: "elsewhere", type: "ACTION", subtype: "HTTP_REQUEST" },
  ],
  connections: [
    { from_node: "start", to_node: "fetch" },
    { from_node: "fetch", to_node: "0f8fad5b-d9cb" },
    { from_node: "0f8fad5b-d9cb", to_node: "inner", output_key: "iteration" },
    { from_node: "inner", to_node: "0f8fad5b-d9cb", output_key: "true" },
    { from_node: "0f8fad5b-d9cb", to_node: "after", output_key: "completed" },
    { fromNode: "start", toNode: "elsewhere" },
  ],
}

const paths = (list: Completion[], where?: Completion["in"]) => list.filter((c) => !where || c.in === where).map((c) => c.path)

test("a node sees what runs before it, as placeholders write it, and nothing that runs later or elsewhere", () => {
  const list = paths(completionsFor(definition, "fetch", kinds))
  expect(list).toEqual(expect.arrayContaining(["start.outputs", "start.outputs.order", "start.outputs.order.id", "start.outputs.user_id", "steps.start.order", "input.order", "trigger", "trigger.user_id", "trigger.order.id", "execution.id"]))
  expect(list.some((p) => /fetch|inner|after|elsewhere/.test(p))).toBe(false)
})

test("the elements of a list are read by number, and what stands for anything is left out", () => {
  const list = paths(completionsFor(definition, "after", kinds), "placeholder")
  expect(list).toEqual(expect.arrayContaining(["fetch.outputs.status_code", "fetch.outputs.items[0].id", "total", "each.outputs.results"]))
  expect(list.some((p) => p.includes("*"))).toBe(false)
})

test("inside a body there are the item, the index and the variable; the loop does not see its body, and what comes after sees no item", () => {
  expect(paths(completionsFor(definition, "inner", kinds), "both")).toEqual(expect.arrayContaining(["item", "index", "order_item"]))
  expect(paths(completionsFor(definition, "0f8fad5b-d9cb", kinds)).some((p) => p.startsWith("inner"))).toBe(false)
  expect(paths(completionsFor(definition, "after", kinds))).not.toContain("item")
})

test("what is laid over the input is part of it", () => {
  expect(paths(completionsFor(definition, "inner", kinds), "expression")).toContain("input.limit")
})

test("values of the last run come with their paths, also fields that nobody has declared; large values are only named", () => {
  const last = { node_executions: { start: { output_data: { result: { order: { id: 7, "odd key": [{ sku: "a" }] } } } }, fetch: { output_data: { result: { $blob: "abc", size: 9 } }, input_data: { order: { id: 7 } } } } }
  const list = completionsFor(definition, "after", kinds, last)
  expect(list.find((c) => c.path === "start.outputs.order.id")).toMatchObject({ value: 7, from: "start", type: "integer" })
  expect(list.find((c) => c.path === 'start.outputs.order["odd key"][0].sku')).toMatchObject({ value: "a" })
  expect(list.find((c) => c.path === "fetch.outputs")).not.toHaveProperty("value")
  expect(completionsFor(definition, "fetch", kinds, last).find((c) => c.path === "input.order.id")).toMatchObject({ value: 7, in: "expression" })
})

test("an attached node reads what its agent reads", () => {
  const agent: Definition = { nodes: [{ id: "start", type: "TRIGGER", subtype: "MANUAL" }, { id: "agent", type: "AI_AGENT", subtype: "LLM", attached_nodes: ["tool"] }, { id: "tool", type: "TOOL", subtype: "CODE_TOOL" }], connections: [{ from_node: "start", to_node: "agent" }] }
  expect(paths(completionsFor(agent, "tool", kinds))).toContain("start.outputs")
})

test("a kind is known by its older names, too", () => {
  const older: Definition = { nodes: [{ id: "begin", type: "start" }, { id: "next", type: "ACTION", subtype: "HTTP_REQUEST" }], connections: [{ from_node: "begin", to_node: "next" }] }
  expect(paths(completionsFor(older, "next", kinds))).toEqual(expect.arrayContaining(["begin.outputs.user_id", "trigger.user_id"]))
})

test("a definition that is half written is no reason to fail", () => {
  expect(completionsFor({}, "x", kinds)).toEqual([])
  expect(completionsFor({ nodes: [{ id: "x" }], connections: [{ from_node: "gone", to_node: "x" }, null as never] }, "x", kinds).length).toBeGreaterThan(0)
})

const known: Completion[] = [
  { path: "a.outputs", type: "object", value: { list: [{ id: 5 }], name: "Ada" }, from: "a", in: "placeholder" },
  { path: "input.total", type: "number", value: 120, from: "a", in: "expression" },
]

test("a path that goes deeper than what is listed has its value too; one that is not there has none", () => {
  expect(valueAt(known, "a.outputs.list[0].id")).toEqual({ value: 5, from: "a" })
  expect(valueAt(known, "a.outputs.list.0.id")).toEqual({ value: 5, from: "a" })
  expect(valueAt(known, "a.outputs.gone")).toBeUndefined()
  expect(valueAt(known, "a.outputs.constructor")).toBeUndefined()
  expect(valueAt(known, "a.outputsx")).toBeUndefined()
})

test("the paths of a text are resolved, those in brackets everywhere, bare ones in expressions", () => {
  expect(resolvedIn("Hello {{ a.outputs.name }} and \\{{a.outputs.name}} ${a.outputs.list[0].id}", known, false).map((r) => r.value)).toEqual(["Ada", 5])
  expect(resolvedIn("input.total > 100 && 'input.total' != \"x\"", known, true)).toEqual([{ path: "input.total", value: 120, from: "a" }])
  expect(resolvedIn("input.total > 100", known, false)).toEqual([])
})
