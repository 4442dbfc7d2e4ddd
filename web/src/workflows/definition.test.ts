import { parse } from "yaml"
import { expect, test } from "vitest"
import { type Definition, fileOf, jsonOf, yamlOf } from "./definition"
import { valueAt } from "./paths"

const definition = {
  metadata: { id: "shop", name: "Shop", description: "", tags: ["a"], version: "1.0", statistics: { total_runs: 3 }, revision: 4, settings: {} },
  triggers: ["start"],
  nodes: [
    { id: "start", type: "TRIGGER", subtype: "MANUAL", input_params: {} },
    { id: "ask", type: "TOOL", subtype: "MCP_TOOL", configurations: { server_id: "helpdesk", tools: [1, "two"] } },
  ],
  connections: [{ id: "c1", from_node: "start", to_node: "ask" }],
} as unknown as Definition

test("a file has what an author writes, and nothing that only this installation knows", () => {
  expect(fileOf(definition)).toEqual({
    metadata: { name: "Shop", version: "1.0", tags: ["a"] },
    triggers: ["start"],
    nodes: [{ id: "start", type: "TRIGGER", subtype: "MANUAL" }, definition.nodes![1]],
    connections: definition.connections,
  })
  expect(parse(yamlOf(definition))).toEqual(fileOf(definition))
  expect(JSON.parse(jsonOf(definition))).toEqual(fileOf(definition))
})

test("a text that was kept is given as it is, with its comments", () => {
  const source = "# why\nnodes: []\n"
  expect(yamlOf({ ...definition, source, source_format: "yaml" })).toBe(source)
  expect(yamlOf({ ...definition, source: "{}", source_format: "json" })).not.toBe("{}")
})

test("a path of the server leads to its value", () => {
  expect(valueAt(definition, "nodes[1].configurations.server_id")).toBe("helpdesk")
  expect(valueAt(definition, "nodes[1].configurations.tools[1]")).toBe("two")
  expect(valueAt(definition, "nodes[7].configurations.x")).toBeUndefined()
})
