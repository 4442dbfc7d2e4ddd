import { type Document, isAlias, isMap, isNode, isScalar, isSeq, type Node, visit } from "yaml"
import { isFields } from "@/graph/definition"
import { smallestChange } from "@/parts/code/change"
import { Lines } from "./lines"
import { align, type Broken, documentOf, equal, isFlow, itemText, parse, type Plain, readText, rewrite } from "./rewrite"

type Item = { text: string; value: Plain; flow: boolean }
type List = { name: string; column: number; spaced: boolean; items: Item[] }

/**
 * Pieces is a file in pieces that can be read one by one: the items of its long lists, each with its lines, and what stands around the lists. A change then costs what
 * the pieces cost that it touches, however long the file is. `gaps` has one text more than there are lists.
 */
export type Pieces = { text: string; value: Record<string, Plain>; gaps: string[]; lists: List[] }

const names = ["nodes", "connections"]
const mark = "\uE000"
const markOf = (list: Pick<List, "name">) => mark + list.name
const markLine = (list: Pick<List, "name" | "column">) => `${" ".repeat(list.column)}- ${markOf(list)}\n`
const hasMark = (v: Plain, list: List) => Array.isArray(v) && v.length === 1 && v[0] === markOf(list)

// What reaches over several pieces: other documents, block texts that keep the empty lines behind them, anchors and aliases.
const reaching = /^(?:---|\.\.\.|%)|[|>]\d?\+/m

function shares(doc: Document): boolean {
  let found = false
  visit(doc, {
    Node(_, node) {
      if (!isAlias(node) && !("anchor" in node && node.anchor)) return undefined
      found = true
      return visit.BREAK
    },
    Pair(_, pair) {
      if (!isScalar(pair.key) || pair.key.value !== "<<") return undefined
      found = true
      return visit.BREAK
    },
  })
  return found
}

/** cutText cuts a text that can be read into pieces; undefined if it is written in a way that cannot be cut. */
export function cutText(text: string): Pieces | undefined {
  const doc = documentOf(text)
  const value = readText(text).value
  if (!doc || !isMap(doc.contents) || doc.contents.flow || !isFields(value) || text.includes(mark) || reaching.test(text) || shares(doc)) return undefined
  const gaps: string[] = []
  const lists: List[] = []
  const seen = new Set<unknown>()
  let at = 0
  for (const p of doc.contents.items) {
    const name = isScalar(p.key) ? p.key.value : undefined
    if (seen.has(name)) return undefined
    seen.add(name)
    if (typeof name !== "string" || !names.includes(name) || !isNode(p.key) || !isSeq(p.value) || p.value.flow) continue
    const cut = cutList(text, name, p.value.items as Node[], value[name])
    if (!cut || cut.start < p.key.range![1]) continue
    gaps.push(text.slice(at, cut.start))
    lists.push(cut.list)
    at = cut.end
  }
  if (lists.length === 0) return undefined
  return { text, value, gaps: [...gaps, text.slice(at)], lists }
}

function cutList(text: string, name: string, nodes: Node[], values: Plain): { list: List; start: number; end: number } | undefined {
  if (!Array.isArray(values) || nodes.length === 0 || values.length !== nodes.length || nodes.some((n) => !n.range)) return undefined
  const lines = new Lines(text)
  const dashes = nodes.map((n) => lines.dash(n))
  const column = lines.column(dashes[0]!)
  if (dashes.some((d) => text[d] !== "-" || lines.column(d) !== column || text.slice(lines.lineStart(d), d).trim() !== "")) return undefined
  const starts = nodes.map((n) => lines.itemStart(n))
  const end = Math.min(lines.lineEnd(lines.span(nodes.at(-1)!)[1]) + 1, text.length)
  if (starts.some((s, i) => s >= (starts[i + 1] ?? end))) return undefined
  const items = nodes.map((n, i) => ({ text: text.slice(starts[i], starts[i + 1] ?? end), value: values[i] as Plain, flow: isFlow(n) }))
  return { list: { name, column, spaced: lines.spaced(nodes), items }, start: starts[0]!, end }
}

