// Every kind can be configured in the editor: a kind's form is opened there and filled as a person fills it, and the definition is that of the kind's example. These are the
// examples that need something which none before them needed, one of each family at least, and with TANDEM_LONG=1 (`make test-long`) all. kinds_form.test.ts sets every field of
// every kind.
import type { Locator, Page } from "playwright-core"
import { expect, test, vi } from "vitest"
import { parse } from "yaml"
import type { NodeKind } from "../src/kindform"
import { asSchema, editorOf, type FieldSchema, fits, type Values } from "../src/kindform/schema"
import { writeLoose } from "../src/kindform/values"
import { accessible } from "./axe"
import { follow, world } from "./tandem"

const { tandem, open, quiet } = world()

const families = ["ACTION", "AI_AGENT", "CALL", "EXTERNAL_ACTION", "FLOW", "HUMAN_IN_THE_LOOP", "MEMORY", "TOOL", "TRIGGER"]
const kindsOf = async () => (await tandem.api<{ node_kinds: NodeKind[] }>("GET", "/node-kinds")).node_kinds

/** Example is one of the examples of a kind. */
type Example = { kind: NodeKind; id: string; value: Values }

const examplesOf = (kinds: NodeKind[]): Example[] =>
  kinds.flatMap((kind) => kind.examples!.map((e, i) => ({ kind, id: `${kind.name.toLowerCase().replace(/\W/g, "_")}_${i}`, value: (e.configurations ?? {}) as Values })))

/** draft is a workflow that nobody has saved yet: a node for each example, with nothing set. */
const draft = (examples: Example[]) =>
  `metadata:\n  name: forms\nnodes:\n${examples.map(({ kind, id }) => `  - id: ${id}\n    type: ${kind.type}\n    subtype: ${kind.subtype}\n`).join("")}connections: []\n`

const kept = async (page: Page): Promise<Record<string, string>> => {
  const text = await page.evaluate(() => (JSON.parse(localStorage.getItem("tandem.draft.new") ?? "{}") as { text?: string }).text ?? "")
  const nodes = (parse(text) as { nodes: { id: string; configurations?: Values }[] }).nodes
  return Object.fromEntries(nodes.map((n) => [n.id, JSON.stringify(n.configurations ?? {})]))
}

async function start(text: string, options = {}): Promise<Page> {
  const page = await open("/healthz", options)
  await page.evaluate((text) => localStorage.setItem("tandem.draft.new", JSON.stringify({ text, revision: 0, base: "", at: Date.now() })), text)
  return page
}

async function opened(form: Locator, at: string): Promise<Locator> {
  const place = form.locator(`[data-field="${at}"]`)
  for (let tries = 0; tries < 4 && (await place.count()) === 0; tries++) await form.getByRole("button", { name: /more setting/ }).first().click()
  await place.waitFor()
  return place
}

async function fill(page: Page, form: Locator, name: string, at: string, schema: FieldSchema, value: unknown) {
  const place = await opened(form, at)
  const editor = editorOf(name, schema)
  if (!fits(editor, schema, value)) {
    await place.getByRole("button", { name: /^More about/ }).click()
    await page.getByRole("menuitem", { name: /YAML/ }).click()
    return place.locator(".cm-content").fill(writeLoose(value))
  }
  switch (editor) {
    case "choice":
      return void (await place.locator("select").selectOption(value as string))
    case "flag": {
      const box = place.getByRole("switch")
      if ((await box.isChecked()) === value) await box.click({ force: true })
      await box.setChecked(value as boolean, { force: true })
      return
    }
    case "number":
    case "names":
    case "credential":
      return place.locator("input").first().fill(String(value))
    case "text":
    case "expression":
    case "code":
      return place.locator(".cm-content").fill(String(value))
    case "tags": {
      const box = place.locator("input:not([type=hidden])")
      for (const v of [value].flat()) {
        await box.click()
        if (asSchema(schema.items).enum) await page.getByRole("option", { name: String(v), exact: true }).click()
        else {
          await box.fill(String(v))
          await box.press("Enter")
        }
      }
      return
    }
    case "map":
      for (const [i, [key, v]] of Object.entries(value as Values).entries()) {
        await place.getByRole("button", { name: "Add a line" }).click()
        const row = place.locator("[data-row]").nth(i)
        await row.locator("input").fill(key)
        await row.locator(".cm-content").fill(writeLoose(v))
      }
      return
    case "objects":
      for (const [i, item] of (value as Values[]).entries()) {
        await place.getByRole("button", { name: /^Add (?!a plain)/ }).last().click()
        await fillAll(page, form, asSchema(schema.items), item, `${at}.${i}`)
      }
      return
    case "object":
      return fillAll(page, form, schema, value as Values, at)
    default:
      return place.locator(".cm-content").fill(writeLoose(value))
  }
}

