import { type Document, isAlias, isCollection, isMap, isScalar, isSeq, type Node, type Pair, parseDocument, stringify, type YAMLMap, type YAMLSeq } from "yaml"
import { isFields } from "@/graph/definition"
import { yamlSaying } from "@/parts/syntax"
import { Lines } from "./lines"

/** Plain is what YAML and JSON can say. */
export type Plain = unknown
type Fields = Record<string, Plain>
type Splice = { from: number; to: number; text: string }

/** Broken is why a text cannot be read. Lines and columns count from 1. */
export type Broken = { message: string; line: number; column: number }

export function equal(a: Plain, b: Plain): boolean {
  if (a === b || (a !== a && b !== b)) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((v, i) => equal(v, b[i]))
  if (!isFields(a) || !isFields(b)) return false
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((n) => n in b && equal(a[n], b[n]))
}

const options = { maxAliasCount: 1000, uniqueKeys: false, prettyErrors: true } as const

type Read = { value: Plain; broken?: undefined } | { value?: undefined; broken: Broken }

// What was read last is often read again at once: a change is checked, then shown.
let last: { text: string; read: Read; doc?: Document } | undefined

/** readText reads a file as the values that it says, or says why it cannot be read. The values are shared: nobody changes them. */
export function readText(text: string): Read {
  return parsed(text).read
}

/** documentOf is the document of a text that can be read, with the places of everything in it. Nobody changes it. */
export function documentOf(text: string): Document | undefined {
  return parsed(text).doc
}

// parsed reads a text unless it was the last one: then it is there already, with the document that changes are made in.
function parsed(text: string) {
  if (last?.text !== text) last = { text, ...parse(text) }
  return last
}

/** parse reads a text without keeping it. */
export function parse(text: string): { read: Read; doc?: Document } {
  try {
    const doc = parseDocument(text, options) as Document
    const error = doc.errors[0]
    if (error) return { read: { broken: { message: yamlSaying(error), line: error.linePos?.[0].line ?? 1, column: error.linePos?.[0].col ?? 1 } } }
    return { read: { value: doc.toJS({ maxAliasCount: 1000 }) as Plain }, doc }
  } catch (error) {
    return { read: { broken: { message: error instanceof Error ? error.message : String(error), line: 1, column: 1 } } }
  }
}

/**
 * rewrite changes a text so that it says `to`, and nothing else in it: comments, order, spelling and white space of everything that stays are kept. If a text is
 * written so oddly that this does not lead to `to`, the whole of it is written anew, with its comments.
 */
export function rewrite(text: string, to: Plain): string {
  const { doc, read } = parsed(text)
  if (!doc) throw new Error(read.broken?.message)
  const from = read.value
  if (equal(from, to)) return text
  const told = toldAgain(text, from, to)
  if (told !== undefined) return told
  if (doc.contents === null) return text.trimEnd() + (text.trim() ? "\n" : "") + stringify(to, { lineWidth: 0 })
  const json = isCollection(doc.contents) && !!doc.contents.flow
  const out: Splice[] = []
  new Rewriter(text, json, out).value(doc.contents as Node, from, to, 0)
  const next = applied(text, out)
  const got = readText(next)
  if (!got.broken && equal(got.value, to)) return next
  // The document is changed by this, and no longer what was read.
  last = undefined
  patch(doc, [], from, to)
  return json ? JSON.stringify(to, null, 2) + "\n" : doc.toString({ lineWidth: 0 })
}

// JSON as a program writes it is written again as that program would.
function toldAgain(text: string, from: Plain, to: Plain): string | undefined {
  if (!text.startsWith("{")) return undefined
  for (const indent of [undefined, 2, 4]) {
    const said = JSON.stringify(from, null, indent)
    if (text.trimEnd() === said) return JSON.stringify(to, null, indent) + text.slice(said.length)
  }
  return undefined
}

function applied(text: string, splices: Splice[]): string {
  let out = ""
  let at = 0
  const ordered = splices.map((s, i) => ({ ...s, i })).sort((a, b) => a.from - b.from || a.to - b.to || a.i - b.i)
  for (const s of ordered) {
    if (s.from < at) continue
    out += text.slice(at, s.from) + s.text
    at = s.to
  }
  return out + text.slice(at)
}

