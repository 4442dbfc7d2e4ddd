import { Failure, type Schemas } from "@/api/client"
import { parse, raw, written } from "./exact"
import { decisionOf, type Choice, type Entry, type Form, pathOf } from "./types"

/** Filled is what somebody has filled into an entry so far. */
export type Filled = { text?: string; picked?: string[]; other?: string; checked?: boolean; file?: { name: string; content_type: string; base64: string; size: number } }

/** Filling is what was filled in, by the path of the entry. */
export type Filling = Record<string, Filled>

/** Wrong is what is wrong with an answer: by the path of the entry, and what is about none. */
export type Wrong = { at: Record<string, string>; rest: string[] }

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** startOf is what an entry shows before anybody has changed it: its default. */
export function startOf(e: Entry): Filled {
  const v = e.default
  if (v === undefined || v === null) return {}
  switch (e.kind) {
    case "tick":
      return { checked: v === true }
    case "yes_no":
    case "one":
    case "some": {
      const list = Array.isArray(v) ? v : [v]
      return { picked: (e.choices ?? []).filter((c) => list.some((one) => same(one, c.raw))).map((c) => c.value) }
    }
    case "json":
      return { text: written(v) }
    case "file":
      return {}
  }
  const known = (e.choices ?? []).find((c) => same(c.raw, v))
  if (known) return { picked: [known.value] }
  return { text: typeof v === "string" ? v : written(v) }
}

/** NotJSON says that what was typed is not what it has to be, before anything is sent. */
export class NotJSON extends Error {}

const number = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/

// A number goes as it was typed where that is JSON. What is none goes as a text: the server says what is wrong with it.
function readNumber(text: string): unknown {
  if (!number.test(text)) return text
  return /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? raw(text) : Number(text)
}

function readScore(e: Entry, text: string): unknown {
  if (number.test(text)) return readNumber(text)
  if (/^[abcdf]$/i.test(text)) return text.toUpperCase()
  return e.words?.[text.toLowerCase()] ?? text
}

function readJSON(e: Entry, text: string): unknown {
  try {
    return parse(text)
  } catch {
    if (e.anything && !/^[{["]/.test(text)) return text
    throw new NotJSON()
  }
}

function readText(e: Entry, text: string): unknown {
  const typed = text.trim()
  if (typed === "") return undefined
  switch (e.kind) {
    case "area":
      return text
    case "number":
      return readNumber(typed)
    case "score":
      return readScore(e, typed)
    case "json":
      return readJSON(e, typed)
  }
  return typed
}

/** valueOf is the value that an entry adds to the answer; undefined: nothing was filled in. */
export function valueOf(e: Entry, filled: Filled = {}): unknown {
  if (e.kind === "file") {
    if (!filled.file) return undefined
    const { name, content_type, base64 } = filled.file
    return { name, content_type, base64 }
  }
  if (e.kind === "tick") return filled.checked === true
  if (e.open && filled.other?.trim()) return readText(e, filled.other)
  if (!e.choices?.length) return readText(e, filled.text ?? "")
  const chosen = e.choices.filter((c) => filled.picked?.includes(c.value)).map((c) => c.raw)
  if (e.kind === "some") return chosen.length > 0 || e.list ? chosen : undefined
  if (chosen.length === 0) return undefined
  return e.list ? chosen : chosen[0]
}

/**
 * answerOf puts an answer together of what was filled in and of the button that was pressed. It has the keys of the form and no others. What a step
 * knows already goes along with what somebody gives; by itself it is not an answer.
 */
export function answerOf(form: Form, filling: Filling, pressed: Choice | undefined, words: { required: string; notJSON: string }, param: boolean): { answer: unknown; wrong: Wrong } {
  const wrong: Wrong = { at: {}, rest: [] }
  const values = new Map<Entry, unknown>()
  const decision = decisionOf(form)
  for (const e of form.entries ?? []) {
    if (e === decision) {
      values.set(e, pressed?.raw)
      continue
    }
    try {
      values.set(e, valueOf(e, filling[pathOf(e)] ?? startOf(e)))
    } catch (error) {
      if (!(error instanceof NotJSON)) throw error
      wrong.at[pathOf(e)] = words.notJSON
    }
  }
  const given = [...values].some(([e, v]) => v !== undefined && !(e.known && same(v, e.default)))
  let answer: Record<string, unknown> = {}
  for (const [e, value] of values) {
    const v = e.known && !given ? undefined : value
    if (param && e.required && v === undefined) wrong.at[pathOf(e)] = words.required
    if (e.group && e.group !== "evidence") answer[e.group] ??= {}
    if (v === undefined) continue
    if (!e.name) return { answer: v, wrong }
    if (e.group) answer = { ...answer, [e.group]: { ...(answer[e.group] as object | undefined), [e.name]: v } }
    else answer[e.name] = v
  }
  return { answer, wrong }
}

/** blame puts what the server says is wrong with an answer beside the entries that it is about. */
export function blame(form: Form, error: unknown, zh: boolean): Wrong {
  const wrong: Wrong = { at: {}, rest: [] }
  const told = error instanceof Failure ? (error.problem?.errors ?? []) : []
  for (const one of told ?? []) {
    const path = one.path.replace(/^(body\.)?(response_data|input_data)\./, "")
    const at = (form.entries ?? [])
      .map(pathOf)
      .filter((own) => own !== "" && (path === own || path.startsWith(own + ".") || path.startsWith(own + "[")))
      .sort((a, b) => b.length - a.length)[0]
    const said = sentence((zh && one.message_zh) || one.message)
    const decision = decisionOf(form)
    if (at === undefined || (decision && at === pathOf(decision))) wrong.rest.push(at === undefined && path !== one.path ? `${path}: ${said}` : said)
    else wrong.at[at] ??= said
  }
  return wrong
}

/** isWrong says whether there is anything. */
export const isWrong = (w: Wrong) => w.rest.length > 0 || Object.keys(w.at).length > 0

function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?。！？]$/.test(first) || /[\u4e00-\u9fff]/.test(first) ? first : first + "."
}

/** Answered is what the server says after an answer. */
export type Answered = Schemas["Interaction"]
