/** Path leads to a value inside a JSON value: names of fields and positions in lists. */
export type Path = readonly (string | number)[]

// What the server writes without quotes: anything that has no sign of its own in a path.
const bare = /^[^\u0000-\u0020.[\]{}"'`\u007f]+$/

/** pathText writes a path as placeholders and the lineage of the API write it: a.b[0]["c d"]. */
export function pathText(path: Path): string {
  let text = ""
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`
    else if (bare.test(step)) text += (text ? "." : "") + step
    else text += `[${JSON.stringify(step)}]`
  }
  return text
}

/** A value that the API does not send with the rest: it is read by its hash, or is not to be had here. */
export type Large = { hash?: string; size: number }

/** largeOf says whether a value stands for a large one. */
export function largeOf(value: unknown): Large | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return
  const v = value as Record<string, unknown>
  if (typeof v.size !== "number" || Object.keys(v).length !== 2) return
  if (typeof v.$blob === "string") return { hash: v.$blob, size: v.size }
  if (v.$omitted === true) return { size: v.size }
}

/** Of a list or an object with more than this many values they are folded into ranges. */
export const rangeSize = 1_000

/** Row is one line of the tree. A range stands for the children from `from` up to `to` of the value at its path. */
export type Row = {
  key: string
  path: Path
  level: number
  value: unknown
  /** Number of children, for what can be unfolded. */
  children?: number
  open?: boolean
  large?: Large
  range?: { from: number; to: number }
  position: number
  siblings: number
}

export const keyOf = (path: Path, range?: { from: number }) => path.map((s) => (typeof s === "number" ? `#${s}` : `.${s.length}:${s}`)).join("") + (range ? `~${range.from}` : "")

// The names of an object's fields are asked for often, and of large objects that takes long.
const names = new WeakMap<object, string[]>()

function namesOf(value: object): string[] {
  let list = names.get(value)
  if (!list) names.set(value, (list = Object.keys(value)))
  return list
}

export function childCount(value: unknown): number | undefined {
  if (Array.isArray(value)) return value.length
  if (typeof value === "object" && value !== null) return namesOf(value).length
}

/** Folds says what is open. Rows that nobody has touched are open down to `depth`, unless they have many children. */
export type Folds = { depth: number; touched: ReadonlyMap<string, boolean> }

const opensByItself = 100

function isOpen(row: Pick<Row, "key" | "level" | "children" | "range">, folds: Folds): boolean {
  return folds.touched.get(row.key) ?? (!row.range && row.level < folds.depth && (row.children ?? 0) <= opensByItself)
}

/** rowsOf lists the lines that are to be seen. What is folded costs nothing. `read` has large values that were read, by hash. */
export function rowsOf(value: unknown, folds: Folds, read: ReadonlyMap<string, unknown>): Row[] {
  const rows: Row[] = []
  const add = (path: Path, shown: unknown, level: number, position: number, siblings: number) => {
    let large = largeOf(shown)
    if (large?.hash !== undefined && read.has(large.hash)) {
      shown = read.get(large.hash)
      large = undefined
    }
    const row: Row = { key: keyOf(path), path, level, value: shown, children: large ? undefined : childCount(shown), large, position, siblings }
    rows.push(row)
    if (!row.children) return
    row.open = isOpen(row, folds)
    if (row.open) below(row, shown as object)
  }
  const below = (parent: Row, of: object) => {
    const count = parent.children!
    if (count <= rangeSize) return span(parent.path, of, 0, count, parent.level + 1)
    const ranges = Math.ceil(count / rangeSize)
    for (let from = 0; from < count; from += rangeSize) {
      const to = Math.min(from + rangeSize, count)
      const row: Row = { key: keyOf(parent.path, { from }), path: parent.path, level: parent.level + 1, value: of, children: to - from, range: { from, to }, position: from / rangeSize + 1, siblings: ranges }
      rows.push(row)
      row.open = isOpen(row, folds)
      if (row.open) span(parent.path, of, from, to, parent.level + 2)
    }
  }
  const span = (path: Path, of: object, from: number, to: number, level: number) => {
    if (Array.isArray(of)) for (let i = from; i < to; i++) add([...path, i], of[i], level, i - from + 1, to - from)
    else {
      const keys = namesOf(of)
      for (let i = from; i < to; i++) add([...path, keys[i]!], (of as Record<string, unknown>)[keys[i]!], level, i - from + 1, to - from)
    }
  }
  add([], value, 0, 1, 1)
  return rows
}

/** wayTo are the keys of everything that has to be open for a path to be seen. */
export function wayTo(value: unknown, path: Path, read: ReadonlyMap<string, unknown>): string[] {
  const keys: string[] = []
  let at: unknown = value
  for (let i = 0; i < path.length; i++) {
    const large = largeOf(at)
    if (large?.hash !== undefined && read.has(large.hash)) at = read.get(large.hash)
    const here = path.slice(0, i)
    keys.push(keyOf(here))
    const count = childCount(at) ?? 0
    const step = path[i]!
    if (count > rangeSize) {
      const position = typeof step === "number" ? step : namesOf(at as object).indexOf(step)
      keys.push(keyOf(here, { from: Math.floor(position / rangeSize) * rangeSize }))
    }
    at = typeof at === "object" && at !== null ? (at as Record<string | number, unknown>)[step] : undefined
  }
  return keys
}

export const searchLimit = 1_000

/**
 * search finds names and values that have a text in them, in the order of the tree, at most searchLimit. It gives the page back after each few
 * milliseconds, so that a large value can be searched while somebody types.
 */
export async function search(value: unknown, text: string, read: ReadonlyMap<string, unknown>, signal: AbortSignal): Promise<Path[]> {
  const wanted = text.toLowerCase()
  const hits: Path[] = []
  let since = performance.now()
  const stack: { path: Path; value: unknown }[] = [{ path: [], value }]
  while (stack.length > 0 && hits.length < searchLimit) {
    if (performance.now() - since > 8) {
      await new Promise((done) => setTimeout(done, 0))
      if (signal.aborted) return []
      since = performance.now()
    }
    const { path, value: raw } = stack.pop()!
    const large = largeOf(raw)
    const v = large?.hash !== undefined && read.has(large.hash) ? read.get(large.hash) : raw
    const name = path[path.length - 1]
    const leaf = typeof v !== "object" || v === null
    if ((typeof name === "string" && name.toLowerCase().includes(wanted)) || (leaf && String(v).toLowerCase().includes(wanted))) hits.push(path)
    if (leaf || (large && v === raw)) continue
    if (Array.isArray(v)) for (let i = v.length - 1; i >= 0; i--) stack.push({ path: [...path, i], value: v[i] })
    else {
      const keys = Object.keys(v)
      for (let i = keys.length - 1; i >= 0; i--) stack.push({ path: [...path, keys[i]!], value: (v as Record<string, unknown>)[keys[i]!] })
    }
  }
  return hits
}

/** sizeText says a number of bytes as people do. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(bytes < 10_000 ? 1 : 0)} kB`
  return `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`
}
