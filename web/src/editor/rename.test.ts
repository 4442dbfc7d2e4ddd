import { expect, test } from "vitest"
import { rename } from "./rename"

const file = {
  nodes: [
    { id: "fetch", type: "ACTION" },
    { id: "agent", attached_nodes: ["fetch", "tool"], configurations: { prompt: "Say {{fetch.outputs.x}}, {{ fetch.y }} and ${fetch.z}; \\{{fetch.x}} and {{prefetch.x}} and fetching", list: [{ a: "{{{fetch[\"odd key\"]}}}" }] } },
    { id: "check", configurations: { condition_expression: "steps.fetch.total > 1 && steps['fetch'].ok && input.steps.fetch", code: "return inputs.fetch" } },
    { id: "same", configurations: { n: 1 } },
  ],
  connections: [{ from_node: "fetch", to_node: "agent", conversion_function: "x => steps.fetch.x" }, { fromNode: "agent", toNode: "check" }],
  triggers: ["fetch"],
}

test("another id is told to everything that names the node", () => {
  const { value, left, ...counts } = rename(file, "fetch", "load")
  const v = value as typeof file
  expect(v.nodes[0]!.id).toBe("load")
  expect(v.nodes[1]).toMatchObject({ attached_nodes: ["load", "tool"], configurations: { prompt: "Say {{load.outputs.x}}, {{ load.y }} and ${load.z}; \\{{fetch.x}} and {{prefetch.x}} and fetching", list: [{ a: '{{{load["odd key"]}}}' }] } })
  expect(v.nodes[2]!.configurations).toEqual({ condition_expression: "steps.load.total > 1 && steps['load'].ok && input.steps.fetch", code: "return inputs.fetch" })
  expect(v.nodes[3]).toBe(file.nodes[3])
  expect(v.connections).toEqual([{ from_node: "load", to_node: "agent", conversion_function: "x => steps.load.x" }, { fromNode: "agent", toNode: "check" }])
  expect(v.triggers).toEqual(["load"])
  expect(counts).toEqual({ connections: 1, placeholders: 7, lists: 2 })
  // What may mean something else is left, and told.
  expect(left).toEqual([{ of: "agent", field: "configurations.prompt" }, { of: "check", field: "configurations.condition_expression" }, { of: "check", field: "configurations.code" }])
})

test("an id with signs is taken as it is", () => {
  const v = rename({ nodes: [{ id: "a.b*", configurations: { t: "{{a.b*.x}} {{aXb.x}}" } }] }, "a.b*", "c").value as typeof file
  expect(v.nodes[0]).toEqual({ id: "c", configurations: { t: "{{c.x}} {{aXb.x}}" } })
})

test("a node's other id is in the tests of the file too", () => {
  const tests = [{ name: "one", node: "a", pinned: { b: { result: 1 } }, expect: { outputs: { a: { result: 2 } } } }, { name: "two", from: "b" }]
  const v = rename({ nodes: [{ id: "a" }, { id: "b" }], tests }, "a", "c").value as { tests: typeof tests }
  expect(v.tests[0]).toEqual({ name: "one", node: "c", pinned: { b: { result: 1 } }, expect: { outputs: { c: { result: 2 } } } })
  expect(v.tests[1]).toBe(tests[1])
})
