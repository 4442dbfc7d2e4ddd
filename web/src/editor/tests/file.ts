import { isFields, listOf, textOf } from "@/graph/definition"
import type { Plain } from "../rewrite"

/** FileTest is a test as the file has it. */
export type FileTest = { name: string; node?: string; from?: string; fields: Record<string, unknown>; index: number }

const file = (v: Plain): Record<string, unknown> => (isFields(v) ? v : {})

/** testsOf are the tests in a file, in their order. What is not a test is passed over; the problems of the file tell it. */
export function testsOf(v: Plain): FileTest[] {
  return listOf(file(v).tests).flatMap((t, index): FileTest[] => (isFields(t) ? [{ name: textOf(t.name), node: textOf(t.node) || undefined, from: textOf(t.from) || undefined, fields: t, index }] : []))
}

/** freeName is a name that no test has yet. */
export function freeName(v: Plain, wanted: string): string {
  const taken = new Set(testsOf(v).map((t) => t.name))
  for (let i = 1; ; i++) {
    const name = i === 1 ? wanted : `${wanted} (${i})`
    if (!taken.has(name)) return name
  }
}

export function addTest(v: Plain, test: Record<string, unknown>): Plain {
  return { ...file(v), tests: [...listOf(file(v).tests), test] }
}

export function setTest(v: Plain, index: number, test: Record<string, unknown>): Plain {
  return { ...file(v), tests: listOf(file(v).tests).map((t, i) => (i === index ? test : t)) }
}

/** removeTest takes a test out; without any the file has no list of them. */
export function removeTest(v: Plain, index: number): Plain {
  const { tests, ...rest } = file(v)
  const left = listOf(tests).filter((_, i) => i !== index)
  return left.length ? { ...file(v), tests: left } : rest
}
