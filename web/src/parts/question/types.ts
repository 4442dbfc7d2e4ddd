import type { Schemas } from "@/api/client"

// The form of a question as the server draws it for every page and medium. Nothing here decides what is asked: it is shown as it comes.

export type Kind = "line" | "area" | "number" | "email" | "date" | "yes_no" | "tick" | "one" | "some" | "score" | "file" | "json"

export type Choice = { value: string; label: string; raw: unknown; outcome?: "confirmed" | "rejected" | "none" }

export type Entry = {
  group?: string
  name?: string
  kind: Kind
  label?: string
  about?: string
  limits?: string
  required?: boolean
  choices?: Choice[] | null
  open?: boolean
  min?: number
  max?: number
  min_length?: number
  max_length?: number
  whole?: boolean
  default?: unknown
  known?: boolean
  decides?: boolean
  only_with?: string
  list?: boolean
  anything?: boolean
  words?: Record<string, boolean>
}

export type Form = { language: string; title?: string; description?: string; lines?: string[] | null; edit_lines?: number[] | null; entries: Entry[] | null }

/** Question is a question with its form, its replies and its messages. */
export type Question = Omit<Schemas["InteractionDetail"], "request_data" | "form"> & { request_data: Request; form?: Form }

/** Edit is a value that was edited in a fork, beside what it was. */
export type Edit = { name: string; original?: unknown; edited?: unknown; original_part?: string; edited_part?: string }

/** Change is how a tool differs from what was accepted. */
export type Change = { tool: string; kind: string; before?: unknown; after?: unknown; summary: string }

/** Request is what a question is about, as far as it is shown besides the form. */
export type Request = {
  title?: string
  description?: string
  content?: unknown
  arguments?: unknown
  risk?: string
  reason?: string
  warning?: string
  tool?: string
  server_id?: string
  budget?: string
  fork?: { edits?: Edit[] | null; earlier?: { edits?: Edit[] | null }[] | null }
  allow_delegation?: boolean
  access?: string
  escalation?: { after_seconds: number; to: string[] }
  min_rejections?: number
  timeout_action?: "fail" | "continue" | "default_response"
  timeout_default_response?: unknown
  [other: string]: unknown
}

/** pathOf is where the value of an entry stands in an answer, as problems name it. */
export const pathOf = (e: Entry) => (e.group ? `${e.group}.${e.name}` : (e.name ?? ""))

/** decisionOf is the entry that the whole question is about, if each of its choices is a button. What is for comparing is not. */
export const decisionOf = (form: Form) => (form.entries ?? []).find((e) => e.decides && e.name !== "selected_values")

/** drawnOf are the entries that are drawn as fields. */
export const drawnOf = (form: Form) => (form.entries ?? []).filter((e) => e !== decisionOf(form))
