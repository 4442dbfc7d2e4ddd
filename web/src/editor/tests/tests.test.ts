import { describe, expect, test } from "vitest"
import type { Schemas } from "@/api/client"
import { readDefinition } from "@/graph/definition"
import { readText, rewrite } from "../rewrite"
import { addTest, freeName, removeTest, setTest, testsOf } from "./file"
import { testOf, type Tried } from "./keep"

const text = "# mine\nnodes:\n  - {id: a, type: CALL, subtype: EMPTY} # first\n  - {id: b, type: ACTION, subtype: HTTP_REQUEST}\n  - {id: c, type: CALL, subtype: EMPTY}\nconnections:\n  - {from_node: a, to_node: b}\n  - {from_node: b, to_node: c}\n"
const value = readText(text).value

describe("the tests of a file", () => {
  test("are added behind the rest, and what the author wrote stays", () => {
    const next = rewrite(text, addTest(value, { name: "works", node: "a", expect: { outputs: { a: { result: { x: 1 } } } } }))
    expect(next.startsWith(text)).toBe(true)
    expect(testsOf(readText(next).value)).toMatchObject([{ name: "works", node: "a", index: 0 }])
    const renamed = rewrite(next, setTest(readText(next).value, 0, { name: "other", node: "a" }))
    expect(testsOf(readText(renamed).value)).toMatchObject([{ name: "other" }])
    expect(rewrite(renamed, removeTest(readText(renamed).value, 0))).toBe(text)
  })
  test("have names of their own", () => {
    const one = addTest(value, { name: "works" })
    expect(freeName(one, "works")).toBe("works (2)")
    expect(freeName(one, "fails")).toBe("fails")
  })
})

describe("a run that is kept", () => {
  const definition = readDefinition(value)
  const record = (effect: string, output: Record<string, unknown>, more = {}) => ({ effect, status: "completed", output_data: output, ...more }) as unknown as Schemas["NodeExecution"]
  const run = (more: Partial<Tried>): Tried => ({ how: "node", node: "a", pinned: {}, status: "SUCCESS", records: { a: record("pure", { result: { x: 1 } }) }, ...more })

  test("expects what the node put out", () => {
    expect(testOf(definition, run({}))).toEqual({ test: { node: "a", expect: { outputs: { a: { result: { x: 1 } } } } } })
  })
  test("pins what the world answered, and expects what was computed last", () => {
    const records = { a: record("pure", { result: 1 }), b: record("once", { result: { status: 200 } }), c: record("pure", { result: 3 }) }
    expect(testOf(definition, run({ how: "from", records }))).toEqual({ test: { from: "a", pinned: { b: { result: { status: 200 } } }, expect: { outputs: { a: { result: 1 }, c: { result: 3 } } } } })
  })
  test("expects the error that it ended with", () => {
    expect(testOf(definition, run({ status: "ERROR", error: "code_error", records: {}, pinned: { b: { result: 1 } } }))).toEqual({ test: { node: "a", pinned: { b: { result: 1 } }, expect: { error_code: "code_error" } } })
  })
  test("is refused when it has effects, has not ended, or is too large", () => {
    expect(testOf(definition, run({ node: "b", records: { b: record("once", { result: 1 }) } }))).toEqual({ refusal: "effects" })
    expect(testOf(definition, run({ status: "RUNNING" }))).toEqual({ refusal: "running" })
    expect(testOf(definition, run({ records: { a: record("pure", { result: { $blob: "x", size: 1 } }) } }))).toEqual({ refusal: "large" })
  })
})