/** readItems reads lines of a list by themselves. */
function readItems(text: string, name: string, column: number): { list: List; nodes: Node[] } | { broken: Broken } | undefined {
  if (reaching.test(text) || text.includes(mark)) return undefined
  const { doc, read } = parse(text)
  if (!doc) return /alias/i.test(read.broken!.message) ? undefined : { broken: read.broken! }
  if (!isSeq(doc.contents) || doc.contents.flow || shares(doc)) return undefined
  const nodes = doc.contents.items as Node[]
  const cut = cutList(text, name, nodes, read.value)
  if (!cut || cut.list.column !== column) return undefined
  // What stands before the first item and behind the last belongs to them.
  const { items } = cut.list
  items[0] = { ...items[0]!, text: text.slice(0, cut.start) + items[0]!.text }
  items[items.length - 1] = { ...items.at(-1)!, text: items.at(-1)!.text + text.slice(cut.end) }
  return { list: cut.list, nodes }
}

function readItem(text: string, list: List): { item: Item; node: Node } | undefined {
  const got = readItems(text, list.name, list.column)
  if (!got || "broken" in got || got.list.items.length !== 1) return undefined
  return { item: got.list.items[0]!, node: got.nodes[0]! }
}

const joined = (gaps: string[], lists: List[]) => gaps.map((g, i) => g + (lists[i]?.items.map((item) => item.text).join("") ?? "")).join("")
const framed = (gaps: string[], lists: List[]) => gaps.map((g, i) => g + (lists[i] ? markLine(lists[i]) : "")).join("")
const frameValue = (value: Record<string, Plain>, lists: List[]) => ({ ...value, ...Object.fromEntries(lists.map((l) => [l.name, [markOf(l)]])) })

function split(frame: string, lists: List[]): string[] | undefined {
  const gaps: string[] = []
  let at = 0
  for (const list of lists) {
    const line = markLine(list)
    const found = frame.indexOf(line, at)
    if (found < 0 || (found > 0 && frame[found - 1] !== "\n")) return undefined
    gaps.push(frame.slice(at, found))
    at = found + line.length
  }
  const rest = frame.slice(at)
  return gaps.some((g) => g.includes(mark)) || rest.includes(mark) ? undefined : [...gaps, rest]
}

/** changePieces changes the text so that it says `to`, piece by piece, each checked by reading it; undefined if that cannot be done. */
export function changePieces(p: Pieces, to: Plain): Pieces | undefined {
  if (!isFields(to)) return undefined
  const lists: List[] = []
  for (const list of p.lists) {
    const next = to[list.name]
    const changed = next === p.value[list.name] ? list : changeList(list, next)
    if (!changed) return undefined
    lists.push(changed)
  }
  const cut = new Set(lists.map((l) => l.name))
  // A list that is not in pieces is read with the whole, and is in pieces from then on.
  if (names.some((n) => !cut.has(n) && !equal(to[n], p.value[n]))) return undefined
  let { gaps } = p
  const wanted = frameValue(to, lists)
  const frame = framed(gaps, lists)
  if (!equal(frameValue(p.value, lists), wanted)) {
    const { read } = parse(frame)
    if (read.broken || !equal(read.value, frameValue(p.value, lists))) return undefined
    const again = split(rewrite(frame, wanted), lists)
    if (!again) return undefined
    gaps = again
  }
  return { text: joined(gaps, lists), value: to, gaps, lists }
}

function changeList(list: List, next: Plain): List | undefined {
  if (!Array.isArray(next) || next.length === 0) return undefined
  const before = list.items
  const pairs = align(before.map((i) => i.value), next)
  if (pairs.length === 0) return undefined
  const partner = new Map(pairs)
  const items: Item[] = []
  const flow = before.filter((i) => i.flow).length * 2 > before.length
  let j = 0
  const addUpTo = (end: number) => {
    for (; j < end; j++) {
      const text = `${" ".repeat(list.column)}- ${itemText(next[j], list.column + 2, flow)}\n`
      const made = readItem(text, list)
      if (!made || !equal(made.item.value, next[j])) return false
      if (!place(items, { ...made.item, value: next[j] as Plain }, list)) return false
    }
    return true
  }
  for (const [i, item] of before.entries()) {
    const to = partner.get(i)
    if (to === undefined) {
      if (!leave(items, item, list)) return undefined
      continue
    }
    if (!addUpTo(to)) return undefined
    const kept = changeItem(item, next[to], list)
    if (!kept) return undefined
    items.push(kept)
    j = to + 1
  }
  return addUpTo(next.length) ? { ...list, items } : undefined
}

function changeItem(item: Item, to: Plain, list: List): Item | undefined {
  if (item.value === to) return item
  if (equal(item.value, to)) return { ...item, value: to }
  const now = readItem(item.text, list)
  if (!now || !equal(now.item.value, item.value)) return undefined
  const next = readItem(rewrite(item.text, [to]), list)
  return next && equal(next.item.value, to) ? { ...next.item, value: to } : undefined
}

