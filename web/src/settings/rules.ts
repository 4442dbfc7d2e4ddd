import { useTranslation } from "react-i18next"
import type { Schemas } from "@/api/client"
import { valuesOf } from "@/api/values"
import { plain } from "@/parts/plain"

export type Rule = Schemas["MCPRule"]
export type Policy = NonNullable<Rule["policy"]>
export const policies = valuesOf<Policy>({ read_only: 1, ask: 1, never: 1 })

/** The ways in which a rule looks at an argument. */
export const tests = ["equals", "under", "pattern", "absent"] as const
export type Test = (typeof tests)[number]

/** testOf is the way in which a rule looks at its argument. */
export const testOf = (r: Rule): Test => (r.absent ? "absent" : r.pattern !== undefined ? "pattern" : r.under !== undefined ? "under" : "equals")

/** useRuleText says a rule in a sentence. */
export function useRuleText(): (r: Rule) => string {
  const { t } = useTranslation("settings")
  return (r) => {
    const test = testOf(r)
    const value = test === "equals" ? JSON.stringify(r.equals) : test === "absent" ? "" : r[test]
    return t(`rules.says.${test}`, { argument: plain(r.argument), value: plain(String(value ?? "")), policy: t(`tools.policy.${r.policy}`) })
  }
}

/** Draft is a rule while it is written: its value is what stands in the field. */
export type Draft = { argument: string; test: Test; value: string; policy: Policy }

export function draftOf(r: Rule): Draft {
  const test = testOf(r)
  const value = test === "equals" ? (typeof r.equals === "string" ? r.equals : JSON.stringify(r.equals ?? "")) : test === "absent" ? "" : (r[test] ?? "")
  return { argument: r.argument, test, value, policy: r.policy }
}

type Schema = { properties?: Record<string, { type?: string | string[] }> }

/** argumentsOf are the arguments that a tool declares; rules are about these alone. */
export const argumentsOf = (schema: unknown): string[] => Object.keys((schema as Schema | undefined)?.properties ?? {})

/** typeOf is the type of an argument as far as it decides how a value is written. */
export function typeOf(schema: unknown, argument: string): "text" | "number" | "boolean" {
  const type = [(schema as Schema | undefined)?.properties?.[argument]?.type ?? "string"].flat().find((one) => one !== "null")
  return type === "integer" || type === "number" ? "number" : type === "boolean" ? "boolean" : "text"
}

/** ruleOf is the rule that a draft means. A value that is not what its argument holds goes as text: the server says what is wrong with it. */
export function ruleOf(d: Draft, schema: unknown): Rule {
  const { argument, policy } = d
  switch (d.test) {
    case "absent":
      return { argument, policy, absent: true }
    case "under":
      return { argument, policy, under: d.value }
    case "pattern":
      return { argument, policy, pattern: d.value }
  }
  const type = typeOf(schema, argument)
  if (type === "number" && d.value.trim() !== "" && Number.isFinite(Number(d.value))) return { argument, policy, equals: Number(d.value) }
  if (type === "boolean" && (d.value === "true" || d.value === "false")) return { argument, policy, equals: d.value === "true" }
  return { argument, policy, equals: d.value }
}
