import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { parseDocument } from "yaml"
import * as edits from "./edits"
import { begin, change, edited, type Model, put, readWhole, undo } from "./history"
import { rewrite } from "./rewrite"

type Any = any // eslint-disable-line

let read = 0
vi.mock("yaml", async (original) => {
  const yaml = await original<typeof import("yaml")>()
  return { ...yaml, parseDocument: vi.fn((text: string, ...more: [Any]) => ((read += text.length), yaml.parseDocument(text, ...more))) }
})
beforeEach(() => (read = 0))
afterEach(() => vi.mocked(parseDocument).mockClear())

const large = (n: number) => {
  const node = (i: number) => `  # Step ${i}.\n  - id: n${i}\n    description: Step ${i}.\n    type: CALL\n    subtype: EMPTY\n    configurations: {pass_through: true} # hands on\n`
  return `# Large.\nmetadata:\n  name: large\nnodes:\n${Array.from({ length: n }, (_, i) => node(i)).join("")}connections:\n${Array.from({ length: n - 1 }, (_, i) => `  - {from_node: n${i}, to_node: n${i + 1}}\n`).join("")}`
}

/** isTrue says that a model says what its text says. */
const isTrue = (m: Model) => expect(readWhole(m.text).value).toEqual(m.value)

test("a change of one node among 500 reads some lines, and leaves all others the very same", () => {
  let h = begin(large(500))
  const text = h.now.text
  read = 0
  const acts: ((v: unknown) => unknown)[] = [
    (v) => edits.addNode(v, { id: "new", type: "CALL", subtype: "EMPTY" }),
    (v) => edits.connect(v, "n499", "result", "new"),
    (v) => edits.move(v, new Map([["n250", { x: 1, y: 2 }]])),
    (v) => edits.setField(v, "n3", "configurations", { pass_through: false }),
    (v) => edits.setMetadata(v, "name", "larger"),
    (v) => edits.remove(v, new Set(["n400"]), new Set()),
  ]
  for (const act of acts) {
    const before = h.now
    h = put(h, edited(before, act(before.value)))
    expect(h.now).not.toBe(before)
    const same = new Set(before.definition.nodes)
    expect(h.now.definition.nodes.filter((n) => same.has(n)).length).toBeGreaterThan(390)
  }
  expect(read).toBeLessThan(8_000)
  isTrue(h.now)
  expect(h.now.text.split("\n").filter((l) => !text.includes(l))).toEqual(["  name: larger", "    configurations: {pass_through: false} # hands on", "    position: {x: 1, y: 2}", "  - id: new", "  - {from_node: n499, to_node: new}"])
  read = 0
  for (let i = 0; i < acts.length; i++) h = undo(h)
  expect([h.now.text === text, read]).toEqual([true, 0])
})

test("typing into the text of 500 nodes reads the lines around the cursor", () => {
  let h = begin(large(500))
  const type = (at: string, insert: string) => {
    read = 0
    h = change(h, h.now.text.replace(at, at + insert), "text")
    return h.now
  }
  expect(type("Step 77.\n    type: CALL\n    subtype: EMPTY\n", "    name: seven\n").definition.nodes[77]!.name).toBe("seven")
  expect(read).toBeLessThan(1_000)
  expect(type("  - id: n100", "x").definition.nodes[100]!.id).toBe("n100x")
  isTrue(h.now)
  // Another node, typed between two others.
  expect(type("  # Step 200.\n", "  - id: between\n    type: CALL\n    subtype: EMPTY\n").definition.nodes).toHaveLength(501)
  expect(read).toBeLessThan(1_000)
  expect(type("  name: large", "st").definition.name).toBe("largest")
  expect(read).toBeLessThan(1_000)
  isTrue(h.now)
  // A quote that is not closed yet: the place is told, and all is well when it is closed.
  const line = h.now.text.slice(0, h.now.text.indexOf("id: n300\n")).split("\n").length
  const broken = type("  - id: n300\n    description: ", '"').broken!
  expect(read).toBeLessThan(1_000)
  expect(broken.line).toBeGreaterThanOrEqual(line)
  expect(broken.line).toBeLessThan(line + 6)
  expect(type('"Step 300.', '"').broken).toBeUndefined()
  expect(read).toBeLessThan(1_000)
  isTrue(h.now)
})

