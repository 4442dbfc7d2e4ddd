import { afterAll, beforeAll, expect, test } from "vitest"
import type { Page } from "playwright-core"
import { accessible, accessibleToo } from "./axe"
import { addWorkflows, hostile, run, SlowModel } from "./executions_world"
import { follow, world } from "./tandem"

const { tandem, open, quiet } = world({ flags: ["--http-allow", "127.0.0.1"], prepare: (tandem) => addWorkflows(tandem, "buying", "outer", "slow", "evil", "writer") })
const model = new SlowModel()

beforeAll(() => model.start())
afterAll(() => model.end())

type Listed = { activation_id: string; status: string }
type Question = { id: string; arguments_hash?: string }

/** everyActivation is what the API lists of an execution, page by page. */
async function everyActivation(id: string): Promise<Listed[]> {
  const all: Listed[] = []
  for (let after = ""; ; ) {
    const part = await tandem.api<{ activations: Listed[]; next?: string }>("GET", `/executions/${id}/activations?limit=1000${after ? `&after=${after}` : ""}`)
    all.push(...(part.activations ?? []))
    if (!part.next) return all
    after = part.next
  }
}

const steps = (page: Page) => page.getByRole("list", { name: "Timeline" })

/** shownSteps are the ids of the steps in the timeline, in order, read by scrolling through it. */
async function shownSteps(page: Page): Promise<string[]> {
  const seen: string[] = []
  const box = steps(page)
  await box.evaluate((e) => e.scrollTo(0, 0))
  for (;;) {
    const ids = await box.locator("[data-step]").evaluateAll((all) => all.sort((a, b) => Number(a.getAttribute("data-index")) - Number(b.getAttribute("data-index"))).map((e) => e.getAttribute("data-step")!))
    for (const id of ids) if (!seen.includes(id)) seen.push(id)
    const more = await box.evaluate((e) => {
      const at = e.scrollTop
      e.scrollTo(0, at + e.clientHeight - 64)
      return e.scrollTop > at
    })
    if (!more) return seen
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
  }
}

async function answer(id: string, response: object) {
  const { interactions } = await tandem.api<{ interactions: Question[] }>("GET", `/interactions?execution_id=${id}&status=pending`)
  await tandem.api("POST", `/interactions/${interactions[0]!.id}/respond`, { response_data: response })
}

test("an installation in which nothing ran says what to do", async () => {
  const page = await open("/executions")
  await page.getByText("Nothing has run yet").waitFor()
  await page.getByRole("link", { name: "Choose a workflow to run" }).waitFor()
  await accessible(page)
  await page.getByText("Failures by cause").click()
  await page.getByText("Nothing has failed").waitFor()
  quiet()
})

