import { stringify } from "yaml"
import type { Schemas } from "@/api/client"

export type Definition = Schemas["Workflow"]

const kept = ["name", "description", "version", "tags", "settings", "icon_url"] as const

function empty(value: unknown): boolean {
  return value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0) || (typeof value === "object" && Object.keys(value).length === 0)
}

// Nodes come with every field; a file has those that say something.
function short(record: unknown): unknown {
  if (typeof record !== "object" || record === null) return record
  return Object.fromEntries(Object.entries(record).filter(([, value]) => !empty(value)))
}

/** fileOf is the definition as a file has it: without what only this installation knows, such as its statistics. */
export function fileOf(d: Definition): Record<string, unknown> {
  const metadata = Object.fromEntries(kept.map((key) => [key, d.metadata[key]]).filter(([, value]) => !empty(value)))
  const file: Record<string, unknown> = { metadata, triggers: d.triggers, nodes: (d.nodes ?? []).map(short), connections: (d.connections ?? []).map(short), notes: d.notes, tests: d.tests }
  return short(file) as Record<string, unknown>
}

/** yamlOf is the text of a definition: as its author wrote it, if that was kept, else written from the definition. */
export function yamlOf(d: Definition): string {
  if (d.source && d.source_format !== "json") return d.source
  return stringify(fileOf(d), { lineWidth: 140 })
}

/** jsonOf is the same as JSON. */
export function jsonOf(d: Definition): string {
  if (d.source && d.source_format === "json") return d.source
  return JSON.stringify(fileOf(d), null, 2) + "\n"
}
