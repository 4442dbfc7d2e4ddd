import type { Schemas } from "@/api/client"
import { language } from "@/words"
import type { CodeLanguage } from "@/parts/code"

export type NodeKind = Schemas["NodeKind"]
export type Values = Record<string, unknown>

/** FieldSchema is what GET /node-kinds says of a field: JSON Schema, and what it has no words for. */
export type FieldSchema = {
  type?: string | string[]
  properties?: Record<string, FieldSchema | true>
  items?: FieldSchema | true
  additionalProperties?: FieldSchema | boolean
  enum?: unknown[]
  default?: unknown
  minimum?: number
  maximum?: number
  required?: string[]
  description?: string
  title?: string
  "x-description-zh"?: string
  /** The sort of records that it names. */
  "x-names"?: string
  /** The values of other fields beside which it is looked at. */
  "x-with"?: Record<string, string[]>
  /** Of an object: groups of fields, one of each of which must be set. */
  "x-need"?: string[][]
  "x-older-names"?: string[]
  "x-older-values"?: string[]
  /** What a text is: expression, sql or code. */
  "x-takes"?: string | string[]
  /** A short name of the field in Chinese. */
  "x-title-zh"?: string
  /** The value cannot be a placeholder. */
  "x-fixed"?: boolean
}

// The form of a kind shows it among its own fields, where the kind opens a credential.
const shownByKind = "credential_id"

/** sharedFields are the fields of common_fields that NodeSettings shows. */
export function sharedFields(common: FieldSchema): Record<string, FieldSchema> {
  return Object.fromEntries(Object.entries(common.properties ?? {}).flatMap(([name, s]) => (name === shownByKind ? [] : [[name, asSchema(s)]])))
}

/** sharedNames are the names that files have for these fields, older ones too. */
export const sharedNames = (common: FieldSchema): string[] => Object.entries(sharedFields(common)).flatMap(([name, s]) => [name, ...(s["x-older-names"] ?? [])])

export const asSchema = (s: FieldSchema | true | undefined): FieldSchema => (s === true || s === undefined ? {} : s)

/** meaningOf is what a field is for, in the language of the reader. */
export function meaningOf(s: FieldSchema): string {
  const zh = language() === "zh" ? s["x-description-zh"] : undefined
  if (zh && zh === `${s["x-title-zh"]}。`) return "" // the title says it all
  return zh || s.description || ""
}

/** titleOf is what a field is called, in the language of the reader. */
export function titleOf(name: string, s: FieldSchema): string {
  return (language() === "zh" && s["x-title-zh"]) || labelOf(name)
}

/** typesOf lists the JSON types that a value may have, without null; empty means any. */
export function typesOf(s: FieldSchema): string[] {
  const types = s.type === undefined ? [] : Array.isArray(s.type) ? s.type : [s.type]
  return types.filter((t) => t !== "null")
}

export const takesNull = (s: FieldSchema) => Array.isArray(s.type) && s.type.includes("null")

/** offered lists the values to choose from; those of older files are not among them unless one is set. */
export function offered(s: FieldSchema, value?: unknown): string[] {
  const older = s["x-older-values"] ?? []
  return (s.enum ?? []).map(String).filter((v) => !older.includes(v) || v === value)
}