test("a run waits for a named person, is answered, and is seen to its end", async () => {
  const id = await run(tandem, "buying", { item: "desk", amount: 900 })
  const page = await open(`/executions/${id}`)
  await page.getByText(/Waits for an approval by admin/).waitFor()
  await page.getByText("Buy a desk?").waitFor()
  expect(await page.getByRole("link", { name: "Open the question" }).getAttribute("href")).toMatch(/^\/inbox\//)
  await steps(page).getByText("ask").waitFor()
  await accessible(page)
  await answer(id, { action: "approve" })
  await page.getByText(/^Succeeded after/).waitFor()
  await steps(page).getByText("order").waitFor()
  expect((await shownSteps(page)).sort()).toEqual((await everyActivation(id)).map((a) => a.activation_id).sort())
  await page.getByRole("tab", { name: "History" }).click()
  await page.getByText(/admin was asked/).waitFor()
  await page.getByText("with a token of the API").first().waitFor()
  await page.getByRole("button", { name: "Show what they saw" }).click()
  await page.getByRole("tree", { name: "What they saw" }).getByText("Buy a desk?").first().waitFor()
  await accessible(page)
  quiet()
})

test("a value leads back to where it came from", async () => {
  const id = await run(tandem, "buying", { item: "lamp", amount: 90 })
  const page = await open(`/executions/${id}?tab=data`)
  await page.getByRole("list", { name: "Steps" }).getByText("price", { exact: true }).click()
  await page.getByRole("tree", { name: "Input" }).getByRole("treeitem", { name: /amount/ }).click()
  const origin = page.getByRole("region", { name: "Where amount came from" })
  await origin.getByText("{{wanted.outputs.amount}}").waitFor()
  await page.getByRole("tree", { name: "Input" }).getByRole("treeitem", { name: /shipping/ }).click()
  await page.getByText("written in the workflow itself").waitFor()
  await page.getByRole("tree", { name: "Input" }).getByRole("treeitem", { name: /item/ }).click()
  await page.getByRole("region", { name: "Where item came from" }).getByRole("button", { name: "wanted" }).click()
  await page.getByRole("region", { name: "Step wanted" }).waitFor()
  await page.getByText(/result.item came from here/).waitFor()
  expect(new URL(page.url()).searchParams.get("step")).toBe("wanted")
  await accessible(page)
  quiet()
})

test("a value leads back over a conversion and out of a loop", async () => {
  await tandem.api(
    "POST",
    "/workflows?id=halves",
    `metadata: {name: halves, description: d}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: d}
  - {id: each, type: FLOW, subtype: FOR_EACH, description: d, configurations: {items_path: orders, iteration_variable: order}}
  - {id: one, type: CALL, subtype: EMPTY, description: d, configurations: {pass_through: true}, input_params: {price: "{{order.price}}"}}
  - {id: two, type: CALL, subtype: EMPTY, description: d, configurations: {pass_through: true}}
connections:
  - {from_node: start, to_node: each}
  - {from_node: each, to_node: one, output_key: iteration}
  - {from_node: one, to_node: two, conversion_function: "{net: price / 2}"}
  - {from_node: two, to_node: each}
`,
  )
  const id = await run(tandem, "halves", { orders: [{ price: 5 }, { price: 7 }] }, 20)
  const page = await open(`/executions/${id}?tab=data&step=${encodeURIComponent("each[1]/two")}`)
  await page.getByRole("tree", { name: "Input" }).getByRole("treeitem", { name: /net: 3.5/ }).click()
  const origin = page.getByRole("region", { name: "Where net came from" })
  await origin.getByText("converted on the connection").waitFor()
  await origin.getByRole("button", { name: "one #2" }).click()
  await page.getByRole("region", { name: "Step one" }).waitFor()
  await page.getByRole("tree", { name: "Input" }).locator('[aria-level="2"]').filter({ hasText: /^price: 7/ }).click()
  await page.getByRole("region", { name: "Where price came from" }).getByRole("button", { name: "each" }).click()
  await expect.poll(() => new URL(page.url()).searchParams.get("step")).toBe("each")
  quiet()
})

test("a fork with edited input shows what was edited beside the original", async () => {
  const id = await run(tandem, "buying", { item: "chair", amount: 100 })
  const page = await open(`/executions/${id}?step=ask`)
  await page.getByRole("button", { name: "Fork from here" }).click()
  const dialog = page.getByRole("dialog")
  await dialog.getByText(/this run stays as it is/).waitFor()
  await dialog.getByRole("button", { name: "Edit amount" }).click()
  await dialog.getByLabel("New value of amount, as JSON").fill("not json")
  await dialog.getByText("Not JSON: amount").waitFor()
  expect(await dialog.getByRole("button", { name: "Fork from here" }).isDisabled()).toBe(true)
  await dialog.getByLabel("New value of amount, as JSON").fill("50")
  await dialog.getByText("1 value is edited").waitFor()
  await dialog.getByLabel("Reason").fill("too dear")
  await accessible(page)
  await dialog.getByRole("button", { name: "Fork from here" }).click()
  await page.waitForURL((url) => url.pathname.startsWith("/executions/") && !url.pathname.endsWith(id))
  await page.getByText("Forked by admin at ask").waitFor()
  const edits = page.getByRole("table", { name: "What was edited in this fork" })
  expect(await edits.locator("tbody tr").innerText()).toMatch(/amount\s+100\s+50/)
  await page.getByText(/Waits for an approval by admin/).waitFor()
  // What the fork shares with the original is on its timeline, and can be looked at.
  await page.getByText("3 steps").waitFor()
  await expect.poll(() => shownSteps(page)).toEqual(["wanted", "price", "ask"])
  await expect.poll(() => steps(page).getByText("shared with the original").count()).toBe(2)
  await steps(page).getByText("price").click()
  await page.getByRole("tree", { name: "Output" }).getByText("shipping").waitFor()
  await page.getByRole("link", { name: "Compare with the original" }).click()
  await page.getByRole("heading", { name: "Side by side" }).waitFor()
  await page.getByRole("button", { name: "Stop comparing" }).click()
  const forked = new URL(page.url()).pathname.split("/").pop()!
  expect((await tandem.api<{ execution: { fork: { edits: unknown[]; reason: string } } }>("GET", `/executions/${forked}`)).execution.fork).toMatchObject({ edits: [{ name: "amount", original: 100, edited: 50 }], reason: "too dear" })
  quiet()
})

test("pause, resume and cancel say what they do, and are offered only where they can be done", async () => {
  const id = await run(tandem, "buying", { item: "pen", amount: 1 })
  const page = await open(`/executions/${id}`)
  await page.getByRole("button", { name: "Pause" }).click()
  await page.getByRole("dialog").getByText(/Nothing is repeated and nothing is lost/).waitFor()
  await page.getByLabel("Reason").fill("lunch")
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click()
  await page.getByText(/Paused by admin/).waitFor()
  await page.getByRole("button", { name: "Resume" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click()
  await page.getByRole("button", { name: "Cancel the run" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click()
  await page.getByText(/Cancelled by admin/).waitFor()
  expect(await page.getByRole("button", { name: "Pause" }).count()).toBe(0)
  await page.getByRole("tab", { name: "History" }).click()
  await page.getByText(/reason: lunch/).waitFor()
  await page.getByRole("button", { name: "More actions" }).click()
  await page.getByRole("menuitem", { name: "Delete the run" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Delete the run" }).click()
  await page.waitForURL(/\/executions$/)
  await page.goto(`/executions/${id}`)
  await page.getByText("There is no such run").waitFor()
  quiet()
})

test("who may only read is offered no action", async () => {
  await tandem.api("POST", "/users", { id: "reader", name: "Reader", roles: ["viewer"] })
  const { secret: token } = await tandem.api<{ secret: string }>("POST", "/users/reader/tokens", { name: "e2e" })
  const id = await run(tandem, "buying", { item: "cup", amount: 2 })
  const page = await open(`/executions/${id}?step=ask`, { token })
  await page.getByText(/Waits for an approval by admin/).waitFor()
  await page.getByRole("region", { name: "Step ask" }).waitFor()
  for (const name of ["Pause", "Cancel the run", "Fork from here", "Skip this step"]) expect(await page.getByRole("button", { name }).count()).toBe(0)
  quiet()
})

test("a failed step is told with its error, tried again, skipped with another output, and the run goes on", async () => {
  const id = await run(tandem, "evil", { html: "plain" }, 20)
  const page = await open(`/executions/${id}?step=fails`)
  await page.getByText(/^Failed in/).waitFor()
  await page.getByRole("button", { name: "Retry this step" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Retry this step" }).click()
  await page.getByRole("tab", { name: "History" }).click()
  await page.getByText("admin had fails tried again").waitFor()
  await follow(page, `/executions/${id}?step=fails`)
  await page.getByRole("button", { name: "Skip this step" }).click()
  await page.getByLabel("Output instead").fill('{"instead": true}')
  await page.getByRole("dialog").getByRole("button", { name: "Skip this step" }).click()
  await page.getByText(/^Succeeded after/).waitFor()
  quiet()
})

test("the page goes on by itself after the server was killed, with no gap and nothing doubled", async () => {
  const id = await run(tandem, "slow", { items: Array.from({ length: 30 }, (_, i) => i) })
  const page = await open(`/executions/${id}`)
  await steps(page).getByText("#4").first().waitFor()
  await tandem.kill()
  await page.getByText(/The server does not answer/).first().waitFor()
  await steps(page).getByText("#4").first().waitFor()
  await tandem.start("--http-allow", "127.0.0.1")
  await page.getByText(/^Succeeded after/).waitFor()
  expect(await page.getByText(/The server does not answer/).count()).toBe(0)
  const listed = await everyActivation(id)
  await page.getByText(`${listed.length} steps`).waitFor()
  await expect.poll(() => shownSteps(page)).toEqual(listed.map((a) => a.activation_id))
  // Each line of the log is there once, the ones from before the crash included.
  await page.getByRole("tab", { name: "Log" }).click()
  const { lines } = await tandem.api<{ lines: { id: number; message: string }[] }>("GET", `/executions/${id}/logs?limit=1000`)
  await page.getByText(`${lines.length} lines`, { exact: true }).waitFor()
  quiet()
})

test("text is shown while a model writes it", async () => {
  await tandem.api("POST", "/llm/profiles", { id: "slow_model", name: "slow", provider: "openai", model: "slow", base_url: `http://127.0.0.1:${model.port}/v1` })
  const id = await run(tandem, "writer")
  const page = await open(`/executions/${id}`)
  await model.waits
  model.say("It rains ")
  await page.getByRole("log", { name: "Being written now" }).getByText("It rains").waitFor()
  model.say("<b>cats</b>.")
  await page.getByText("It rains <b>cats</b>.").waitFor()
  model.stop()
  await page.getByText(/^Succeeded after/).waitFor()
  expect(await page.getByRole("log", { name: "Being written now" }).count()).toBe(0)
  quiet()
})

test("hostile names, data, errors and log lines are shown as text and do nothing", async () => {
  const id = await run(tandem, "evil", hostile, 20)
  const page = await open(`/executions/${id}?step=evil`)
  await page.getByRole("heading", { name: "<script>document.title='owned'</script>" }).waitFor()
  await page.getByRole("tree", { name: "Input" }).getByText(/onerror/).first().waitFor()
  for (const tab of ["Canvas", "Data", "History", "Log", "Timeline"]) {
    await page.getByRole("tab", { name: tab }).click()
    await page.getByRole("tabpanel").waitFor()
    expect(await page.locator("main img, main script, main b, main a[href^='javascript']").count()).toBe(0)
    expect(await page.locator("main").innerText()).not.toMatch(/[\u202a-\u202e]/)
  }
  await page.getByRole("tab", { name: "Log" }).click()
  await page.getByRole("log").getByText(/click/).first().waitFor()
  await follow(page, "/executions")
  await page.getByRole("link", { name: /<img src=x onerror=alert\(1\)>/ }).first().waitFor()
  await page.getByText("Failures by cause").click()
  await page.getByText(/broken/).first().waitFor()
  expect(await page.title()).not.toBe("owned")
  quiet()
})

test("a line of the log has an address, and groups fold", async () => {
  const id = await run(tandem, "slow", { items: [1, 2, 3] }, 20)
  const page = await open(`/executions/${id}?tab=logs`)
  await page.getByText("line of 2").waitFor()
  await page.getByRole("link", { name: /^Line \d+: link to it$/ }).nth(1).click()
  expect(new URL(page.url()).searchParams.get("line")).toMatch(/^\d+$/)
  await page.reload()
  await page.getByText("line of 2").waitFor()
  await page.getByRole("button", { name: /each\[1\]/ }).first().click()
  await page.getByText("line of 2").waitFor({ state: "detached" })
  await accessible(page)
  quiet()
})

test("lines of a step that runs are shown as they come, without asking for them again and again", async () => {
  await tandem.api(
    "POST",
    "/workflows?id=talks",
    `metadata: {name: talks, description: d}
nodes:
  - {id: start, type: TRIGGER, subtype: MANUAL, description: d}
  - {id: talk, type: ACTION, subtype: RUN_CODE, description: d, configurations: {language: javascript, time_limit_ms: 60000, code: "function main(input) { for (let i = 0; i < 300; i++) { console.log('line ' + i + '.'); for (let k = 0; k < 3e6; k++) {} } return {} }"}}
connections:
  - {from_node: start, to_node: talk}
`,
  )
  const { execution_id: id } = await tandem.api<{ execution_id: string }>("POST", "/workflows/talks/execute", {})
  const page = await open(`/executions/${id}?tab=logs`)
  let asked = 0
  page.on("request", (r) => r.url().includes("/logs") && asked++)
  const log = page.getByRole("log")
  const last = async () => Math.max(-1, ...[...((await log.textContent()) ?? "").matchAll(/line (\d+)\./g)].map((m) => Number(m[1])))
  await log.getByText("line 0.").waitFor()
  // The page has what was written before it came. What follows comes while the step runs, and nothing else lets the page look again.
  const seen = await last()
  await log.getByText(`line ${seen + 3}.`).waitFor()
  expect((await tandem.api<{ execution: { status: string } }>("GET", `/executions/${id}`)).execution.status).toBe("RUNNING")
  expect(asked).toBeLessThan((await last()) + 8)
  await tandem.api("POST", `/executions/${id}/actions`, { action: "cancel" })
  quiet()
})

test("the canvas shows the states, an iteration can be chosen, and a click opens the step", async () => {
  const id = await run(tandem, "slow", { items: [1, 2, 3] }, 20)
  const page = await open(`/executions/${id}?tab=canvas&loop=each&iteration=1`)
  await page.locator(".react-flow__node", { hasText: "count" }).last().click()
  await page.getByRole("region", { name: "Step count" }).waitFor()
  expect(new URL(page.url()).searchParams.get("step")).toBe("each[1]/count")
  await page.getByRole("tab", { name: "Timeline" }).click()
  await page.getByText("2 of 8 steps").waitFor()
  await page.getByRole("button", { name: "Next iteration" }).click()
  await steps(page).getByText("#3").first().waitFor()
  quiet()
})

test("an address that names no run, and a server that is away, are told", async () => {
  await run(tandem, "evil", { html: "away" }, 20)
  const page = await open("/executions/exec_missing")
  await page.getByText("There is no such run").waitFor()
  await accessibleToo(page)
  await page.getByRole("link", { name: "Show all runs" }).click()
  await page.getByRole("columnheader", { name: "Workflow" }).waitFor()
  await tandem.kill()
  await page.getByText(/The server does not answer/).first().waitFor()
  await page.getByRole("columnheader", { name: "Workflow" }).waitFor()
  await tandem.start("--http-allow", "127.0.0.1")
  await page.getByText(/The server does not answer/).first().waitFor({ state: "detached" })
  quiet()
})

test("the list is filtered by state and workflow, and its address keeps that", async () => {
  await run(tandem, "evil", { html: "listed" }, 20)
  const page = await open("/executions?status=failed&workflow=evil")
  const rows = page.locator("tbody tr")
  await rows.first().waitFor()
  await expect.poll(() => rows.count()).toBe((await tandem.api<{ total_count: number }>("GET", "/executions?status=ERROR&status=TIMEOUT&workflow_id=evil")).total_count)
  await accessible(page)
  await page.getByText("Succeeded", { exact: true }).click()
  await page.waitForURL(/status=succeeded/)
  await page.reload()
  await page.getByText("Clear the filters").click()
  await page.waitForURL(/\/executions$/)
  quiet()
})

test("the list is filtered by who started runs and when", async () => {
  await run(tandem, "evil", { html: "mine" }, 20)
  await run(tandem, "evil", { html: "mine too" }, 20)
  const page = await open("/executions?user=me&since=hour")
  await page.locator("tbody tr").first().waitFor()
  const { total_count } = await tandem.api<{ total_count: number }>("GET", "/executions?user_id=me")
  await page.getByText(`${total_count} runs`).waitFor()
  await follow(page, "/executions?to=1000")
  await page.getByText("No run fits these filters").waitFor()
  await page.getByLabel("Started at or after").waitFor()
  await follow(page, "/executions?user=nobody")
  await page.getByText("No run fits these filters").waitFor()
  await page.getByRole("combobox", { name: "Started by" }).click()
  await page.getByRole("option", { name: "Me" }).click()
  await page.getByText(`${total_count} runs`).waitFor()
  await accessibleToo(page)
  quiet()
})

test("failures that are alike stand together, and lead to the runs", async () => {
  await run(tandem, "evil", { html: "1" }, 20)
  await run(tandem, "evil", { html: "2" }, 20)
  const page = await open("/executions?view=causes&workflow=evil")
  const rows = page.locator("tbody tr")
  await rows.first().waitFor()
  await expect.poll(() => rows.count()).toBe(1)
  await rows.getByText("code_error").waitFor()
  await accessible(page)
  await rows.getByRole("link", { name: /^Show all \d+ runs$/ }).click()
  await page.waitForURL(/status=failed&workflow=evil/)
  await page.getByRole("columnheader", { name: "Started by" }).waitFor()
  quiet()
})

test("a run that another one has started is reached from there, and leads back", async () => {
  const id = await run(tandem, "outer", { item: "bike", amount: 2000 })
  const page = await open(`/executions/${id}?step=below`)
  await page.getByText(/Waits for an approval by admin/).waitFor()
  await page.getByRole("link", { name: "Open the run that asks" }).waitFor()
  await page.getByRole("link", { name: /^started the run/ }).click()
  await page.getByRole("heading", { name: "buying" }).waitFor()
  await page.getByRole("link", { name: "Started by another run" }).click()
  await page.getByRole("heading", { name: "outer" }).waitFor()
  quiet()
})

test("Chinese, dark, and the width of a phone", async () => {
  const id = await run(tandem, "buying", { item: "灯", amount: 5 })
  const page = await open(`/executions/${id}?step=ask`, { locale: "zh-CN", colorScheme: "dark", viewport: { width: 390, height: 800 } })
  await page.getByText(/等待 admin 审批/).waitFor()
  await page.getByRole("region", { name: "步骤 ask" }).waitFor()
  await accessible(page)
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
  for (const tab of ["画布", "数据", "经过", "日志"]) {
    await page.getByRole("tab", { name: tab }).click()
    await page.getByRole("tabpanel").waitFor()
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
  }
  await follow(page, "/executions")
  await page.getByRole("heading", { name: "运行" }).waitFor()
  await accessibleToo(page)
  quiet()
})
