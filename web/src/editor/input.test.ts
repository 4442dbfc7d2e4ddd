import { expect, test } from "vitest"
import type { Schemas } from "@/api/client"
import { readDefinition } from "@/graph/definition"
import type { Kinds } from "@/graph/keys"
import { fieldAt, inputOf, withPins } from "./input"

const kind = (name: string, output_keys: string[], more: object = {}) => [name, { name, output_keys, ...more } as unknown as Schemas["NodeKind"]] as const
const kinds: Kinds = new Map([kind("TRIGGER.MANUAL", ["result"]), kind("AI_AGENT.LLM", ["result", "structured_data"], { examples: [{ output: { structured_data: { sum: 7 } } }] }), kind("CALL.EMPTY", ["result"]), kind("FLOW.IF", ["true", "false"])])
const file = {
  nodes: [
    { id: "start", type: "TRIGGER", subtype: "MANUAL", configurations: { input_schema: { properties: { who: {} } } } },
    { id: "ask", type: "AI_AGENT", subtype: "LLM" },
    { id: "if", type: "FLOW", subtype: "IF" },
    { id: "one", type: "CALL", subtype: "EMPTY" },
    { id: "two", type: "CALL", subtype: "EMPTY", input_params: { own: 1 } },
    { id: "three", type: "CALL", subtype: "EMPTY" },
  ],
  connections: [
    { from_node: "start", to_node: "one" }, { from_node: "ask", to_node: "two", output_key: "structured_data" }, { from_node: "start", to_node: "three", conversion_function: "x" }, { from_node: "if", to_node: "ask", output_key: "true" },
  ],
}
const definition = readDefinition(file)
const node = (id: string) => definition.nodes.find((n) => n.id === id)!
const field = (id: string, ...path: (string | number)[]) => fieldAt(definition, node(id), file.nodes.find((n) => n.id === id)!, kinds, { value: {}, origin: "last" }, path)

test("a field is written as settings read it", () => {
  expect(field("one", "people", 0, "odd key")).toEqual({ placeholder: '{{start.outputs.people[0]["odd key"]}}', expression: 'input.people[0]["odd key"]' })
  expect(field("two", "sum")).toEqual({ placeholder: "{{ask.outputs.structured_data.sum}}", expression: "input.sum" })
  expect(field("ask", "x")).toEqual({ placeholder: "{{if.outputs.x}}", expression: "input.x" })
})

test("what no placeholder can read is only written in expressions", () => {
  expect(field("two", "own")).toEqual({ expression: "input.own" })
  expect(field("three", "x")).toEqual({ expression: "input.x" })
})

test("what comes in is that of the last run, else what is pinned, else an example", () => {
  const last = { node_executions: { one: { input_data: { real: 1 } }, start: { output_data: { result: { ran: 1 } } } } } as unknown as Schemas["Execution"]
  expect(inputOf(definition, node("one"), kinds, last, {})).toEqual({ value: { real: 1 }, origin: "last" })
  const pins = { '["start","result"]': '{"who": "Ada"}' }
  expect(inputOf(definition, node("one"), kinds, undefined, pins)).toEqual({ value: { who: "Ada" }, origin: "pinned" })
  expect(inputOf(definition, node("two"), kinds, undefined, {})).toEqual({ value: { sum: 7 }, origin: "example" })
  expect(inputOf(definition, node("one"), kinds, undefined, { '["start","result"]': "{" })).toBeUndefined()
  expect(withPins(undefined, pins)).toEqual({ node_executions: { start: { output_data: { result: { who: "Ada" } } } } })
  expect(withPins(undefined, {})).toBeUndefined()
})
