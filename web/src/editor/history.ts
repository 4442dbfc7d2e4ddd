import { type Definition, readDefinition } from "@/graph/definition"
import { changePieces, cutText, type Pieces, typePieces } from "./pieces"
import { type Broken, type Plain, readText, rewrite } from "./rewrite"

/** Model is the document that is edited. The text is the truth; while it cannot be read, what it said last is shown. */
export type Model = {
  text: string
  value: Plain
  definition: Definition
  broken?: Broken
  /** Only a piece of the text was read, which cannot be read by itself; whether the whole can is not known yet. */
  unsure?: boolean
  /** The last text that could be read, in pieces. */
  pieces?: Pieces
}

/** History is the document with what it was before, so that every change can be undone, wherever it was made. */
export type History = { now: Model; past: Model[]; future: Model[]; /** When and by what the last change was made. */ last?: { at: number; by: string } }

const depth = 300

/** A text of this length is read as a whole without anybody noticing. */
const short = 12_000

export function modelOf(text: string, before?: Model): Model {
  const typed = before?.pieces && typePieces(before.pieces, text)
  if (typed && !("broken" in typed)) return { text, value: typed.value, definition: readDefinition(typed.value), pieces: typed }
  if (typed && text.length > short) return { text, value: before!.value, definition: before!.definition, broken: typed.broken, unsure: true, pieces: before!.pieces }
  return readWhole(text, before)
}

/** readWhole reads all of a text. */
export function readWhole(text: string, before?: Model): Model {
  const read = readText(text)
  if (read.broken) return { text, value: before?.value, definition: before?.definition ?? readDefinition({}), broken: read.broken, pieces: before?.pieces }
  return { text, value: read.value, definition: readDefinition(read.value), pieces: cutText(text) }
}

/** edited is the document that says `value`, with as little of its text changed as can be. */
export function edited(now: Model, value: Plain): Model {
  if (value === now.value || now.broken) return now
  const pieces = now.pieces?.text === now.text ? changePieces(now.pieces, value) : undefined
  if (pieces) return pieces.text === now.text ? now : { text: pieces.text, value: pieces.value, definition: readDefinition(pieces.value), pieces }
  const text = rewrite(now.text, value)
  return text === now.text ? now : readWhole(text, now)
}

export const begin = (text: string): History => ({ now: readWhole(text), past: [], future: [] })

/** change sets a new text. What the same place (`by`) changes in quick succession, such as typing, is one step of undoing. */
export const change = (h: History, text: string, by = "", at = Date.now()): History => (text === h.now.text ? h : put(h, modelOf(text, h.now), by, at))

/** put sets a new document. */
export function put(h: History, now: Model, by = "", at = Date.now()): History {
  if (now === h.now || now.text === h.now.text) return h
  const joined = by !== "" && h.last?.by === by && at - h.last.at < 800 && h.past.length > 0
  return { now, past: joined ? h.past : [...h.past, h.now].slice(-depth), future: [], last: { at, by } }
}

/** checked reads the whole of a text of which only a piece was read. */
export const checked = (h: History): History => (h.now.unsure ? { ...h, now: readWhole(h.now.text, h.now) } : h)

export function undo(h: History): History {
  const before = h.past.at(-1)
  if (!before) return h
  return { now: before, past: h.past.slice(0, -1), future: [h.now, ...h.future] }
}

export function redo(h: History): History {
  const [next, ...future] = h.future
  if (!next) return h
  return { now: next, past: [...h.past, h.now], future }
}
