import { expect, test } from "vitest"
import { accessible } from "./axe"
import { world } from "./tandem"

const { tandem, open, leave, quiet } = world({ inOrder: true })

type Run = { execution: { status: string } }
const status = async (id: string) => (await tandem.api<Run>("GET", `/executions/${id}`)).execution.status
const idOf = (url: string) => decodeURIComponent(/\/executions\/([^/?]+)/.exec(url)![1]!)

test("a newcomer sees three examples on an empty installation, in both languages and accessible", async () => {
  const page = await open("/")
  await page.getByRole("heading", { name: "Welcome. See it work first" }).waitFor()
  await expect.poll(() => page.getByRole("button", { name: /^Run it:/ }).count()).toBe(3)
  await page.getByText("Nobody waits for an answer of yours.").waitFor()
  await page.getByText("No schedule is deployed.").waitFor()
  await page.getByText("Nothing failed in the last day.").waitFor()
  await page.getByText("Nothing was started in this time.").waitFor()
  await accessible(page)
  const dark = await open("/", { locale: "zh-CN", colorScheme: "dark" })
  await dark.getByRole("heading", { name: "欢迎！先看看它怎么工作" }).waitFor()
  expect(await dark.locator("main").innerText()).not.toMatch(/first\.|counts\.|plots\./)
  await accessible(dark)
  quiet()
})

test("who may not run an example is told why", async () => {
  await tandem.api("POST", "/users", { id: "vera", name: "Vera", roles: ["viewer"] })
  const { secret } = await tandem.api<{ secret: string }>("POST", "/users/vera/tokens", { name: "test" })
  const page = await open("/", { token: secret })
  await page.getByText("Running an example adds a workflow, for which you need the role of an editor.").waitFor()
  for (const b of await page.getByRole("button", { name: /^Run it:/ }).all()) expect(await b.isDisabled()).toBe(true)
  quiet()
})