/** align pairs the items of two lists: those that say the same, and those that are the same thing by their id. */
export function align(from: Plain[], to: Plain[]): [number, number][] {
  const name = (v: Plain) => (isFields(v) && typeof v.id === "string" && v.id ? `id:${v.id}` : JSON.stringify(v))
  const a = from.map(name)
  const b = to.map(name)
  const pairs: [number, number][] = []
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) pairs.push([start, start++])
  let endA = a.length
  let endB = b.length
  const tail: [number, number][] = []
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) tail.unshift([--endA, --endB])
  const n = endA - start
  const m = endB - start
  if (n && m && n * m <= 4_000_000) {
    const best = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1))
    for (let i = n - 1; i >= 0; i--) for (let j = m - 1; j >= 0; j--) best[i]![j] = a[start + i] === b[start + j] ? best[i + 1]![j + 1]! + 1 : Math.max(best[i + 1]![j]!, best[i]![j + 1]!)
    for (let i = 0, j = 0; i < n && j < m; ) {
      if (a[start + i] === b[start + j]) pairs.push([start + i++, start + j++])
      else if (best[i + 1]![j]! >= best[i]![j + 1]!) i++
      else j++
    }
  }
  // A list whose items have only changed is the same list.
  if (n === m && pairs.length === start) for (let i = 0; i < n; i++) pairs.push([start + i, start + i])
  return [...pairs, ...tail]
}

class Rewriter extends Lines {
  constructor(
    text: string,
    private readonly json: boolean,
    private readonly out: Splice[],
  ) {
    super(text)
  }

  /** value changes one value; `column` is where the keys of the map stand that it is in. */
  value(node: Node, from: Plain, to: Plain, column: number, pair?: Pair<Node, Node | null>) {
    if (equal(from, to)) return
    const opens = isCollection(node) && node.items.length === 0
    const closes = isFields(to) ? Object.keys(to).length === 0 : Array.isArray(to) && to.length === 0
    if (!opens && !closes && isMap(node) && isFields(from) && isFields(to) && plainKeys(node) && Object.keys(from).some((k) => k in to)) return this.map(node as YAMLMap<Node, Node | null>, from, to)
    if (!opens && !closes && isSeq(node) && Array.isArray(from) && Array.isArray(to) && node.items.length === from.length && align(from, to).length > 0) return this.seq(node as YAMLSeq<Node>, from, to)
    this.replace(node, to, column, pair)
  }

  private replace(node: Node, to: Plain, column: number, pair?: Pair<Node, Node | null>) {
    const [start, end] = this.span(node)
    if (this.json || this.flowDepth > 0) {
      this.out.push({ from: start, to: end, text: this.flow(to, start) })
      return
    }
    if (!pair) {
      this.out.push({ from: start, to: end, text: indented(stringify(to, style).trimEnd(), column) })
      return
    }
    const keyEnd = pair.key.range![1]
    const colon = this.text.indexOf(":", keyEnd) + 1
    const keepsFlow = isCollection(node) && node.flow && node.items.length > 0
    this.out.push({ from: colon, to: Math.max(end, colon), text: keepsFlow || isPoint(to) ? ` ${this.flow(to, start)}` : indented(stringify({ k: to }, style).trimEnd().slice(2), column) })
  }

  // Inside of a flow collection only flow can be written.
  private flowDepth = 0

