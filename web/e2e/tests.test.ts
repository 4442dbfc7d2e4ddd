import { mkdirSync } from "node:fs"
import type { Locator, Page } from "playwright-core"
import { expect, test } from "vitest"
import { accessible, accessibleToo } from "./axe"
import { world } from "./tandem"

const { tandem, open, leave, quiet } = world()

const card = (page: Page, name: string) => page.locator(`.react-flow__node[data-id="${name}"]`)
const row = (page: Page, name: string) => page.getByRole("listitem", { name, exact: true })

const file = (name: string, tests = "") => `# Mine.
metadata:
  name: ${name}
nodes:
  - {id: start, description: Starts., type: TRIGGER, subtype: MANUAL}
  - {id: big, description: Decides., type: FLOW, subtype: IF, configurations: {condition_expression: input.total > 10}}
  - {id: tell, description: Tells somebody., type: ACTION, subtype: HTTP_REQUEST, configurations: {url: "http://127.0.0.1:1/never"}}
connections:
  - {from_node: start, to_node: big}
  - {from_node: big, to_node: tell, output_key: "true"} # the large ones
${tests}`

const three = `tests:
  - name: small ones are left alone
    inputs: {total: 3}
    expect: {outputs: {big: {"false": {}}}}
  - name: large ones are told
    inputs: {total: 30}
    pinned: {tell: {result: {status: 200}}}
    expect: {outputs: {big: {"false": {}}}}
  - name: nothing is pinned
    inputs: {total: 30}
`
const sourceOf = async (id: string) => (await tandem.api<{ source: string }>("GET", `/workflows/${id}?include=source`)).source

/** write replaces what a field for code holds by one line. It deletes first: with fill over several lines the browser was seen to try inline styles, which count as noise. */
const write = async (code: Locator, text: string) => {
  await code.press("ControlOrMeta+a")
  await code.press("Delete")
  await code.page().keyboard.insertText(text)
}

/** shot leaves a picture for whoever wants to look. */
const shot = async (page: Page, name: string) => {
  const dir = process.env.TANDEM_SHOTS
  if (!dir) return
  mkdirSync(dir, { recursive: true })
  await page.screenshot({ path: `${dir}/${name}.png` })
}

test("a run with pinned data is kept as a test, written into the file, and passes", async () => {
  await tandem.api("POST", "/workflows?id=kept", file("kept"))
  const page = await open("/workflows/kept")
  await card(page, "big").click()
  await page.getByRole("button", { name: /Run this node/ }).click()
  const dialog = page.getByRole("dialog", { name: "Try big" })
  await write(dialog.getByRole("textbox", { name: "What start puts out as result" }), '{"total": 3}')
  await dialog.getByRole("button", { name: "Run", exact: true }).click()
  await dialog.getByText("succeeded").waitFor()
  const name = dialog.getByRole("textbox", { name: "Keep this run as a test" })
  await name.fill("3 is not large")
  await shot(page, "keep")
  await accessible(page)
  await dialog.getByRole("button", { name: "Keep as test" }).click()
  await dialog.getByText("Kept as the test “3 is not large”").waitFor()
  await dialog.getByRole("link", { name: "See the tests" }).click()
  await row(page, "3 is not large").getByText("Only big").waitFor()
  await page.getByRole("button", { name: "Run “3 is not large”" }).click()
  await row(page, "3 is not large").getByText("Passed").waitFor()
  await page.getByRole("button", { name: "Save", exact: true }).click()
  await expect.poll(() => sourceOf("kept")).toContain("3 is not large")
  const text = await sourceOf("kept")
  expect(text).toContain("# the large ones")
  expect(text).toContain("total: 3")
  await page.reload()
  await row(page, "3 is not large").getByText("Passed").waitFor()
  quiet()
})

test("what has effects cannot be what a test runs, and the remedy is told", async () => {
  await tandem.api("POST", "/workflows?id=effects", file("effects"))
  const page = await open("/workflows/effects")
  await card(page, "tell").click()
  await page.getByRole("button", { name: /Run this node/ }).click()
  const dialog = page.getByRole("dialog", { name: "Try tell" })
  await write(dialog.getByRole("textbox", { name: "What big puts out as true" }), "{}")
  await dialog.getByRole("button", { name: "Run", exact: true }).click()
  await dialog.getByText("A test has no effects").waitFor()
  expect(await dialog.getByRole("button", { name: "Keep as test" }).count()).toBe(0)
  quiet()
})