async function fillAll(page: Page, form: Locator, schema: FieldSchema, value: Values, at = "") {
  for (const [name, v] of Object.entries(value)) await fill(page, form, name, at ? `${at}.${name}` : name, name === "credential_id" ? { type: "string" } : asSchema(schema.properties?.[name]), v)
}

/** editorsIn names what a person needs to enter a value. */
function editorsIn(schema: FieldSchema, value: Values): string[] {
  return Object.entries(value).flatMap(([name, v]) => {
    const field = name === "credential_id" ? ({ type: "string" } as FieldSchema) : asSchema(schema.properties?.[name])
    const editor = editorOf(name, field)
    if (!fits(editor, field, v)) return ["yaml"]
    if (editor === "object") return [editor, ...editorsIn(field, v as Values)]
    if (editor === "objects") return [editor, ...(v as Values[]).flatMap((item) => editorsIn(asSchema(field.items), item))]
    return [editor === "tags" && asSchema(field.items).enum ? "tags that are offered" : editor]
  })
}

/** filled are the examples of some families that are filled. Short ones show the same as long ones. */
function filled(kinds: NodeKind[], wanted: string[]): Example[] {
  const all = examplesOf(kinds.filter((k) => wanted.includes(k.type)))
  if (process.env.TANDEM_LONG) return all
  const size = ({ value }: Example) => JSON.stringify(value).length
  const known = new Set<string>()
  return all
    .sort((a, b) => size(a) - size(b))
    .filter(({ kind, value }) => {
      const before = known.size
      for (const what of [kind.type, ...editorsIn(kind.config_schema as FieldSchema, value)]) known.add(what)
      return known.size > before
    })
}

test("these are all families", async () => {
  expect([...new Set((await kindsOf()).map((k) => k.type))].sort()).toEqual(families)
})

const groups: [string, string[]][] = process.env.TANDEM_LONG ? families.map((f) => [f, [f]]) : [["all families", families]]

test.each(groups)("kinds of %s are configured in the editor, and the definition is that of their examples", { timeout: 900_000 }, async (_, wanted) => {
  const examples = filled(await kindsOf(), wanted)
  expect([...new Set(examples.map((e) => e.kind.type))].sort()).toEqual(wanted)
  const page = await start(draft(examples))
  await page.goto("/workflows/new")
  await page.locator(".react-flow__node").first().waitFor()
  const all: Record<string, string> = {}
  for (const { kind, id, value } of examples) {
    await follow(page, `/workflows/new?node=${id}`)
    // The form of the node before may be one of the same kind.
    const form = page.getByRole("complementary", { name: `Node ${id}`, exact: true }).locator(`[data-kind="${kind.name}"]`)
    await form.waitFor()
    await fillAll(page, form, kind.config_schema as FieldSchema, value)
    all[id] = JSON.stringify(value)
  }
  // What was typed into one node is kept, although the next was opened at once.
  await vi.waitFor(async () => expect(await kept(page)).toEqual(all), { timeout: 60_000, interval: 100 })
  quiet()
})

test("what is typed offers what earlier nodes put out; the form can be used by everybody, in both languages and schemes", async () => {
  const text = `metadata: {name: greet}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, configurations: {input_schema: {type: object, properties: {city: {type: string, title: The city}}}}}
  - {id: fetch, type: ACTION, subtype: HTTP_REQUEST, configurations: {pagination: {}, surprise: 1}}
connections:
  - {from_node: start, to_node: fetch}
`
  for (const options of [{ locale: "en-GB" }, { locale: "zh-CN", colorScheme: "dark" as const }]) {
    const page = await start(text, options)
    await page.goto("/workflows/new?node=fetch")
    const form = page.locator('[data-kind="ACTION.HTTP_REQUEST"]')
    const url = form.locator('[data-field="url"]')
    await url.getByText(options.locale === "zh-CN" ? "必填" : "required", { exact: true }).waitFor()
    // Validation of the server stands at its field, and what the kind does not have is shown.
    await url.getByText(/"url"/).waitFor()
    await form.locator('[data-unknown="surprise"]').waitFor()
    await accessible(page, '[data-kind]')
    if (options.locale === "zh-CN") continue
    await url.locator(".cm-content").click()
    await page.keyboard.type("https://example.org/{{ci")
    await page.getByRole("option", { name: /start\.outputs\.city/ }).click()
    await vi.waitFor(async () => expect((await kept(page)).fetch).toBe('{"pagination":{},"surprise":1,"url":"https://example.org/{{start.outputs.city}}"}'), { timeout: 60_000, interval: 100 })
  }
  quiet()
})
