import { isFields, listOf, textOf } from "@/graph/definition"
import type { Plain } from "./rewrite"

type Fields = Record<string, Plain>

/** Place is where an id is still mentioned: a field of a node or of a connection. */
export type Place = { of: string; field: string }

/** Renamed is the file with another id for a node: how much was changed, and where the old id is mentioned in a way that may mean something else. */
export type Renamed = { value: Plain; connections: number; placeholders: number; lists: number; left: Place[] }

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")

/** rename gives a node another id, and changes everything that names it: connections, attached nodes, triggers, tests, placeholders, and steps.id in expressions. */
export function rename(v: Plain, from: string, to: string): Renamed {
  const done: Renamed = { value: v, connections: 0, placeholders: 0, lists: 0, left: [] }
  if (!isFields(v) || from === to) return done
  const id = escaped(from)
  // {{id.x}}, {{{id.x}}}, ${id.x}, {{id["x"]}}; behind a backslash it is just text.
  const placeholder = new RegExp(`(?<!\\\\)((?:\\{\\{\\{?|\\$\\{)\\s*)${id}(?=\\s*[.[])`, "gu")
  const steps = new RegExp(`(?<![\\p{L}\\p{N}_$.])(steps\\s*(?:\\.\\s*|\\[\\s*["']))${id}(?![\\p{L}\\p{N}_$-])`, "gu")
  const mention = new RegExp(`(?<![\\p{L}\\p{N}_$-])${id}(?![\\p{L}\\p{N}_$-])`, "u")
  const text = (s: string, at: Place) => {
    let count = 0
    const put = (_: string, before: string) => {
      count++
      return before + to
    }
    const next = s.replace(placeholder, put).replace(steps, put)
    done.placeholders += count
    const rest = s.replace(placeholder, "").replace(steps, "")
    if (mention.test(rest)) done.left.push(at)
    return next
  }
  const walk = (value: Plain, at: Place): Plain => {
    if (typeof value === "string") return text(value, at)
    if (Array.isArray(value)) return kept(value, value.map((x, i) => walk(x, { ...at, field: `${at.field}[${i}]` })))
    if (!isFields(value)) return value
    return keptFields(value, Object.fromEntries(Object.entries(value).map(([k, x]) => [k, walk(x, { ...at, field: at.field ? `${at.field}.${k}` : k })])))
  }
  const ids = (list: Plain) => {
    if (!Array.isArray(list) || !list.includes(from)) return list
    done.lists++
    return list.map((x) => (x === from ? to : x)) as Plain
  }
  const nodes = listOf(v.nodes).map((n) => {
    if (!isFields(n)) return n
    const of = textOf(n.name) || textOf(n.id)
    const next: Fields = { ...n }
    if (textOf(n.id) === from) next.id = to
    for (const name of ["attached_nodes", "attachedNodes"]) if (name in n) next[name] = ids(n[name])
    for (const name of ["configurations", "input_params", "inputParams", "output_params", "outputParams"]) if (name in n) next[name] = walk(n[name], { of, field: name })
    return keptFields(n, next)
  })
  const connections = listOf(v.connections).map((c) => {
    if (!isFields(c)) return c
    const next: Fields = { ...c }
    const ends = ["from_node", "fromNode", "to_node", "toNode"].filter((name) => textOf(c[name]) === from)
    for (const name of ends) next[name] = to
    if (ends.length) done.connections++
    const of = `${textOf(c.from_node ?? c.fromNode)} → ${textOf(c.to_node ?? c.toNode)}`
    for (const name of ["conversion_function", "conversionFunction"]) if (typeof c[name] === "string") next[name] = text(c[name], { of, field: name })
    return keptFields(c, next)
  })
  const byNode = (outputs: Plain) => {
    if (!isFields(outputs) || !(from in outputs)) return outputs
    done.lists++
    return Object.fromEntries(Object.entries(outputs).map(([k, x]) => [k === from ? to : k, x]))
  }
  const tests = listOf(v.tests).map((test) => {
    if (!isFields(test)) return test
    const next: Fields = { ...test }
    for (const name of ["node", "from"]) if (test[name] === from) next[name] = to
    if ("pinned" in test) next.pinned = byNode(test.pinned)
    if (isFields(test.expect) && "outputs" in test.expect) next.expect = keptFields(test.expect, { ...test.expect, outputs: byNode(test.expect.outputs) })
    return keptFields(test, next)
  })
  const value: Fields = { ...v, nodes }
  if ("connections" in v) value.connections = connections
  if ("tests" in v) value.tests = tests
  if ("triggers" in v) value.triggers = ids(v.triggers)
  return { ...done, value }
}

// What has not changed stays the same object.
const kept = (before: Plain[], now: Plain[]) => (now.every((x, i) => x === before[i]) ? before : now)
const keptFields = (before: Fields, now: Fields) => (Object.keys(now).every((k) => now[k] === before[k]) ? before : now)
