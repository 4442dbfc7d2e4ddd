import { expect, test } from "vitest"
import { idOf, isOther } from "./import_files"

const own = "metadata: {id: shop, name: shop}\nnodes:\n  - {id: start, type: TRIGGER, subtype: MANUAL}\nconnections:\n  - {from_node: start, to_node: start}\n"

test("a definition of this product is not taken for a file of another system", async () => {
  expect(await isOther(own)).toBe(false)
  expect(await isOther('{"metadata": {"name": "x"}, "nodes": []}')).toBe(false)
  expect(await idOf(own)).toBe("shop")
})

test.each([
  ["n8n", '{"name": "x", "nodes": [{"type": "n8n-nodes-base.set"}], "connections": {}}'],
  ["several of n8n", '[{"nodes": []}]'],
  ["Dify", "kind: app\napp: {mode: workflow}\n"],
  ["steps", '{"metadata": {}, "steps": []}'],
  ["an older file", '{"metadata": {}, "nodes": [{"type": "TRIGGER_NODE"}], "connections": []}'],
  ["an older file with parameters", '{"metadata": {}, "nodes": [{"type": "TRIGGER", "parameters": {}}]}'],
  ["an older file with other ends", '{"metadata": {}, "nodes": [], "connections": [{"source": "a"}]}'],
])("a file of %s is", async (_, text) => expect(await isOther(text)).toBe(true))

test.each(["", "just words", "a: [", "3"])("%j is a file of nobody, and the server says what is wrong with it", async (text) => expect(await isOther(text)).toBe(false))
