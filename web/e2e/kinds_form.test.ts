// @vitest-environment jsdom
// Every kind can be configured: each field of each kind that the real binary knows is set in its form, and gives what was meant. The page is one without a
// browser, since there are hundreds of them; kinds.test.ts fills the examples in the editor.
import { EditorView } from "@codemirror/view"
import { execFileSync } from "node:child_process"
import { createElement, useState } from "react"
import { expect, inject, test, vi } from "vitest"
import KindForm, { type NodeKind } from "../src/kindform"
import { asSchema, editorOf, type FieldSchema, fits, offered, typesOf, type Values } from "../src/kindform/schema"
import { writeLoose } from "../src/kindform/values"
import { act, testPage } from "../src/testing/page"

// The names of records are written by hand here: there is no server to ask.
vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}", { headers: { "Content-Type": "application/json" } })))

// Nothing is drawn here. Without this, what every element would look like is worked out again and again, which is a quarter of all the work.
const noStyle = document.createElement("div").style
for (const w of [window, document.defaultView!]) w.getComputedStyle = () => noStyle

const { node_kinds: kinds, common_fields: common } = JSON.parse(execFileSync(inject("tandem"), ["nodes", "--json"], { encoding: "utf8", maxBuffer: 64 << 20 })) as { node_kinds: NodeKind[]; common_fields: FieldSchema }
const page = testPage("kindform")

/** Kept is a form whose value is kept as an editor would keep it. */
async function form(kind: NodeKind, first: Values) {
  const told: Values[] = []
  const kept = { value: first, told }
  function Kept() {
    const [value, set] = useState(first)
    const onChange = (next: Values) => {
      told.push(next)
      kept.value = next
      set(next)
    }
    return createElement(KindForm, { kind, common, value, onChange })
  }
  await page.show(createElement(Kept, { key: kind.name + Math.random() }))
  return kept
}

const one = <E extends Element = HTMLElement>(at: Element, selector: string): E => {
  const found = at.querySelector<E>(selector)
  if (!found) throw new Error(`there is no ${selector} in ${at.outerHTML.slice(0, 300)}`)
  return found
}

const input = (el: HTMLInputElement | HTMLSelectElement, value: string) =>
  act(async () => {
    el.focus()
    const proto = el instanceof HTMLSelectElement ? HTMLSelectElement.prototype : HTMLInputElement.prototype
    Object.getOwnPropertyDescriptor(proto, "value")!.set!.call(el, value)
    el.dispatchEvent(new Event(el instanceof HTMLSelectElement ? "change" : "input", { bubbles: true }))
  })

const press = (el: Element, key: string) => act(async () => el.dispatchEvent(new KeyboardEvent("keydown", { key, code: key, bubbles: true, cancelable: true })))
const click = (el: HTMLElement) => act(async () => el.click())

const write = (at: Element, text: string) =>
  act(async () => {
    const view = EditorView.findFromDOM(one(at, ".cm-editor"))!
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, userEvent: "input.type" })
  })

const field = (at: string) => page.place.querySelector(`[data-field="${at}"]`)
const button = (at: Element, name: RegExp) => [...at.querySelectorAll<HTMLButtonElement>("button")].find((b) => name.test(b.textContent + " " + b.getAttribute("aria-label")))

async function opened(at: string): Promise<Element> {
  for (let tries = 0; tries < 8 && !field(at); tries++) {
    const more = button(page.place, /more setting/)
    if (!more) break
    await click(more)
  }
  const found = field(at)
  if (!found) throw new Error(`the form shows no field ${at}`)
  return found
}

/** fill enters a value as a person does, with what the form offers for it; what that cannot say is written as YAML. */
async function fill(name: string, at: string, schema: FieldSchema, value: unknown) {
  const place = await opened(at)
  const editor = editorOf(name, schema)
  expect(place.getAttribute("data-editor")).toBe(editor)
  if (!fits(editor, schema, value) || (typeof value !== "string" && ["text", "expression"].includes(editor) && !typesOf(schema).includes("integer"))) return asYaml(place, value)
  switch (editor) {
    case "choice":
      return input(one<HTMLSelectElement>(place, "select"), value as string)
    case "flag": {
      if (place.querySelector('[role="radiogroup"]')) return click([...place.querySelectorAll<HTMLInputElement>("input[type=radio]")].find((r) => r.value === String(value))!)
      const box = one<HTMLInputElement>(place, "input[type=checkbox]")
      await click(box)
      if (box.checked !== value) await click(box)
      return
    }
    case "number":
    case "names":
    case "credential":
      return input(one<HTMLInputElement>(place, "input"), String(value))
    case "text":
    case "expression":
    case "code":
      return write(place, String(value))
    case "data":
      return write(place, writeLoose(value))
    case "tags": {
      const box = one<HTMLInputElement>(place, "input:not([type=hidden])")
      for (const v of [value].flat()) {
        if (asSchema(schema.items).enum) {
          await click(box)
          await click([...document.querySelectorAll<HTMLElement>('[role="option"]')].find((o) => o.textContent === v)!)
        } else {
          await input(box, String(v))
          await press(box, "Enter")
        }
      }
      return
    }
    case "map": {
      for (const [i, [key, v]] of Object.entries(value as Values).entries()) {
        await click(button(place, /Add a line/)!)
        const row = place.querySelectorAll("[data-row]")[i]!
        await input(one<HTMLInputElement>(row, "input"), key)
        await write(place.querySelectorAll("[data-row]")[i]!, writeLoose(v))
      }
      return
    }
    case "objects":
      for (const [i, item] of (value as unknown[]).entries()) {
        await click(button(place, typeof item === "string" ? /plain text/ : /^Add (?!a plain)/)!)
        if (typeof item === "string") await write(one(place, `[data-item="${at}.${i}"]`), writeLoose(item))
        else await fillAll(asSchema(schema.items), item as Values, `${at}.${i}`)
      }
      return
    case "object":
      return fillAll(schema, value as Values, at)
  }
}