// A new item stands directly behind the one before it; what stood behind that, such as a comment, stands behind the new one then.
function place(items: Item[], item: Item, list: List): boolean {
  const before = items.pop()
  if (!before) return items.push(item) > 0
  const read = readItem(before.text, list)
  if (!read) return false
  const lines = new Lines(before.text)
  const end = lines.lineEnd(lines.span(read.node)[1]) + 1
  const ends = before.text.endsWith("\n")
  const body = before.text.slice(0, end)
  items.push({ ...before, text: (ends ? body : body + "\n") + (list.spaced ? "\n" : "") }, { ...item, text: (ends ? item.text : item.text.trimEnd()) + before.text.slice(end) })
  return true
}

// An item that goes takes its lines along, and one empty line if such lines are between all of them. What else stood there stays.
function leave(items: Item[], item: Item, list: List): boolean {
  const read = readItem(item.text, list)
  if (!read) return false
  const lines = new Lines(item.text)
  let end = Math.min(lines.lineEnd(lines.span(read.node)[1]) + 1, item.text.length)
  if (list.spaced && item.text[end] === "\n") end++
  const rest = item.text.slice(0, lines.itemStart(read.node)) + item.text.slice(end)
  const before = items.pop()
  if (before) items.push({ ...before, text: before.text + rest })
  return !!before || rest.trim() === ""
}

/**
 * typePieces reads a text in which something was typed: only the piece that it was typed into. It tells the pieces as they are then, or why the piece cannot be
 * read; undefined if the whole text has to be read.
 */
export function typePieces(p: Pieces, text: string): Pieces | { broken: Broken } | undefined {
  const typed = smallestChange(p.text, text)
  if (!typed) return p
  let at = 0
  for (const [i, gap] of p.gaps.entries()) {
    const inGap = within(gap, at, typed)
    const list = p.lists[i]
    // At the seam of two pieces something belongs to the list.
    if (inGap !== undefined && typed.to < at + gap.length) return typeFrame(p, text, i, inGap)
    at += gap.length
    for (const [n, item] of list?.items.entries() ?? []) {
      const next = within(item.text, at, typed)
      if (next !== undefined) return typeItem(p, text, i, n, next, at)
      at += item.text.length
    }
    if (inGap !== undefined && !list) return typeFrame(p, text, i, inGap)
  }
  return undefined
}

function within(piece: string, at: number, typed: { from: number; to: number; insert: string }): string | undefined {
  if (typed.from < at || typed.to > at + piece.length) return undefined
  return piece.slice(0, typed.from - at) + typed.insert + piece.slice(typed.to - at)
}

function typeFrame(p: Pieces, text: string, i: number, gap: string): Pieces | undefined {
  const frame = framed(p.gaps.with(i, gap), p.lists)
  if (reaching.test(frame)) return undefined
  const { read, doc } = parse(frame)
  if (!doc || !isMap(doc.contents) || !isFields(read.value) || shares(doc)) return undefined
  const value = read.value
  const gaps = split(frame, p.lists)
  if (!gaps || p.lists.some((l) => !hasMark(value[l.name], l)) || new Set(doc.contents.items.map((x) => String(x.key))).size !== doc.contents.items.length) return undefined
  const cut = new Set(p.lists.map((l) => l.name))
  if (names.some((n) => !cut.has(n) && !equal(value[n], p.value[n]))) return undefined
  return { text, gaps, lists: p.lists, value: { ...value, ...Object.fromEntries(p.lists.map((l) => [l.name, p.value[l.name]])) } }
}

function typeItem(p: Pieces, text: string, i: number, n: number, piece: string, at: number): Pieces | { broken: Broken } | undefined {
  const list = p.lists[i]!
  const ends = at + list.items[n]!.text.length === p.text.length
  if (!piece.endsWith("\n") && !ends) return undefined
  const got = readItems(piece, list.name, list.column)
  if (!got) return undefined
  if ("broken" in got) return { broken: { ...got.broken, line: got.broken.line + p.text.slice(0, at).split("\n").length - 1 } }
  const old = list.items[n]!.value
  const fresh = got.list.items.map((item) => (equal(item.value, old) ? { ...item, value: old } : item))
  const items = list.items.toSpliced(n, 1, ...fresh)
  const lists = p.lists.with(i, { ...list, items })
  return { text, gaps: p.gaps, lists, value: { ...p.value, [list.name]: items.map((item) => item.value) } }
}