test("all tests are run, and what differs is shown", async () => {
  await tandem.api("POST", "/workflows?id=three", file("three", three))
  const page = await open("/workflows/three?tab=tests")
  await page.getByText("0 passed, 0 not, 3 not run yet").waitFor()
  await page.getByRole("button", { name: "Run all" }).click()
  await page.getByText("1 passed, 2 not, 0 not run yet").waitFor()
  await row(page, "small ones are left alone").getByText("Passed").waitFor()
  const differs = row(page, "large ones are told").getByRole("table", { name: "What differs" })
  await differs.getByText("big · false").waitFor()
  await differs.getByText('it went by "true"').waitFor()
  await row(page, "nothing is pinned").getByText(/not_pinned: "tell" has effects/).waitFor()
  await shot(page, "tests")
  await accessible(page)
  const run = (await row(page, "nothing is pinned").getByRole("link", { name: "Open the run" }).getAttribute("href"))!.split("/").pop()!
  const { execution } = await tandem.api<{ execution: { test: { name: string } } }>("GET", `/executions/${run}`)
  expect(execution.test.name).toBe("nothing is pinned")
  await leave(page)
  const dark = await open("/workflows/three?tab=tests", { colorScheme: "dark", viewport: { width: 390, height: 800 } })
  await dark.getByRole("button", { name: "Run “large ones are told”" }).click()
  await row(dark, "large ones are told").getByText("Differs").waitFor()
  await shot(dark, "tests-dark-phone")
  await accessible(dark)
  await leave(dark)
  quiet()
})

test("a test is mended, renamed, written anew and deleted, in the text of the workflow", async () => {
  await tandem.api("POST", "/workflows?id=mended", file("mended", three))
  const page = await open("/workflows/mended?tab=tests")
  await page.getByRole("button", { name: "Edit “large ones are told”" }).click()
  const dialog = page.getByRole("dialog", { name: "Edit the test" })
  await dialog.getByRole("textbox", { name: "Name" }).fill("small ones are left alone")
  await dialog.getByRole("button", { name: "Apply" }).click()
  await dialog.getByText("Another test is called").waitFor()
  await dialog.getByRole("textbox", { name: "Name" }).fill("large ones take the way to tell")
  const code = dialog.getByRole("textbox", { name: "The test (YAML)" })
  await write(code, "{inputs: {total: 30")
  await dialog.getByRole("button", { name: "Apply" }).click()
  await dialog.getByText(/cannot be read/).waitFor()
  await write(code, '{inputs: {total: 30}, pinned: {tell: {result: {status: 200}}}, expect: {outputs: {big: {"true": {}}}}}')
  await shot(page, "edit")
  await accessible(page)
  await dialog.getByRole("button", { name: "Apply" }).click()
  await page.getByRole("button", { name: "Run “large ones take the way to tell”" }).click()
  await row(page, "large ones take the way to tell").getByText("Passed").waitFor()
  await page.getByRole("button", { name: "Delete “nothing is pinned”" }).click()
  await page.getByRole("button", { name: "Write a test" }).click()
  const fresh = page.getByRole("dialog", { name: "Write a test" })
  await fresh.getByRole("textbox", { name: "Name" }).fill("it ends")
  await fresh.getByRole("button", { name: "Apply" }).click()
  await row(page, "it ends").getByText("The whole workflow").waitFor()
  await page.getByRole("button", { name: "Save", exact: true }).click()
  await expect.poll(() => sourceOf("mended")).toContain("it ends")
  const text = await sourceOf("mended")
  expect(text).toContain("# the large ones")
  expect(text).toContain("large ones take the way to tell")
  expect(text).not.toContain("nothing is pinned")
  // The canvas is the same document.
  await page.getByRole("link", { name: "Canvas" }).click()
  await page.getByRole("button", { name: "Undo" }).click()
  await page.getByRole("link", { name: "Tests" }).click()
  await row(page, "large ones take the way to tell").waitFor()
  expect(await row(page, "it ends").count()).toBe(0)
  quiet()
})

test("without tests it says how to make one, in Chinese too; who may not edit only reads; a server that is away is told", async () => {
  await tandem.api("POST", "/workflows?id=bare", file("bare"))
  const page = await open("/workflows/bare?tab=tests", { locale: "zh-CN" })
  await page.getByText("还没有测试").waitFor()
  await accessibleToo(page)
  await leave(page)
  await tandem.api("POST", "/workflows?id=read", file("read", three))
  await tandem.api("POST", "/users", { id: "vera", name: "Vera", roles: ["viewer"] })
  const { secret, token } = await tandem.api<{ secret?: string; token?: string }>("POST", "/users/vera/tokens", { name: "test" })
  const reads = await open("/workflows/read?tab=tests", { token: secret ?? token })
  await row(reads, "large ones are told").waitFor()
  expect(await reads.getByRole("button", { name: /^(Run|Edit|Delete|Write)/ }).count()).toBe(0)
  await leave(reads)
  const away = await open("/workflows/read?tab=tests")
  await row(away, "large ones are told").waitFor()
  await away.route("**/api/v1/workflows/test", (r) => r.abort())
  await away.getByRole("button", { name: "Run all" }).click()
  await away.getByRole("alert").waitFor()
  await away.getByText("0 passed, 0 not, 3 not run yet").waitFor()
  await away.unroute("**/api/v1/workflows/test")
  await away.getByRole("button", { name: "Run all" }).click()
  await away.getByText("1 passed, 2 not, 0 not run yet").waitFor()
  await leave(away)
  quiet()
})