  private map(node: YAMLMap<Node, Node | null>, from: Fields, to: Fields) {
    const pairs = node.items as Pair<Node, Node | null>[]
    const nameOf = (p: Pair<Node, Node | null>) => String(isScalar(p.key) ? p.key.value : p.key)
    const byName = new Map(pairs.map((p) => [nameOf(p), p]))
    const column = this.column(pairs[0]!.key.range![0])
    if (node.flow) this.flowDepth++
    for (const p of pairs) {
      const name = nameOf(p)
      if (!(name in to)) continue
      if (p.value) this.value(p.value, from[name], to[name], column, p)
      else if (!equal(from[name], to[name])) this.out.push({ from: p.key.range![1], to: p.key.range![1], text: `: ${this.flow(to[name], 0)}` })
    }
    let after: Pair<Node, Node | null> | undefined
    let first = ""
    for (const [name, value] of Object.entries(to)) {
      const p = byName.get(name)
      if (p) {
        after = p
        continue
      }
      if (node.flow) this.intoFlow(pairs.map((q) => this.pairSpan(q)), after ? pairs.indexOf(after) : -1, `${this.key(name)}: ${this.flow(value, this.pairSpan(pairs[0]!)[0])}`)
      else if (after) this.out.push({ from: this.lineEnd(this.pairSpan(after)[1]), to: this.lineEnd(this.pairSpan(after)[1]), text: `\n${" ".repeat(column)}${this.pairText(name, value, column)}` })
      else first += `${this.pairText(name, value, column)}\n${" ".repeat(column)}`
    }
    const begin = pairs.find((p) => nameOf(p) in to)!.key.range![0]
    if (first) this.out.push({ from: begin, to: begin, text: first })
    const gone = pairs.filter((p) => !(nameOf(p) in to))
    if (node.flow) this.outOfFlow(pairs.map((p) => this.pairSpan(p)), gone.map((p) => pairs.indexOf(p)))
    else for (const p of gone) this.cutPair(p, pairs)
    if (node.flow) this.flowDepth--
  }

  private cutPair(p: Pair<Node, Node | null>, pairs: Pair<Node, Node | null>[]) {
    const [start, end] = this.pairSpan(p)
    const line = this.lineStart(start)
    const next = pairs[pairs.indexOf(p) + 1]
    // The first field of an item stands behind its dash.
    if (this.text.slice(line, start).trim() && next) this.out.push({ from: start, to: next.key.range![0], text: "" })
    else this.out.push({ from: line, to: Math.min(this.lineEnd(end) + 1, this.text.length), text: "" })
  }

  private seq(node: YAMLSeq<Node>, from: Plain[], to: Plain[]) {
    const items = node.items
    const pairs = align(from, to)
    const kept = new Map(pairs.map(([i, j]) => [j, i]))
    const stays = new Set(pairs.map(([i]) => i))
    if (node.flow) this.flowDepth++
    for (const [i, j] of pairs) this.value(items[i]!, from[i], to[j], this.column(items[i]!.range![0]))
    let after = -1
    let first = ""
    const spans = items.map((n) => this.span(n))
    for (let j = 0; j < to.length; j++) {
      const i = kept.get(j)
      if (i !== undefined) {
        after = i
        continue
      }
      if (node.flow) {
        this.intoFlow(spans, after, this.flow(to[j], spans[0]![0]))
        continue
      }
      const dash = this.dash(items[0]!)
      const column = this.column(dash)
      const text = `${" ".repeat(column)}- ${itemText(to[j], column + 2, mostlyFlow(items))}`
      if (after < 0) first += `${text}\n`
      else {
        const end = this.lineEnd(spans[after]![1])
        this.out.push({ from: end, to: end, text: `\n${this.spaced(items) ? "\n" : ""}${text}` })
      }
    }
    if (first) {
      const at = this.itemStart(items[Math.min(...stays)]!)
      this.out.push({ from: at, to: at, text: first })
    }
    const gone = items.map((_, i) => i).filter((i) => !stays.has(i))
    if (node.flow) this.outOfFlow(spans, gone)
    else for (const i of gone) this.cutItem(items, i)
    if (node.flow) this.flowDepth--
  }

  private cutItem(items: Node[], i: number) {
    const start = this.itemStart(items[i]!)
    let end = Math.min(this.lineEnd(this.span(items[i]!)[1]) + 1, this.text.length)
    if (this.spaced(items) && this.text[end] === "\n") end++
    this.out.push({ from: start, to: end, text: "" })
  }

