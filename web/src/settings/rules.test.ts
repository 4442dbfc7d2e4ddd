import { expect, test } from "vitest"
import { argumentsOf, draftOf, type Rule, ruleOf } from "./rules"

const schema = { type: "object", properties: { path: { type: "string" }, size: { type: ["integer", "null"] }, force: { type: "boolean" }, any: {} } }

test("a rule is the same after it was edited", () => {
  const rules: Rule[] = [
    { argument: "path", policy: "read_only", under: "/srv/docs" },
    { argument: "path", policy: "never", pattern: ".*\\.conf" },
    { argument: "path", policy: "ask", equals: "7" },
    { argument: "size", policy: "ask", equals: 7 },
    { argument: "force", policy: "never", equals: true },
    { argument: "force", policy: "read_only", absent: true },
  ]
  expect(rules.map((r) => ruleOf(draftOf(r), schema))).toEqual(rules)
})

test("a value that its argument cannot hold is left to the server", () => {
  expect(ruleOf({ argument: "size", test: "equals", value: "many", policy: "ask" }, schema)).toEqual({ argument: "size", policy: "ask", equals: "many" })
  expect(ruleOf({ argument: "any", test: "equals", value: "1", policy: "ask" }, schema)).toEqual({ argument: "any", policy: "ask", equals: "1" })
})

test("rules are about the arguments that a tool declares", () => {
  expect(argumentsOf(schema)).toEqual(["path", "size", "force", "any"])
  expect(argumentsOf(undefined)).toEqual([])
})
