import type { Schemas } from "@/api/client"
import { type Definition, isFields, type NodeDef } from "@/graph/definition"
import { type Kinds, keyOf, mainKey, outputKeys } from "@/graph/keys"
import { refOf, step } from "@/kindform/completions"
import type { Path } from "@/parts/data_rows"
import type { Field } from "@/parts/field"
import { type Pins, sourcesOf } from "./pins"

type Fields = Record<string, unknown>
type Records = Record<string, Schemas["NodeExecution"]> | undefined

/** Input is what a node is given: as it was in the last run, or as it would be with what is pinned, or with examples of what comes before. */
export type Input = { value: unknown; origin: "last" | "pinned" | "example" }

const recordsOf = (execution: Schemas["Execution"] | undefined) => execution?.node_executions as Records

/** inputOf is the best that is known of what comes in; undefined if nothing is. */
export function inputOf(definition: Definition, node: NodeDef, kinds: Kinds, last: Schemas["Execution"] | undefined, pins: Pins): Input | undefined {
  const real = recordsOf(last)?.[node.id]?.input_data
  if (real !== undefined && real !== null) return { value: real, origin: "last" }
  let value: unknown
  let origin: Input["origin"] | undefined
  for (const s of sourcesOf(definition, node, (n, c) => keyOf(c, outputKeys(n, kinds), kinds.get(n.kind)))) {
    const ran = recordsOf(last)?.[s.node.id]?.output_data?.[s.key]
    const pinned = read(pins[s.id])
    const example = (kinds.get(s.node.kind)?.examples?.[0]?.output as Fields | undefined)?.[s.key]
    const brings = pinned ?? ran ?? example
    if (brings === undefined) continue
    origin = pinned !== undefined ? "pinned" : (origin ?? (ran !== undefined ? "last" : "example"))
    value = isFields(value) && isFields(brings) ? { ...value, ...brings } : brings
  }
  return origin && { value, origin }
}

function read(text: string | undefined): unknown {
  try {
    return text?.trim() ? (JSON.parse(text) as unknown) : undefined
  } catch {
    return undefined
  }
}

/** withPins is the last run with what is pinned in place of what nodes put out: what placeholders would read when the node is tried. */
export function withPins(last: Schemas["Execution"] | undefined, pins: Pins): Schemas["Execution"] | undefined {
  const records: Record<string, { output_data?: Fields }> = { ...recordsOf(last) }
  for (const [id, text] of Object.entries(pins)) {
    const value = read(text)
    if (value === undefined) continue
    const [node, key] = JSON.parse(id) as [string, string]
    records[node] = { ...records[node], output_data: { ...records[node]?.output_data, [key]: value } }
  }
  return Object.keys(records).length ? ({ ...last, node_executions: records } as unknown as Schemas["Execution"]) : last
}

/** fieldAt is how settings of a node write a value of its input. */
export function fieldAt(definition: Definition, node: NodeDef, fields: Fields, kinds: Kinds, input: Input, path: Path): Field | undefined {
  const join = (base: string) => path.reduce<string>((text, s) => step(text, s), base)
  const expression = join("input")
  const top = path[0]
  if (typeof top === "string" && isFields(fields.input_params) && top in fields.input_params) return { expression }
  const sources = definition.connections.filter((c) => c.to === node.id)
  // Of several that bring the same field the later one wins; which one it is, what it put out or declares tells.
  const from = sources.length === 1 ? sources[0] : sources.findLast((c) => declares(definition.nodes.find((n) => n.id === c.from), kinds, top))
  const source = from && definition.nodes.find((n) => n.id === from.from)
  if (!source || from.conversion || !isFields(input.value)) return { expression }
  const kind = kinds.get(source.kind)
  const loops = kind?.body && !kind.body.once
  if (path.length > 0 && (top === "item" || top === "index") && loops) return { expression, placeholder: `{{${join("")}}}` }
  const keys = outputKeys(source, kinds)
  const key = keyOf(from, keys, kind)
  const base = `${refOf({ id: source.id, name: source.name })}.outputs`
  return { expression, placeholder: `{{${join(key !== mainKey(keys, kind) && keys.includes("result") ? step(base, key) : base)}}}` }
}

function declares(node: NodeDef | undefined, kinds: Kinds, name: string | number | undefined): boolean {
  const schema = node?.configurations.input_schema
  const own = isFields(schema) && isFields(schema.properties) ? Object.keys(schema.properties) : []
  return [...own, ...(kinds.get(node?.kind ?? "")?.keys ?? []).flatMap((k) => (k.fields ?? []).map((f) => f.name))].includes(String(name))
}