  private intoFlow(spans: [number, number][], after: number, text: string) {
    const [start, end] = spans[Math.max(after, 0)]!
    const own = this.text.slice(this.lineStart(start), start).trim() === ""
    const gap = own ? `,\n${" ".repeat(this.column(start))}` : ", "
    if (after < 0) this.out.push({ from: start, to: start, text: text + gap })
    else this.out.push({ from: end, to: end, text: gap + text })
  }

  private outOfFlow(spans: [number, number][], gone: number[]) {
    const cut = new Set(gone)
    const staying = spans.map((_, i) => i).filter((i) => !cut.has(i))
    for (const i of gone) {
      if (staying.some((s) => s < i)) this.out.push({ from: spans[i - 1]![1], to: spans[i]![1], text: "" })
      else if (spans[i + 1]) this.out.push({ from: spans[i]![0], to: spans[i + 1]![0], text: "" })
    }
  }

  private pairText(name: string, value: Plain, column: number): string {
    if (isPoint(value)) return `${this.key(name)}: ${this.flow(value, 0)}`
    return indented(stringify({ [name]: value }, style).trimEnd(), column)
  }

  private key(name: string): string {
    return this.json ? JSON.stringify(name) : stringify({ [name]: 0 }, style).trimEnd().slice(0, -3)
  }

  private flow(value: Plain, at: number): string {
    if (!this.json) return flowText(value)
    const line = this.lineStart(at)
    const pretty = this.text.includes("\n") && typeof value === "object" && value !== null && !isPoint(value)
    return pretty ? indented(JSON.stringify(value, null, 2), /^\s*/.exec(this.text.slice(line))![0].length) : JSON.stringify(value)
  }

  private pairSpan(p: Pair<Node, Node | null>): [number, number] {
    const start = p.key.range![0]
    const colon = this.text.indexOf(":", p.key.range![1]) + 1
    const end = p.value?.range && !isEmptyNode(p.value) ? this.span(p.value)[1] : colon
    return [start, Math.max(end, p.key.range![1])]
  }
}

const style = { lineWidth: 0, blockQuote: "literal", aliasDuplicateObjects: false } as const

const isEmptyNode = (n: Node) => isScalar(n) && n.value === null && n.range![0] === n.range![1]

const isPoint = (v: Plain) => isFields(v) && Object.keys(v).length === 2 && typeof v.x === "number" && typeof v.y === "number"

function plainKeys(node: YAMLMap): boolean {
  return node.items.length > 0 && node.items.every((p) => isScalar(p.key) && p.key.value !== "<<" && !isAlias(p.key) && !!(p.key as Node).range)
}

function indented(text: string, column: number): string {
  return text.replace(/\n(?=[^\n])/g, `\n${" ".repeat(column)}`)
}

const flowText = (value: Plain) => stringify(value, { ...style, collectionStyle: "flow", flowCollectionPadding: false }).trimEnd()

/** itemText writes a new item of a list, without its dash: short ones on one line where most of the others are. */
export function itemText(value: Plain, column: number, flow: boolean): string {
  if (flow && isFields(value) && Object.values(value).every((v) => typeof v === "string" && !v.includes("\n"))) return flowText(value)
  return indented(stringify(value, style).trimEnd(), column)
}

export const isFlow = (n: Node) => isCollection(n) && !!n.flow

const mostlyFlow = (items: Node[]) => items.filter(isFlow).length * 2 > items.length

// patch changes a document by its nodes; how it was written is kept less exactly than by splices.
function patch(doc: Document, path: (string | number)[], from: Plain, to: Plain) {
  if (equal(from, to)) return
  const at = path.length ? doc.getIn(path, true) : doc.contents
  if (isMap(at) && isFields(from) && isFields(to)) {
    for (const name of Object.keys(from)) if (!(name in to)) doc.deleteIn([...path, name])
    for (const [name, value] of Object.entries(to)) {
      if (name in from && doc.hasIn([...path, name])) patch(doc, [...path, name], from[name], value)
      else doc.setIn([...path, name], doc.createNode(value))
    }
  } else if (path.length) doc.setIn(path, doc.createNode(to))
  else doc.contents = doc.createNode(to) as never
}
