import type { Locator, Page } from "playwright-core"
import { expect, test } from "vitest"
import { accessible, readableUnderPointer } from "./axe"
import { follow, world } from "./tandem"

const { tandem, open, quiet } = world()

const file = (name: string, more = "") => `# Greets whoever starts it.
metadata:
  name: ${name}
  description: Greets.
nodes:
  # Somebody starts it.
  - id: start
    description: A person starts it.
    type: TRIGGER
    subtype: MANUAL
  - id: greet # says hello
    description: Hands on.
    type: CALL
    subtype: EMPTY
    configurations: {pass_through: true}
connections:
  - {from_node: start, to_node: greet}
${more}`

const make = async (name: string, text = file(name)) => {
  await tandem.api("POST", `/workflows?id=${name}`, text)
  return name
}
const sourceOf = async (id: string) => (await tandem.api<{ source: string }>("GET", `/workflows/${id}?include=source`)).source
const card = (page: Page, name: string) => page.locator(`.react-flow__node[data-id="${name}"]`)
const text = (page: Page) => page.getByRole("textbox", { name: "Text of the workflow (YAML)" })
const line = (page: Page, what: string) => text(page).locator(".cm-line", { hasText: what })

const description = (page: Page) => page.getByRole("complementary").getByRole("textbox", { name: /^Description/ })
const said = async (page: Page) => (await description(page).textContent()) || (await description(page).inputValue().catch(() => ""))
async function describe(page: Page, words: string) {
  await page.getByRole("tab", { name: "General" }).click()
  await description(page).fill(words)
}

async function middle(page: Page, selector: string) {
  const box = await page.locator(selector).boundingBox()
  return { x: box!.x + box!.width / 2, y: box!.y + box!.height / 2 }
}