/** labelOf makes words of the name of a field: condition_expression is "Condition expression". */
export function labelOf(name: string): string {
  const words = name
    .replace(/_/g, " ")
    .replace(/\b(id|ids|url|urls|sql|json|api|llm|mcp|http|imap|html|csv|xml|ai|tts|ttl)\b/gi, (w) => (/s$/i.test(w) && w.length > 3 ? w.slice(0, -1).toUpperCase() + "s" : w.toUpperCase()))
    .replace(/\bsha256\b/i, "SHA-256")
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** singleOf is the label of one element of a list: branches are made of a "branch". */
export function singleOf(name: string): string {
  const single = /ies$/.test(name) ? name.replace(/ies$/, "y") : /(ch|sh|ss|x)es$/.test(name) ? name.slice(0, -2) : name.replace(/(?<!s)s$/, "")
  return labelOf(single).replace(/^[A-Z](?![A-Z])/, (c) => c.toLowerCase())
}

/** writtenName is the name under which an object has a field: its own, or one of older files. */
export function writtenName(values: Values, name: string, s: FieldSchema): string {
  if (name in values) return name
  return s["x-older-names"]?.find((n) => n in values) ?? name
}

/** applies says whether a field is looked at beside the others: a sort_config only when the operation is sort. */
export function applies(s: FieldSchema, values: Values, siblings: Record<string, FieldSchema | true>): boolean {
  return Object.entries(s["x-with"] ?? {}).every(([name, wanted]) => {
    const other = asSchema(siblings[name])
    const value = values[writtenName(values, name, other)] ?? other.default
    return (typeof value === "string" && hasPlaceholder(value)) || wanted.includes(String(value ?? (typesOf(other).includes("boolean") ? false : "")))
  })
}

export const hasPlaceholder = (text: string) => /\{\{|\$\{/.test(text)

/** Editor is what a value is edited with. */
export type Editor = "choice" | "flag" | "number" | "text" | "expression" | "code" | "names" | "credential" | "tags" | "objects" | "list" | "map" | "object" | "data"

const long = /(^|_)(prompt|propose|question|template|content|description|greeting|thank_you|message|stdin|body|text)$/

const takes = (s: FieldSchema, what: string) => [s["x-takes"] ?? []].flat().includes(what)

/** editorOf chooses what a field is edited with, by its schema and its name. */
export function editorOf(name: string, s: FieldSchema): Editor {
  const types = typesOf(s)
  const only = types.length === 1 ? types[0] : undefined
  if (/(^|_)credential_id$/.test(name)) return "credential"
  if (s.enum && (only === "string" || types.length === 0)) return "choice"
  if (s["x-names"] && (types.length === 0 || only === "array")) return "tags"
  if (s["x-names"] && only === "string") return "names"
  if (takes(s, "expression")) return "expression"
  if (takes(s, "code") || takes(s, "sql")) return "code"
  if (only === "boolean") return "flag"
  if (only === "integer" || only === "number") return "number"
  if (only === "array" || (types.length === 2 && types.includes("array") && types.includes("string"))) return listEditor(s)
  if (only === "object") return s.properties ? "object" : /schema$/.test(name) ? "data" : "map"
  if (types.includes("string") && !types.includes("object") && !types.includes("array")) return "text"
  return "data"
}

function listEditor(s: FieldSchema): Editor {
  if (s.items === undefined) return typesOf(s).includes("string") ? "tags" : "data"
  const items = asSchema(s.items)
  const types = typesOf(items)
  if (items.properties) return "objects"
  if (types.length > 0 && types.every((t) => t === "string" || t === "integer" || t === "number" || t === "boolean")) return "tags"
  return "data"
}

/** textLanguage is the language in which a text is written, and whether it wants more than a line. */
export function textLanguage(name: string, s: FieldSchema, value: string, siblings: Values): { language: CodeLanguage; lines: number } {
  switch (editorOf(name, s)) {
    case "expression":
      return { language: "expression", lines: 1 }
    case "code":
      return takes(s, "sql") ? { language: "sql", lines: 4 } : { language: codeLanguage(value, siblings), lines: 8 }
  }
  if (/prompt$|^propose$|^question$|^markdown$/.test(name)) return { language: "markdown", lines: name === "question" ? 2 : 4 }
  return { language: "plain", lines: value.includes("\n") ? 4 : long.test(name) ? 2 : 1 }
}

function codeLanguage(code: string, siblings: Values): CodeLanguage {
  const said = String(siblings.language ?? siblings.interpreter ?? "").toLowerCase()
  if (/^(js|javascript|node)/.test(said)) return "javascript"
  if (/^py/.test(said)) return "python"
  if (said) return "plain"
  return /=>|\bfunction\b/.test(code) ? "javascript" : "python"
}

/** fits says whether the editor of a field can show a value; what it cannot show is edited as YAML. */
export function fits(editor: Editor, s: FieldSchema, value: unknown): boolean {
  if (value === undefined) return true
  const text = typeof value === "string"
  switch (editor) {
    case "choice":
      return text && (s.enum ?? []).includes(value)
    case "flag":
      return typeof value === "boolean"
    case "number":
      return typeof value === "number" || text
    case "text":
    case "expression":
      return text || ((typeof value === "number" || typeof value === "boolean") && typesOf(s).length > 1)
    case "code":
    case "names":
    case "credential":
      return text
    case "tags":
      return text ? !typesOf(s).every((t) => t === "array") || typesOf(s).length === 0 : Array.isArray(value) && value.every((v) => typeof v === "string" || typeof v === "number" || typeof v === "boolean")
    case "objects":
      return Array.isArray(value) && value.every((v) => isObject(v) || (typeof v === "string" && typesOf(asSchema(s.items)).length === 0))
    case "list":
      return Array.isArray(value)
    case "map":
    case "object":
      return isObject(value)
    case "data":
      return true
  }
}

export const isObject = (v: unknown): v is Values => typeof v === "object" && v !== null && !Array.isArray(v)