test("what reaches over pieces is read with the whole", () => {
  const anchors = "nodes:\n  - id: a\n    configurations: &x {b: 1}\n  - id: b\n    configurations: *x\n"
  const now = readWhole(anchors)
  expect(now.pieces).toBeUndefined()
  const plain = "nodes:\n  - id: a\n    configurations: {b: 1}\n  - id: b\n    configurations: {}\n"
  let h = begin(plain)
  for (const [at, to] of [["configurations: {b", "configurations: &x {b"], ["configurations: {}", "configurations: *x"], ["nodes:", "nodes: |"], ["nodes: |", "nodes:"], ["  - id: b", "- id: b"], ["- id: b", "  - id: b"]] as const) {
    h = change(h, h.now.text.replace(at, to), "text")
    const whole = readWhole(h.now.text)
    expect([h.now.text, !!h.now.broken]).toEqual([h.now.text, !!whole.broken])
    if (!whole.broken) expect(h.now.value).toEqual(whole.value)
  }
})

// What a person may do to any example, at random: piece by piece it leads to the same as with the whole text, also when it is typed. With TANDEM_LONG=1 they do more.
const steps = process.env.TANDEM_LONG ? 16 : 6
const examples = join(import.meta.dirname, "..", "..", "..", "examples")
test.each(readdirSync(examples).filter((f) => /\.yaml$/.test(f)))("%s", (name) => {
  let h = begin(readFileSync(join(examples, name), "utf8"))
  expect(h.now.pieces).toBeDefined()
  let seed = 11 + name.length
  const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n
  const acts: ((v: Any) => void)[] = [
    (v) => v.nodes.push({ id: `new_${random(1000)}`, description: "x: y\nz", type: "CALL", subtype: "EMPTY", configurations: { a: [1, { b: null }], c: "{{d}}" } }),
    (v) => v.nodes.splice(random(v.nodes.length), v.nodes.length > 1 ? 1 : 0),
    (v) => v.nodes.splice(random(v.nodes.length), 0, { id: `mid_${random(1000)}`, type: "CALL", subtype: "EMPTY" }),
    (v) => v.nodes.forEach((n: Any) => random(2) && (n.position = { x: random(1000), y: -random(1000) })),
    (v) => (v.nodes[random(v.nodes.length)].configurations = { text: "a\n  b\n\nc", list: ["- x", "#"], n: 1.5 }),
    (v) => (v.connections = (v.connections ?? []).filter(() => random(3) > 0)),
    (v) => (v.connections ??= []).splice(random(v.connections.length + 1), 0, { id: `c_${random(10000)}`, from_node: "a", to_node: "b", output_key: "true" }),
    (v) => delete v.nodes[random(v.nodes.length)].description,
    (v) => (v.metadata.name = `name ${random(100)}: #`),
    (v) => (v.nodes[random(v.nodes.length)].name = "été 名"),
  ]
  const alike = (text: string) => text.replace(/\n\s*\n+/g, "\n")
  let cut = 0
  for (let i = 0; i < steps; i++) {
    const value = structuredClone(h.now.value)
    acts[random(acts.length)]!(value)
    const before = h.now
    h = put(h, edited(before, value))
    if (h.now.pieces?.text === h.now.text) cut++
    isTrue(h.now)
    expect(alike(h.now.text)).toBe(alike(rewrite(before.text, value)))
    // The same step, typed backwards and forwards.
    const typed = change(change(h, before.text, "text"), h.now.text, "text")
    expect(typed.now.value).toEqual(h.now.value)
    expect(change(h, before.text, "text").now.value).toEqual(before.value)
    const at = random(h.now.text.length)
    const slip = change(h, h.now.text.slice(0, at) + "\n:-\"#x{ "[random(8)] + h.now.text.slice(at), "text").now
    const whole = readWhole(slip.text)
    if (!slip.broken || !whole.broken) expect([slip.text, slip.unsure ? whole.value : slip.value]).toEqual([slip.text, whole.broken ? h.now.value : whole.value])
  }
  expect(cut).toBeGreaterThan(steps / 2)
})