async function asYaml(place: Element, value: unknown) {
  await click(button(place, /More about/)!)
  await click([...document.querySelectorAll<HTMLElement>('[role="menuitem"]')].find((m) => /YAML/.test(m.textContent ?? ""))!)
  await write(place, writeLoose(value))
}

async function fillAll(schema: FieldSchema, value: Values, at = "") {
  for (const [name, v] of Object.entries(value)) {
    const own = name === "credential_id" ? { type: "string" } : schema.properties?.[name]
    if (own === undefined) throw new Error(`the schema has no ${name}`)
    await fill(name, at ? `${at}.${name}` : name, asSchema(own), v)
  }
}

/** sample makes a value for everything that a schema has; a second one differs from the default. */
function sample(name: string, s: FieldSchema, level = 0): unknown {
  const type = typesOf(s)[0]
  if (s.enum) return offered(s).at(-1)
  if (type === "boolean") return s.default !== true
  if (type === "integer" || type === "number") return Math.min(s.maximum ?? 1e9, Math.max(s.minimum ?? 1, 7))
  if (type === "array") return s.items === undefined || s.items === true ? [1, { a: "b" }] : [sample(name, asSchema(s.items), level + 1)]
  if (s.properties) return full(s, level + 1)
  if (type === "object") return { first: 1, second: "two words", third: { deep: ["{{start.outputs.x}}", null] } }
  return type === undefined ? { any: [true, 1.5, "text: with colon", ""] } : `{{start.outputs.${name}}}`
}

function full(s: FieldSchema, level = 0): Values {
  return Object.fromEntries(Object.entries(s.properties ?? {}).map(([name, p]) => [name, sample(name, asSchema(p), level)]))
}

const schemaOf = (kind: NodeKind) => kind.config_schema as FieldSchema

test("there are kinds, and each has an example", () => {
  expect(kinds.length).toBeGreaterThan(50)
  expect(kinds.filter((k) => !k.examples?.length).map((k) => k.name)).toEqual([])
})

// Many kinds share fields; each one is tried once. So is what is set in the same way and takes the same, whatever it is called and described as, unless TANDEM_LONG=1
// (`make test-long`) asks for each. The other fields of a kind do not matter then, and drawing them takes its time.
const words = new Set(["title", "description", "examples", "default", "x-title-zh", "x-description-zh", "x-older-names"])
const conditions = new Set(["x-with"])
const alike = (name: string, schema: FieldSchema) =>
  process.env.TANDEM_LONG ? name + JSON.stringify(schema) : editorOf(name, schema) + JSON.stringify(schema, (key, v: unknown) => (words.has(key) ? undefined : conditions.has(key) ? true : v))
const seen = new Set<string>()
const fields = kinds.flatMap((kind) =>
  Object.entries(schemaOf(kind).properties ?? {}).flatMap(([name, s]) => {
    const schema = asSchema(s)
    const key = alike(name, schema)
    if (seen.has(key)) return []
    seen.add(key)
    return [[`${kind.name}.${name}`, kind, name, schema] as const]
  }),
)

/** narrowed is a kind with some of its fields. */
const narrowed = (kind: NodeKind, names: string[]): NodeKind => {
  const schema = schemaOf(kind)
  return { ...kind, examples: [], config_schema: { ...schema, required: [], "x-need": [], properties: Object.fromEntries(names.map((n) => [n, schema.properties![n]!])) } }
}

/** namesTried are the fields of a kind that are tried, with those that they depend on. */
const namesTried = (kind: NodeKind) => [...new Set(fields.filter(([, k]) => k === kind).flatMap(([, , name, schema]) => [...Object.keys(schema["x-with"] ?? {}), name]))]

const shown: [string, NodeKind][] = process.env.TANDEM_LONG
  ? kinds.map((k) => [k.name, k])
  : kinds.map((k) => [k, namesTried(k)] as const).filter(([, names]) => names.length > 0).map(([k, names]) => [k.name, narrowed(k, names)])

test.each(shown)("%s: showing a value changes nothing, and everything in it is shown", async (_, kind) => {
  const schema = schemaOf(kind)
  const value = { unknown_one: { a: [1] }, ...full(schema), timeout: 5 }
  const kept = await form(kind, value)
  expect(kept.told).toEqual([])
  expect(Object.keys(schema.properties ?? {}).filter((name) => !field(name))).toEqual([])
  expect(page.place.textContent).toContain(schema.additionalProperties === false ? "unknown_one" : "")
})

test.each(fields)("%s can be set to anything that it takes, beside what it is for", async (_, kind, name, schema) => {
  const properties = schemaOf(kind).properties!
  const beside = Object.fromEntries(Object.entries(schema["x-with"] ?? {}).map(([other, values]) => [other, typesOf(asSchema(properties[other])).includes("boolean") ? values[0] === "true" : values[0]]))
  const kept = await form(narrowed(kind, [...Object.keys(beside), name]), beside)
  const value = sample(name, schema)
  await fill(name, name, schema, value)
  expect(JSON.stringify(kept.value)).toBe(JSON.stringify({ ...beside, [name]: value }))
})
