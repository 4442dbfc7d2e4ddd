import { isMap, parseDocument, stringify, visit } from "yaml"
import { yamlSaying } from "@/parts/syntax"
import { hasPlaceholder, type Values } from "./schema"

/** withKey sets or, with undefined, removes a key. The others stay where they are; a new one comes last. */
export function withKey<T extends object>(values: T, key: string, value: unknown): T {
  const out: Values = {}
  let found = false
  for (const [k, v] of Object.entries(values)) {
    if (k !== key) out[k] = v
    else {
      found = true
      if (value !== undefined) out[k] = value
    }
  }
  if (!found && value !== undefined) out[key] = value
  return out as T
}

/** withRows makes an object of rows, in their order; undefined when two have the same key. */
export function withRows(rows: { key: string; value: unknown }[]): Values | undefined {
  const out: Values = {}
  for (const { key, value } of rows) {
    if (Object.hasOwn(out, key)) return undefined
    Object.defineProperty(out, key, { value, enumerable: true, writable: true, configurable: true })
  }
  return out
}

export const withItem = (list: unknown[], at: number, value: unknown) => list.map((v, i) => (i === at ? value : v))
export const withoutItem = (list: unknown[], at: number) => list.filter((_, i) => i !== at)

export function movedItem<T>(list: T[], from: number, to: number): T[] {
  const out = [...list]
  const [item] = out.splice(from, 1)
  out.splice(to, 0, item as T)
  return out
}

/** Written is a value that was read from text, or why the text is none. */
export type Written = { value: unknown; problem?: undefined } | { problem: "placeholder" | "syntax"; detail: string; line?: number; column?: number }

/**
 * readLoose reads a value as people type it: YAML, where a text that begins with a placeholder is a text, though YAML would see a map in it.
 * Nothing means that nothing is set.
 */
export function readLoose(text: string): Written {
  const trimmed = text.trim()
  if (trimmed === "") return { value: undefined }
  if (/^(\{\{|\$\{)/.test(trimmed) && !trimmed.includes("\n")) return { value: trimmed }
  const doc = parseDocument(text, { prettyErrors: true, uniqueKeys: true })
  const error = doc.errors[0]
  if (error) {
    const at = error.linePos?.[0]
    return { problem: hasPlaceholder(text) ? "placeholder" : "syntax", detail: yamlSaying(error), line: at?.line, column: at?.col }
  }
  let bare = false
  visit(doc, {
    Pair(_, pair) {
      if (isMap(pair.key)) bare = true
    },
  })
  if (bare) return { problem: "placeholder", detail: "" }
  return { value: doc.toJS() as unknown }
}

/** writeLoose writes a value so that readLoose gives it back. */
export function writeLoose(value: unknown): string {
  if (value === undefined) return ""
  if (typeof value === "string") {
    const back = value.includes("\n") || value.trim() !== value ? undefined : readLoose(value)
    if (back && back.problem === undefined && back.value === value) return value
  }
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false }).replace(/\n$/, "")
}

/** short writes a value in a few characters, for a list of suggestions. */
export function short(value: unknown, limit = 48): string {
  const text = typeof value === "string" ? JSON.stringify(value) : JSON.stringify(value ?? null)
  return text.length > limit ? text.slice(0, limit - 1) + "…" : text
}
