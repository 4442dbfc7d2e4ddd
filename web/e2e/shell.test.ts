import { expect, test } from "vitest"
import { accessible } from "./axe"
import { world } from "./tandem"

const { tandem, open, quiet } = world()

test("the login link logs in once and leaves nothing in the address bar", async () => {
  const page = await open(`/login#token=${tandem.token}`, { token: null })
  await page.getByRole("navigation", { name: "Places" }).waitFor()
  expect(page.url()).toBe(tandem.url + "/")
  quiet()
})

test("who is not logged in comes back to where they wanted to go", async () => {
  const page = await open("/executions?status=ERROR", { token: null })
  await page.waitForURL(/\/login\?next=/)
  await page.getByLabel("Token").fill(tandem.token)
  await page.getByRole("button", { name: "Log in" }).click()
  await page.waitForURL(tandem.url + "/executions?status=ERROR")
})

test("the language follows the browser and can be switched", async () => {
  const page = await open("/", { locale: "zh-CN" })
  await page.getByRole("link", { name: "工作流", exact: true }).waitFor()
  await page.getByRole("button", { name: "您的账户" }).click()
  await page.getByRole("menuitem", { name: "English" }).click()
  await page.getByRole("link", { name: "Workflows", exact: true }).waitFor()
  expect(await page.locator("html").getAttribute("lang")).toBe("en")
  await page.reload()
  await page.getByRole("link", { name: "Workflows", exact: true }).waitFor()
  quiet()
})

test("the question mark shows all keys, and is a sign where somebody writes", async () => {
  const page = await open("/workflows")
  await page.getByRole("heading", { name: "Workflows" }).waitFor()
  await page.keyboard.press("?")
  const sheet = page.getByRole("dialog", { name: "Keyboard shortcuts" })
  await sheet.getByRole("region", { name: "On the canvas" }).getByText("Add a node").waitFor()
  await accessible(page)
  await page.keyboard.press("Escape")
  await sheet.waitFor({ state: "detached" })
  await page.keyboard.press("Control+k")
  const box = page.getByRole("dialog").getByRole("combobox")
  await box.press("?")
  expect([await box.inputValue(), await sheet.count()]).toEqual(["?", 0])
  quiet()
})

test("nothing moves for those who want no motion", async () => {
  for (const [reducedMotion, times] of [["reduce", "1"], ["no-preference", "infinite"]] as const) {
    const page = await open("/", { reducedMotion })
    const turns = await page.evaluate(() => {
      const ring = document.body.appendChild(document.createElement("i"))
      ring.style.animation = "turn 1s linear infinite"
      return getComputedStyle(ring).animationIterationCount
    })
    expect(turns).toBe(times)
  }
  quiet()
})

test("a text that can hardly be read is found on a page whose other texts were measured before", async () => {
  const page = await open("/")
  await page.getByRole("heading", { level: 2 }).first().waitFor()
  await accessible(page)
  await page.locator("main h2").first().evaluate((heading) => (heading.style.color = "#e8e8e8"))
  await expect(accessible(page)).rejects.toThrow()
  quiet()
})