test("from the first page to a finished example with an approval: few clicks, well under two minutes", async () => {
  const page = await open("/")
  const began = Date.now()
  let clicks = 0
  const click = async (name: string | RegExp, role: "button" | "link" = "button") => {
    clicks++
    await page.getByRole(role, { name }).first().click()
  }
  await click("Run it: Ask before something is bought")
  await page.waitForURL(/\/executions\//)
  const run = idOf(page.url())
  await click(/Inbox/, "link")
  await click(/Buy a desk\?/, "link")
  await click("Buy it")
  await expect.poll(() => status(run)).toBe("SUCCESS")
  expect(clicks).toBeLessThanOrEqual(4)
  expect(Date.now() - began).toBeLessThan(120_000)
  quiet()
})

test("the first page leads to a question that waits for me, and forgets it when it is answered", async () => {
  const page = await open("/")
  await page.getByRole("button", { name: "Run it: Ask before something is bought" }).click()
  await page.waitForURL(/\/executions\//)
  const run = idOf(page.url())
  await page.getByRole("link", { name: "Home" }).click()
  const line = page.getByRole("region", { name: "Waits for you" }).getByRole("link", { name: /Buy a desk\?/ })
  await line.waitFor()
  await page.getByRole("link", { name: /1 wait for a person/ }).waitFor()
  const { interactions } = await tandem.api<{ interactions: { id: string }[] }>("GET", "/interactions?status=pending")
  expect(await line.getAttribute("href")).toBe(`/inbox/${interactions[0]!.id}`)
  await tandem.api("POST", `/interactions/${interactions[0]!.id}/respond`, { response_data: { action: "refuse", notes: "too dear" } })
  await page.getByText("Nobody waits for an answer of yours.").waitFor()
  await page.getByRole("link", { name: /0 wait for a person/ }).waitFor()
  await expect.poll(() => status(run)).toBe("SUCCESS")
  quiet()
})

test("the other examples run with one click: a model that asks before it writes, and a list", async () => {
  const page = await open("/")
  await page.getByRole("button", { name: "Run it: A model that uses tools" }).click()
  await page.waitForURL(/\/executions\//)
  const agent = idOf(page.url())
  await expect.poll(() => status(agent)).toBe("WAITING_FOR_HUMAN")
  // What Tandem itself asks is asked in the language of the reader.
  const zh = await open("/", { locale: "zh-CN" })
  await zh.getByRole("link", { name: /是否允许调用/ }).waitFor()
  await leave(zh)
  const { interactions } = await tandem.api<{ interactions: { id: string }[] }>("GET", `/interactions?status=pending&execution_id=${agent}`)
  await tandem.api("POST", `/interactions/${interactions[0]!.id}/respond`, { response_data: { action: "approve" } })
  await expect.poll(() => status(agent)).toBe("SUCCESS")
  await page.getByRole("link", { name: "Home" }).click()
  await page.getByRole("button", { name: "Run it: Go through a list" }).click()
  await page.waitForURL(/\/executions\//)
  await expect.poll(() => status(idOf(page.url()))).toBe("SUCCESS")
  // One with a trigger is added, and one is led to where it is deployed.
  await page.getByRole("link", { name: "Home" }).click()
  await page.getByRole("button", { name: "Show all examples" }).click()
  await accessible(page)
  await page.getByRole("button", { name: "Add it: Started by the clock" }).click()
  await page.waitForURL("**/workflows/cron_reminder?tab=triggers")
  quiet()
})

test("failed runs are put together by cause, and lead to the newest of them", async () => {
  await tandem.api("POST", "/workflows", 'metadata: {id: breaks, name: breaks}\ntriggers: [start]\nnodes:\n  - {id: start, type: TRIGGER, subtype: MANUAL}\n  - {id: fall, type: ACTION, subtype: HTTP_REQUEST, configurations: {method: GET, url: "http://127.0.0.1:9/"}}\nconnections:\n  - {id: c1, from_node: start, to_node: fall}\n')
  for (let i = 0; i < 3; i++) await tandem.api("POST", "/workflows/breaks/execute", { inputs: { note: "<img src=x onerror=alert(1)>" }, wait_seconds: 10 })
  const { executions } = await tandem.api<{ executions: { execution_id: string; status: string }[] }>("GET", "/executions?workflow_id=breaks")
  expect(executions.map((e) => e.status)).toEqual(["ERROR", "ERROR", "ERROR"])
  const page = await open("/")
  const line = page.getByRole("link", { name: /breaks.*fall · blocked_address.*×3/ })
  await line.waitFor()
  await page.getByRole("link", { name: /^3 failed/ }).waitFor()
  await accessible(page)
  await line.click()
  await page.waitForURL(`**/executions/${executions[0]!.execution_id}`)
  quiet()
})

test("the range is in the address, and the plots have figures that can be read out", async () => {
  const page = await open("/?range=hour")
  await page.getByText("Runs over time").waitFor({ state: "attached" })
  expect(await page.getByRole("radio", { name: "Last hour" }).isChecked()).toBe(true)
  expect(await page.locator("table", { hasText: "Runs over time" }).innerText()).toMatch(/started/)
  await page.getByText("Last week").click()
  await page.waitForURL(/range=week/)
  quiet()
})

test("scheduled runs that come next are listed in their order", async () => {
  const cron = (id: string, expression: string) => tandem.api("POST", "/workflows", `metadata: {id: ${id}, name: ${id}}\ntriggers: [start]\nnodes:\n  - {id: start, type: TRIGGER, subtype: CRON, configurations: {cron_expression: "${expression}", timezone: UTC}}\n`).then(() => tandem.api("POST", `/workflows/${id}/deploy`))
  await cron("yearly", "0 0 1 1 *")
  await cron("daily", "0 3 * * *")
  const page = await open("/")
  const card = page.getByRole("region", { name: "Next scheduled runs" })
  await card.getByRole("link").nth(3).waitFor()
  expect((await card.getByRole("link").allInnerTexts()).map((text) => text.split(/\s/)[0])).toEqual(["daily", "daily", "daily", "yearly", "yearly", "yearly"])
  await card.getByRole("link").first().click()
  await page.waitForURL("**/workflows/daily?tab=triggers")
  quiet()
})

test("when the server is away the page says so, and comes back by itself", async () => {
  const page = await open("/")
  await page.getByRole("link", { name: /^3 failed/ }).waitFor()
  await tandem.kill()
  await page.getByText("The server does not answer").first().waitFor()
  await page.getByRole("link", { name: /^3 failed/ }).waitFor()
  await tandem.start()
  await page.getByText("The server does not answer").first().waitFor({ state: "detached" })
})

test("on a phone nothing is wider than the screen", async () => {
  const text = "metadata: {name: a workflow with a rather long name}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n  - {id: far_down, description: d, type: CALL, subtype: EMPTY, input_params: {x: '{{start.outputs.nothing_here}}'}}\nconnections:\n  - {from_node: start, to_node: far_down}\n"
  const { workflow } = await tandem.api<{ workflow: { id: string } }>("POST", "/workflows", text)
  await tandem.api("POST", `/workflows/${workflow.id}/execute`, { inputs: {}, wait_seconds: 20 })
  const page = await open("/", { viewport: { width: 390, height: 800 } })
  await page.getByRole("link", { name: /^4 failed/ }).waitFor()
  const causes = page.getByRole("region", { name: "What failed, by cause" })
  await causes.getByText("a workflow with a rather long name").waitFor()
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
  // Nor does a line stand out of its box.
  expect(await causes.getByRole("link").evaluateAll((lines) => lines.filter((a) => [...a.children].some((c) => c.getBoundingClientRect().right > a.getBoundingClientRect().right + 1)).length)).toBe(0)
  await accessible(page)
  quiet()
})
