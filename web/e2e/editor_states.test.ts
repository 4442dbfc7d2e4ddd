import type { Page } from "playwright-core"
import { expect, test } from "vitest"
import { accessible, accessibleInBoth } from "./axe"
import { follow, world } from "./tandem"

const { tandem, open, quiet } = world({ inOrder: true })

const card = (page: Page, name: string) => page.locator(`.react-flow__node[data-id="${name}"]`)

const small = "metadata:\n  name: small\nnodes:\n  - {id: start, description: Starts., type: TRIGGER, subtype: MANUAL}\n  - {id: check, description: Decides., type: FLOW, subtype: IF, configurations: {condition_expression: input.x > 1}}\nconnections:\n  - {from_node: start, to_node: check}\n"

test("axe finds nothing serious: an empty workflow, the palette, a node, the text, in light and dark", async () => {
  await tandem.api("POST", "/workflows?id=small", small)
  const page = await open("/workflows/new")
  await page.getByText("What starts this workflow?").waitFor()
  await accessible(page)
  await page.getByRole("button", { name: "Add" }).click()
  await page.getByRole("option", { name: /^Delay/ }).waitFor()
  await accessible(page)
  await follow(page, "/workflows/small?node=check&yaml=1")
  await card(page, "check").waitFor()
  await page.getByText("Condition expression").waitFor()
  await page.getByRole("button", { name: "No problems found" }).waitFor()
  await accessibleInBoth(page)
  quiet()
})

test("it speaks Chinese", async () => {
  const page = await open("/workflows/small?node=check", { locale: "zh-CN" })
  await page.getByRole("region", { name: "工作流画布" }).waitFor()
  await page.getByRole("complementary", { name: "节点 check" }).getByText("条件分支").waitFor()
  await page.getByRole("button", { name: "部署" }).waitFor()
  await page.getByText("未发现问题").first().waitFor()
  quiet()
})

test("who may not edit sees the workflow and its text, and no button that would be refused", async () => {
  await tandem.api("POST", "/users", { id: "vera", name: "Vera", roles: ["viewer"] })
  const { secret, token } = await tandem.api<{ secret?: string; token?: string }>("POST", "/users/vera/tokens", { name: "test" })
  const page = await open("/workflows/small?yaml=1&node=check", { token: secret ?? token })
  await card(page, "check").waitFor()
  await page.getByRole("textbox", { name: "Text of the workflow (YAML)" }).waitFor()
  for (const name of ["Save", "Deploy", "Run", "Add", "Delete"]) expect([name, await page.getByRole("button", { name, exact: true }).count()]).toEqual([name, 0])
  quiet()
})

test("a workflow that is not there says so", async () => {
  const page = await open("/workflows/nowhere")
  await page.getByText("There is no such workflow").waitFor()
  expect(await page.getByRole("link", { name: "Tests" }).count()).toBe(0)
  await page.getByRole("link", { name: "Show all workflows" }).click()
  await page.getByRole("heading", { name: "Workflows" }).waitFor()
  // Nor is there a page at every address.
  await follow(page, "/nowhere")
  await page.getByRole("link", { name: "Go to the first page" }).click()
  await page.waitForURL((url) => url.pathname === "/")
  quiet()
})

test("while the server is away one goes on editing, saving says so, and nothing is lost", async () => {
  const page = await open("/workflows/small?node=check")
  await page.getByText("Condition expression").waitFor()
  await tandem.kill()
  await page.getByRole("complementary").getByRole("textbox", { name: "Name", exact: true }).fill("decide")
  await page.keyboard.press("Enter")
  await card(page, "check").getByText("decide").waitFor()
  await page.getByRole("button", { name: "Save" }).click()
  await page.getByText("Not saved: the server does not answer").waitFor()
  await tandem.start()
  await page.getByRole("button", { name: "Save" }).click()
  await page.getByText("Saved as revision 2").first().waitFor()
  expect((await tandem.api<{ source: string }>("GET", "/workflows/small?include=source")).source).toContain("name: decide")
  quiet()
})
