import { expect, test } from "vitest"
import { accessible } from "./axe"
import { world } from "./tandem"

// As `make run` starts it.
const { tandem, open, quiet } = world({ flags: ["--workflows", "examples"] })

test("who has started it with the examples sees three of them on the first page, runs one to its end, and finds the others in the list", async () => {
  const page = await open("/")
  await page.getByRole("heading", { name: "Welcome. See it work first" }).waitFor()
  await expect.poll(() => page.getByRole("button", { name: /^Run it:/ }).count()).toBe(3)
  await accessible(page)
  const kept = await tandem.api<{ total_count: number }>("GET", "/workflows")
  await page.getByRole("button", { name: "Run it: Ask before something is bought" }).click()
  await page.waitForURL(/\/executions\//)
  const run = decodeURIComponent(/\/executions\/([^/?]+)/.exec(page.url())![1]!)
  await page.getByRole("link", { name: /Inbox/ }).first().click()
  await page.getByRole("link", { name: /Buy a desk\?/ }).first().click()
  await page.getByRole("button", { name: "Buy it" }).first().click()
  await expect.poll(async () => (await tandem.api<{ execution: { status: string } }>("GET", `/executions/${run}`)).execution.status).toBe("SUCCESS")
  // The example that was kept at the start is the one that ran: there is no second one.
  expect((await tandem.api<{ total_count: number }>("GET", "/workflows")).total_count).toBe(kept.total_count)
  await page.getByRole("link", { name: "Workflows" }).click()
  await page.getByText("human_approval").first().waitFor()
  await page.getByText("parcels").first().waitFor()
  quiet()
})
