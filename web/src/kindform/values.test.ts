import { expect, test } from "vitest"
import { placed, wayOf, within } from "./problems"
import { applies, editorOf, fits, labelOf, singleOf, textLanguage, writtenName } from "./schema"
import { movedItem, readLoose, withKey, withRows, writeLoose } from "./values"

test("a key is changed where it stands, added at the end, removed without moving the others", () => {
  const value = { b: 1, a: 2, c: 3 }
  expect(JSON.stringify(withKey(value, "a", 9))).toBe('{"b":1,"a":9,"c":3}')
  expect(JSON.stringify(withKey(value, "z", null))).toBe('{"b":1,"a":2,"c":3,"z":null}')
  expect(JSON.stringify(withKey(value, "b", undefined))).toBe('{"a":2,"c":3}')
  expect(value).toEqual({ b: 1, a: 2, c: 3 })
})

test("rows with the same key are not objects; a key that has a meaning in JavaScript is a key", () => {
  expect(withRows([{ key: "a", value: 1 }, { key: "a", value: 2 }])).toBeUndefined()
  const odd = withRows([{ key: "__proto__", value: 1 }, { key: "constructor", value: 2 }])!
  expect(Object.keys(odd)).toEqual(["__proto__", "constructor"])
})

test.each([
  ["100", 100],
  ['"100"', "100"],
  ["true", true],
  ["hello world", "hello world"],
  ["{{start.outputs.list}}", "{{start.outputs.list}}"],
  ["${start.outputs.list}", "${start.outputs.list}"],
  ["Total: {{x}}", undefined],
  ["{a: 1, b: [2, '{{x}}']}", { a: 1, b: [2, "{{x}}"] }],
  ["", undefined],
  ["null", null],
])("%j is read as people mean it", (text, value) => {
  const read = readLoose(text)
  if (text === "Total: {{x}}") expect(read.problem).toBe("placeholder")
  else expect(read).toEqual({ value })
})

test.each([1, 1.5, -3, true, null, "", "a", " a ", "100", "true", "null", "a: b", "- x", "{{x}}", "{{x}} y", "x {{y}}", "${x}", "# no comment", "line\nline\n", "{{a}}\n{{b}}", [], {}, [1, "2", { a: null }], { "odd key": "{{x}}" }, "é中文", "@at", "0x10", "1e3", "2024-01-01", "~", "yes"])("%j survives being written and read", (value) => {
  expect(readLoose(writeLoose(value))).toEqual({ value })
})

test("a bare placeholder inside YAML is told, with where a mistake is", () => {
  expect(readLoose("a: {{x}}")).toMatchObject({ problem: "placeholder" })
  expect(readLoose("a: 1\nb: [1")).toMatchObject({ problem: "syntax", line: expect.any(Number) as number })
  expect(readLoose("a: 1\na: 2").problem).toBe("syntax")
})

test("problems find their fields", () => {
  const list = placed(
    [
      { path: "nodes[3].configurations.rules[0].field", message: "x" },
      { path: 'configurations.headers["X-Key"]', message: "y" },
      { path: "nodes[3].description", message: "z" },
    ],
    "configurations",
  )
  expect(list.map((p) => p.way)).toEqual([["rules", "0", "field"], ["headers", "X-Key"]])
  expect(within(list, "headers")[0]!.way).toEqual(["X-Key"])
  expect(wayOf("a.b[2].c")).toEqual(["a", "b", "2", "c"])
})

test("older names are edited under the name that the file has", () => {
  expect(writtenName({ condition: "x" }, "condition_expression", { "x-older-names": ["condition"] })).toBe("condition")
  expect(writtenName({}, "condition_expression", { "x-older-names": ["condition"] })).toBe("condition_expression")
})

test("a field applies beside the values it is for, defaults and placeholders included", () => {
  const field = { "x-with": { mode: ["a", "b"] } }
  expect(applies(field, { mode: "a" }, { mode: { type: "string" } })).toBe(true)
  expect(applies(field, { mode: "c" }, { mode: { type: "string" } })).toBe(false)
  expect(applies(field, {}, { mode: { type: "string", default: "b" } })).toBe(true)
  expect(applies(field, { mode: "{{x}}" }, { mode: { type: "string" } })).toBe(true)
  expect(applies({ "x-with": { flag: ["true"] } }, {}, { flag: { type: "boolean" } })).toBe(false)
})

test("editors are chosen by schema and name", () => {
  expect(editorOf("condition_expression", { type: ["string", "number", "boolean"], "x-takes": ["expression"] })).toBe("expression")
  expect(editorOf("anything", { type: "string", "x-takes": "expression" })).toBe("expression")
  // What it holds is said by the server, and not by its name.
  expect(editorOf("condition_expression", { type: "string", "x-takes": ["text"] })).toBe("text")
  expect(editorOf("imap_credential_id", { type: "string" })).toBe("credential")
  expect(editorOf("schema", { type: "object" })).toBe("data")
  expect(editorOf("headers", { type: "object" })).toBe("map")
  expect(editorOf("stop", { type: ["string", "array"] })).toBe("tags")
  expect(editorOf("tools", { type: "array", "x-names": "tool" })).toBe("tags")
  expect(textLanguage("code", { type: "string", "x-takes": ["code"] }, "", { language: "javascript" }).language).toBe("javascript")
  expect(textLanguage("code", { type: "string", "x-takes": ["code"] }, "lambda x: x", {}).language).toBe("python")
  expect(textLanguage("query", { type: "string", "x-takes": ["text"] }, "", {}).language).toBe("plain")
  expect(textLanguage("query", { type: "string", "x-takes": ["sql"] }, "", {}).language).toBe("sql")
})

test("what an editor cannot show is not forced into it", () => {
  expect(fits("choice", { enum: ["a"] }, "{{x}}")).toBe(false)
  expect(fits("flag", { type: "boolean" }, "{{x}}")).toBe(false)
  expect(fits("map", { type: "object" }, "{{x}}")).toBe(false)
  expect(fits("tags", { type: ["null", "array"] }, "{{x}}")).toBe(false)
  expect(fits("tags", { type: ["string", "array"] }, "x")).toBe(true)
  expect(fits("number", { type: "integer" }, "{{x}}")).toBe(true)
})

test("names become words", () => {
  expect(labelOf("condition_expression")).toBe("Condition expression")
  expect(labelOf("profile_id")).toBe("Profile ID")
  expect(labelOf("sha256")).toBe("SHA-256")
  expect(["branches", "cases", "choices", "approval_options", "entries", "sort_fields"].map(singleOf)).toEqual(["branch", "case", "choice", "approval option", "entry", "sort field"])
})

test("an item moves", () => expect(movedItem(["a", "b", "c"], 2, 0)).toEqual(["c", "a", "b"]))