test("a workflow is built on the canvas from nothing, saved, run and deployed", async () => {
  const page = await open("/workflows/new")
  await page.getByRole("button", { name: "Manual trigger" }).click()
  await card(page, "start").waitFor()
  await page.keyboard.press("Escape")
  await page.getByRole("complementary").waitFor({ state: "detached" })

  // From a port into the empty, then by what it is called.
  const from = await middle(page, '.react-flow__node[data-id="start"] .react-flow__handle-right')
  await page.mouse.move(from.x, from.y)
  await page.mouse.down()
  await page.mouse.move(from.x + 120, from.y + 80, { steps: 6 })
  await page.mouse.up()
  await page.getByRole("combobox", { name: /What should happen/ }).fill("空操作")
  await page.getByRole("option", { name: /Empty/ }).waitFor()
  await page.keyboard.press("Enter")
  await card(page, "step").waitFor()
  await page.locator(".react-flow__edge").first().waitFor({ state: "attached" })

  // A condition behind it by the keyboard alone.
  await page.keyboard.press("Escape")
  await page.getByRole("complementary").waitFor({ state: "detached" })
  await card(page, "step").click()
  await page.getByRole("complementary", { name: "Node step" }).waitFor()
  await page.keyboard.press("Escape")
  await page.getByRole("complementary").waitFor({ state: "detached" })
  await page.keyboard.press("/")
  await page.getByRole("combobox", { name: /What should happen/ }).fill("along true or false")
  await page.getByRole("option", { name: /^If/ }).click()
  await card(page, "if").waitFor()
  await page.locator(".react-flow__edge").nth(1).waitFor({ state: "attached" })

  // What is missing is told on the card and in the list, which leads there.
  await page.getByRole("button", { name: /1 error/ }).click()
  await page.getByRole("region", { name: "Problems" }).getByText(/condition_expression.*is required/).click()
  await page.getByRole("complementary", { name: "Node if" }).waitFor()
  await page.keyboard.press("Escape")
  await page.getByLabel("Name of the workflow").fill("from_nothing")
  await page.getByLabel("Name of the workflow").press("Enter")
  await page.getByRole("button", { name: "Save" }).click()
  await page.getByText("Not saved: there are errors").waitFor()
  await card(page, "if").click()
  await page.keyboard.press("Escape")
  await page.keyboard.press("Delete")
  await card(page, "if").waitFor({ state: "detached" })

  await page.getByRole("button", { name: "Save", exact: true }).click()
  await page.waitForURL(/\/workflows\/from-nothing/)
  await page.getByText("Saved as revision 1").first().waitFor()
  const w = await tandem.api<{ nodes: { id: string }[]; connections: { from_node: string; to_node: string }[] }>("GET", "/workflows/from-nothing")
  expect(w.nodes.map((n) => n.id)).toEqual(["start", "step"])
  expect(w.connections).toMatchObject([{ from_node: "start", to_node: "step" }])

  await page.getByRole("button", { name: "Deploy" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Deploy" }).click()
  await page.getByText("Revision 1 is deployed").waitFor()
  await page.getByText("Deployed", { exact: true }).waitFor()
  await page.getByRole("button", { name: "Run" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Start" }).click()
  await page.waitForURL(/\/executions\/exec_/)
  const id = page.url().split("/").pop()!.split("?")[0]
  expect((await tandem.api<{ execution: { workflow_id: string } }>("GET", `/executions/${id}`)).execution.workflow_id).toBe("from-nothing")
  quiet()
})

test("text and canvas follow each other, and comments survive", async () => {
  const id = await make("follows")
  const page = await open(`/workflows/${id}?yaml=1`)
  await card(page, "greet").waitFor()
  await line(page, "# says hello").waitFor()

  // The text is changed: the canvas shows it.
  await line(page, "to_node: greet").click()
  await page.keyboard.press("End")
  await page.keyboard.press("Enter")
  await page.keyboard.insertText("- {from_node: greet, to_node: start}")
  await page.locator(".react-flow__edge").nth(1).waitFor({ state: "attached" })

  // The canvas is changed: the text shows it, and nothing else in it has changed.
  await page.locator(".react-flow__pane").click({ position: { x: 20, y: 20 } })
  const at = await middle(page, '.react-flow__node[data-id="greet"]')
  await page.mouse.move(at.x, at.y)
  await page.mouse.down()
  await page.mouse.move(at.x - 30, at.y + 90, { steps: 5 })
  await page.mouse.up()
  await line(page, "position: {x:").waitFor()
  await page.getByRole("button", { name: "Undo (Ctrl Z)" }).click()
  await line(page, "position: {x:").waitFor({ state: "detached" })
  await page.getByRole("button", { name: "Redo (Ctrl Shift Z)" }).click()
  await line(page, "position: {x:").waitFor()

  // While the text cannot be read, the canvas stays and says so.
  await line(page, "- {from_node: greet").click()
  await page.keyboard.press("End")
  await page.keyboard.press("Backspace")
  await page.getByRole("alert").getByText(/The text cannot be read/).waitFor()
  await card(page, "greet").waitFor()
  await page.keyboard.press("Home")
  await page.keyboard.press("Shift+End")
  await page.keyboard.press("Delete")
  await page.getByRole("alert").getByText(/The text cannot be read/).waitFor({ state: "detached" })
  await page.keyboard.press("Control+s")
  await page.getByText("Saved as revision 2").first().waitFor()
  const saved = await sourceOf(id)
  expect(saved.replace(/\n {4}position: .*/, "").replace(/\n\s*\n+(?=$)/, "\n").trim()).toBe(file(id).trim())
  quiet()
})

test("a draft survives a reload and can be discarded", async () => {
  const id = await make("drafts")
  const page = await open(`/workflows/${id}`)
  await card(page, "greet").click()
  const drawer = page.getByRole("complementary", { name: "Node greet" })
  await describe(page, "Typed and not saved.")
  await page.getByText(/Changes not saved yet/).waitFor()
  await page.reload()
  await page.getByText(/Your draft was found again/).waitFor()
  await drawer.getByRole("tab", { name: "General" }).click()
  expect(await said(page)).toContain("Typed and not saved.")
  expect(await sourceOf(id)).toBe(file(id))
  await page.getByRole("button", { name: "Discard the draft" }).click()
  await page.getByText("Saved as revision 1").waitFor()
  await page.reload()
  await card(page, "greet").waitFor()
  expect(await page.getByText(/Your draft was found again/).count()).toBe(0)
  quiet()
})

test("what two editors change at once is shown as a difference, and either can be kept", async () => {
  const id = await make("twice")
  const [one, two] = [await open(`/workflows/${id}`), await open(`/workflows/${id}`)]
  for (const [page, words] of [[one, "Of the first."], [two, "Of the second."]] as const) {
    await card(page, "greet").click()
    await describe(page, words)
    await page.getByText(/Changes not saved yet/).waitFor()
  }
  await one.getByRole("button", { name: "Save" }).click()
  await one.getByText("Saved as revision 2").first().waitFor()
  await two.getByRole("button", { name: "Save" }).click()
  const dialog = two.getByRole("dialog", { name: "Somebody else has saved revision 2" })
  await dialog.getByText("Of the first.").waitFor()
  await dialog.getByText("Of the second.").waitFor()
  await dialog.getByRole("button", { name: "Save mine as the next revision" }).click()
  await two.getByText("Saved as revision 3").first().waitFor()
  expect(await sourceOf(id)).toContain("Of the second.")
  // Who has changed nothing sees what the other has saved, without asking.
  await one.getByText("Saved as revision 3").first().waitFor()
  expect(await said(one)).toContain("Of the second.")
  quiet()
})

test("nodes are chosen, copied, pasted and removed together", async () => {
  const id = await make("clips")
  const page = await open(`/workflows/${id}`)
  await card(page, "greet").waitFor()
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
  await page.locator(".react-flow__pane").click({ position: { x: 20, y: 20 } })
  await page.keyboard.press("Control+a")
  await page.keyboard.press("Control+c")
  await page.keyboard.press("Control+v")
  await card(page, "greet_2").waitFor()
  await card(page, "start_2").waitFor()
  await expect.poll(() => page.locator(".react-flow__edge").count()).toBe(2)
  await page.keyboard.press("Delete")
  await card(page, "greet_2").waitFor({ state: "detached" })
  await page.keyboard.press("Control+z")
  await card(page, "greet_2").waitFor()
  quiet()
})

test("names and settings from outside are only text", async () => {
  const hostile = `<img src=x onerror="window.hit=1">{{x}}\u202e`
  const text = JSON.stringify({
    metadata: { name: `hostile ${hostile}` },
    nodes: [
      { id: "start", name: hostile.replaceAll(" ", "_"), description: hostile, type: "TRIGGER", subtype: "MANUAL" },
      { id: "b", description: hostile, type: "CALL", subtype: "EMPTY", configurations: { pass_through: true } },
    ],
    connections: [{ from_node: "start", to_node: "b", conversion_function: "x" }],
    notes: [{ id: "n", text: hostile, position: { x: 0, y: -200 } }],
  }, null, 2)
  await tandem.api("POST", "/workflows?id=hostile", text)
  const page = await open("/workflows/hostile?yaml=1&node=start")
  await card(page, "start").waitFor()
  await page.getByRole("complementary", { name: /^Node <img/ }).waitFor()
  expect(await page.evaluate(() => [(window as unknown as { hit?: number }).hit, document.querySelectorAll("main img:not(.cm-widgetBuffer)").length])).toEqual([undefined, 0])
  quiet()
})

test("one node is run alone, and from it on, with pinned data, before anything is saved", async () => {
  const id = await make("tried", file("tried").replace("connections:", "  - {id: after, description: Ends it., type: CALL, subtype: EMPTY, configurations: {pass_through: true}}\nconnections:\n  - {from_node: greet, to_node: after}"))
  const page = await open(`/workflows/${id}`)
  await card(page, "greet").click()
  await describe(page, "Not saved.")
  await page.getByRole("button", { name: /Run this node/ }).click()
  const dialog = page.getByRole("dialog", { name: "Try greet" })
  const pin = dialog.getByRole("textbox", { name: "What start puts out as result" })
  // As a person does. Filled in at once, over the coloured text that is there, the browser itself puts styles in, which the page forbids.
  await pin.press("ControlOrMeta+a")
  await pin.press("Delete")
  await page.keyboard.insertText('{"name": "pinned Ada"}')
  await dialog.getByRole("button", { name: "Run", exact: true }).click()
  await dialog.getByText("succeeded").waitFor()
  await dialog.getByText(/pinned Ada/).last().waitFor()
  const one = (await dialog.getByRole("link", { name: "Open the run" }).getAttribute("href"))!.split("/").pop()!
  const record = await tandem.api<{ execution: { trigger_type?: string; test: { node: string; pinned: string[] }; node_executions: Record<string, unknown> } }>("GET", `/executions/${one}`)
  expect(record.execution.test).toMatchObject({ node: "greet", pinned: ["start"] })
  expect(Object.keys(record.execution.node_executions)).not.toContain("after")
  await dialog.getByText("From here on").click()
  await dialog.getByRole("button", { name: "Run", exact: true }).click()
  await dialog.locator(`a:not([href$="${one}"])`, { hasText: "Open the run" }).waitFor()
  const two = (await dialog.getByRole("link", { name: "Open the run" }).getAttribute("href"))!.split("/").pop()!
  expect((await tandem.api<typeof record>("GET", `/executions/${two}`)).execution.node_executions).toHaveProperty("after")
  expect(await sourceOf(id)).not.toContain("Not saved.")
  quiet()
})

test("what is missing to deploy is listed, and each leads to its place", async () => {
  await make("missing", file("missing").replace("type: CALL\n    subtype: EMPTY\n    configurations: {pass_through: true}", "type: ACTION\n    subtype: HTTP_REQUEST\n    configurations: {method: GET, url: 'https://example.com', credential_id: nobody_has_it}"))
  const page = await open("/workflows/missing")
  await card(page, "greet").waitFor()
  await page.getByRole("button", { name: "Deploy" }).click()
  const dialog = page.getByRole("dialog")
  await dialog.getByRole("button", { name: "Deploy" }).click()
  await dialog.getByText("1 thing is missing").waitFor()
  expect(await dialog.getByRole("link", { name: "Go to where it is made" }).getAttribute("href")).toBe("/settings/credentials")
  await dialog.getByRole("button", { name: "Show it on the canvas" }).click()
  await page.getByRole("complementary", { name: "Node greet" }).waitFor()
  quiet()
})

test("a comment on the canvas is part of the file", async () => {
  const id = await make("noted")
  const page = await open(`/workflows/${id}`)
  await card(page, "greet").waitFor()
  await page.getByRole("button", { name: "Write a comment on the canvas" }).click()
  await page.getByRole("textbox", { name: "Comment" }).fill("Why it greets")
  await page.locator(".react-flow__node-note", { hasText: "Why it greets" }).waitFor()
  await page.getByRole("button", { name: "Save" }).click()
  await page.getByText("Saved as revision 2").first().waitFor()
  expect(await sourceOf(id)).toContain("text: Why it greets")
  quiet()
})

test("a node gets another id, and everything that names it follows", async () => {
  const id = await make("renames", file("renames").replace("connections:", "  - {id: after, description: 'Ends {{greet.outputs.x}}.', type: CALL, subtype: EMPTY, configurations: {pass_through: true}, input_params: {said: '{{greet.outputs.said}}'}}\nconnections:\n  - {from_node: greet, to_node: after}"))
  const page = await open(`/workflows/${id}?node=greet`)
  await page.getByRole("button", { name: "Change the id (greet)" }).click()
  const dialog = page.getByRole("dialog", { name: "Change the id of greet" })
  await dialog.getByText("Changed with it: connections: 2, placeholders and expressions: 1, lists that name it: 0.").waitFor()
  await dialog.getByRole("textbox", { name: "New id" }).fill("start")
  await dialog.getByText("Another node has this id or name.").waitFor()
  expect(await dialog.getByRole("button", { name: "Change the id" }).isDisabled()).toBe(true)
  await accessible(page, "[role=dialog]")
  await dialog.getByRole("textbox", { name: "New id" }).fill("hello")
  await page.keyboard.press("Enter")
  await page.waitForURL(/node=hello/)
  await page.getByRole("complementary", { name: "Node hello" }).waitFor()
  await page.getByRole("button", { name: "Save", exact: true }).click()
  await page.getByText("Saved as revision 2").first().waitFor()
  const saved = await sourceOf(id)
  for (const part of ["- id: hello # says hello", "{from_node: start, to_node: hello}", "{from_node: hello, to_node: after}", "{{hello.outputs.said}}"]) expect(saved).toContain(part)
  quiet()
})

test("a connection opens: its output and the function that changes what it carries", async () => {
  const id = await make("wired")
  const page = await open(`/workflows/${id}`)
  await card(page, "greet").waitFor()
  // By the keyboard, as a line is hard to hit.
  await page.locator('.react-flow__edge[data-id="start-result-greet"]').focus()
  await page.keyboard.press("Enter")
  await page.waitForURL(/wire=start-result-greet/)
  const drawer = page.getByRole("complementary", { name: "Connection start → greet" })
  await drawer.getByRole("textbox", { name: "Function that changes what it carries" }).click()
  await page.keyboard.insertText("{name: upper(value.name)}")
  await page.getByText(/Changes not saved yet/).waitFor()
  await accessible(page)
  await page.getByRole("button", { name: "Save", exact: true }).click()
  await page.getByText("Saved as revision 2").first().waitFor()
  expect(await tandem.api("GET", `/workflows/${id}`)).toMatchObject({ connections: [{ conversion_function: "{name: upper(value.name)}" }] })
  await page.reload()
  await drawer.getByText("upper(value.name)").waitFor()
  await drawer.getByRole("button", { name: "Delete" }).click()
  await page.locator(".react-flow__edge").waitFor({ state: "detached" })
  quiet()
})

test("what somebody types while a new workflow is saved for the first time is still there at its address", async () => {
  const page = await open("/workflows/new")
  await page.getByRole("button", { name: "Manual trigger" }).click()
  await card(page, "start").click()
  await page.getByLabel("Name of the workflow").fill("typed_on")
  await page.getByLabel("Name of the workflow").press("Enter")
  let release = () => {}
  const held = new Promise<void>((done) => (release = done))
  const asked = page.waitForRequest((r) => r.method() === "POST" && r.url().endsWith("/api/v1/workflows"))
  await page.route("**/api/v1/workflows", async (route) => {
    if (route.request().method() === "POST") await held
    await route.continue()
  })
  await page.getByRole("button", { name: "Save", exact: true }).click()
  await asked
  await describe(page, "Typed while it was saved.")
  release()
  await page.waitForURL(/typed-on/)
  await page.getByText(/Changes not saved yet/).waitFor()
  await card(page, "start").click()
  await page.getByRole("tab", { name: "General" }).click()
  await expect.poll(() => said(page)).toBe("Typed while it was saved.")
  // It is a draft of that workflow, and the next new one begins with nothing.
  await page.reload()
  await page.getByText(/Changes not saved yet/).waitFor()
  await page.goto("/workflows/new")
  await page.getByText("What starts this workflow?").waitFor()
  quiet()
})

test("a new workflow keeps what can be undone when it gets its address, and one may be called new", async () => {
  const page = await open("/workflows/new")
  await page.getByRole("button", { name: "Manual trigger" }).click()
  await card(page, "start").waitFor()
  await page.getByLabel("Name of the workflow").fill("new")
  await page.getByLabel("Name of the workflow").press("Enter")
  await page.getByRole("button", { name: "Save", exact: true }).click()
  await page.getByText("Saved as revision 1").first().waitFor()
  expect(await tandem.api("GET", "/workflows/new")).toMatchObject({ metadata: { name: "new" } })
  await page.getByRole("button", { name: "Undo (Ctrl Z)" }).click()
  await page.getByText(/Changes not saved yet/).waitFor()
  await expect.poll(() => page.getByLabel("Name of the workflow").inputValue()).toBe("new_workflow")
  await page.getByRole("button", { name: "Redo (Ctrl Shift Z)" }).click()
  await page.getByText("Saved as revision 1").first().waitFor()
  await page.reload()
  await card(page, "start").waitFor()
  await page.getByRole("link", { name: "Revisions" }).waitFor()
  // Another one is begun all the same.
  await page.goto("/workflows")
  await page.getByRole("link", { name: "New workflow" }).click()
  await page.getByText("What starts this workflow?").waitFor()
  quiet()
})

test("a field of the input is dragged into a setting, or inserted by the keyboard, and its value is shown while one writes", async () => {
  const id = await make("dragged", file("dragged").replace("type: CALL\n    subtype: EMPTY\n    configurations: {pass_through: true}", "type: FLOW\n    subtype: IF\n    configurations: {condition_expression: 'true'}\n    input_params: {said: Hello}"))
  await tandem.api("POST", `/workflows/${id}/execute`, { inputs: { person: { name: "Ada", age: 36 } }, wait_seconds: 20 })
  const page = await open(`/workflows/${id}?node=greet`)
  const drawer = page.getByRole("complementary", { name: "Node greet" })
  const tree = drawer.getByRole("tree", { name: "What comes in" })
  await tree.getByRole("treeitem", { name: /^person/ }).click()
  const row = tree.getByRole("treeitem", { name: /^name: "Ada"/ })
  // Into an expression, which reads its input.
  const condition = drawer.getByRole("textbox", { name: /^Condition expression/ })
  await condition.fill("")
  await row.dragTo(condition)
  await expect.poll(() => condition.textContent()).toBe("input.person.name")
  await page.keyboard.type(' == "Ada"')
  await drawer.getByText('input.person.name = "Ada"').waitFor()
  // Into a text, as a placeholder, by the keyboard alone.
  await drawer.getByRole("tab", { name: "General" }).click()
  const said = drawer.getByRole("textbox", { name: /said/ })
  await said.click()
  await page.keyboard.press("End")
  await page.keyboard.type(" ")
  await row.click()
  await tree.focus()
  await page.keyboard.press("i")
  await expect.poll(() => said.textContent()).toBe("Hello {{start.outputs.person.name}}")
  await drawer.getByText("→ Hello Ada").waitFor()
  await accessible(page)
  await page.getByRole("button", { name: "Save", exact: true }).click()
  await page.getByText("Saved as revision 2").first().waitFor()
  expect(await sourceOf(id)).toContain('said: "Hello {{start.outputs.person.name}}"')
  quiet()
})

test("the value of a whole expression, or why it has none, is shown while one types", async () => {
  const text = `metadata: {name: worth}
nodes:
  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}
  - {id: big, description: d, type: FLOW, subtype: IF, configurations: {condition_expression: "false"}}
  - {id: tell, description: d, type: HUMAN_IN_THE_LOOP, subtype: IN_APP_APPROVAL, configurations: {title: "Ask"}}
connections:
  - {from_node: start, to_node: big}
  - {from_node: big, to_node: tell, output_key: "true"}
`
  const id = await make("worth", text)
  await tandem.api("POST", `/workflows/${id}/execute`, { inputs: { lines: [{ price: 5 }, { price: 15 }], name: "Ada" }, wait_seconds: 20 })
  const page = await open(`/workflows/${id}?node=big`)
  const drawer = page.getByRole("complementary", { name: "Node big" })
  const condition = drawer.getByRole("textbox", { name: /^Condition expression/ })
  // The browser would keep the colours of what stood there before.
  const write = async (field: Locator, words: string) => {
    await field.fill("")
    await page.keyboard.insertText(words)
  }
  const worth = drawer.getByRole("status", { name: "What it is worth in the last run" })
  await write(condition, "sum(input.lines, l => l.price) * 2 > 10")
  await worth.getByText("→ true").waitFor()
  await write(condition, "sum(input.lines, l => l.price) * 2")
  await worth.getByText("→ 40").waitFor()
  await accessible(page)
  // What is wrong is told with its place, and is not an error of the page.
  await write(condition, "sum(input.lines")
  await worth.getByText(/^→ line 1, column \d+/).waitFor()
  await write(condition, "nmae == 'Ada'")
  await worth.getByText('did you mean "name"?').waitFor()
  await write(condition, "name == 'Ada'")
  await worth.getByText("→ true").waitFor()
  // A node that has not run reads the end of the last run.
  await follow(page, `/workflows/${id}?node=tell`)
  const ask = page.getByRole("complementary", { name: "Node tell" })
  await write(ask.getByRole("textbox", { name: /^Title/ }), "Buy for {{name}}: {{start.outputs.lines[1].price}}?")
  await ask.getByRole("status").getByText("→ Buy for Ada: 15?").waitFor()
  // Only the last of what was typed is asked for.
  const asked: string[] = []
  page.on("request", (r) => r.url().endsWith("/workflows/evaluate") && asked.push(r.postData() ?? ""))
  await ask.getByRole("textbox", { name: /^Title/ }).fill("")
  await page.keyboard.type("{{name}} of {{start.outputs.lines[0].price}}", { delay: 5 })
  await ask.getByRole("status").getByText("→ Ada of 5").waitFor()
  expect(asked.length).toBeLessThan(10)
  await readableUnderPointer(page, ask.getByRole("button", { name: /^\d+ more settings?$/ }).first())
  quiet()
})
