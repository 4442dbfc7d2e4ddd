import type { Page } from "playwright-core"
import { expect, test } from "vitest"
import { world } from "./tandem"
import { figures } from "./tracing"

const { tandem, open, leave, quiet } = world()

/**
 * An idle machine measures (FIGURES=1): no piece of the page's work may take the processor longer than 100 ms. Beside other tests nothing can be said in milliseconds, but the
 * work must not grow with the workflow: with 250 nodes (500 with FIGURES or TANDEM_LONG) no piece may take four times as long as with 30, where 50 ms is what a small page may take.
 */
const many = process.env.FIGURES || process.env.TANDEM_LONG ? 500 : 250
const small: Record<string, number> = {}
const most = (what: string) => (process.env.FIGURES ? 100 : 4 * Math.max(50, small[what] ?? 50))

/** large is a workflow with many nodes: chains of steps and conditions. */
function large(name: string, n: number): string {
  const nodes = ["  - id: n0\n    description: Starts.\n    type: TRIGGER\n    subtype: MANUAL"]
  const connections: string[] = []
  for (let i = 1; i < n; i++) {
    const decides = i % 7 === 4
    nodes.push(`  # Step ${i}.\n  - id: n${i}\n    description: ${decides ? "Decides" : `Step ${i}`}.\n    type: ${decides ? "FLOW" : "CALL"}\n    subtype: ${decides ? "IF" : "EMPTY"}\n    configurations:\n      ${decides ? `condition_expression: input.x > ${i}` : "pass_through: true"}`)
    const from = Math.max(0, i - 1 - ((i - 1) % 5))
    connections.push(`  - {from_node: n${from}, to_node: n${i}${from % 7 === 4 ? ', output_key: "true"' : ""}}`)
  }
  return `metadata:\n  name: ${name}\nnodes:\n${nodes.join("\n")}\nconnections:\n${connections.join("\n")}\n`
}

async function middle(page: Page, selector: string) {
  const box = await page.locator(selector).boundingBox()
  return { x: box!.x + box!.width / 2, y: box!.y + box!.height / 2 }
}

/** inView says whether a node is wholly inside of what is seen of the canvas, and large enough to be read. */
async function inView(page: Page, id: string): Promise<boolean> {
  const node = page.locator(`.react-flow__node[data-id="${id}"]`)
  if (!(await node.count())) return false
  const [card, canvas] = [await node.boundingBox(), await page.locator(".react-flow").boundingBox()]
  if (!card || !canvas) return false
  return card.width > 100 && card.x >= canvas.x && card.y >= canvas.y && card.x + card.width <= canvas.x + canvas.width && card.y + card.height <= canvas.y + canvas.height
}

/** shown does something whose figures are only printed. */
const shown = (page: Page, what: string, act: () => Promise<unknown>) => (process.env.FIGURES ? figures(page, what, act) : act())

test.each([30, many])("%i nodes are panned, zoomed and edited without a long task", async (n) => {
  const { workflow } = await tandem.api<{ workflow: { id: string } }>("POST", "/workflows", large(`large_${n}`, n))
  const page = await open(`/workflows/${workflow.id}`, { reducedMotion: "no-preference", fresh: !!process.env.FIGURES })
  await page.locator(".react-flow__node").first().waitFor()
  await page.getByRole("button", { name: "No problems found" }).waitFor()
  const longest: Record<string, number> = {}
  const measure = async (what: string, act: () => Promise<unknown>) => {
    longest[what] = await figures(page, `${n} nodes, ${what}`, act)
  }
  await page.mouse.move(500, 300)
  await shown(page, `${n} nodes, zooming`, async () => {
    for (let i = 0; i < 6; i++) await page.mouse.wheel(0, -120)
  })
  await measure("panning", async () => {
    await page.mouse.move(430, 700)
    await page.mouse.down()
    for (let i = 0; i < 40; i++) await page.mouse.move(430 + 8 * (i % 20), 700 - 5 * (i % 17))
    await page.mouse.up()
  })
  // All nodes are in view, which is the hardest.
  await shown(page, `${n} nodes, showing all`, () => page.getByRole("button", { name: "Show all" }).click())
  await page.locator(".react-flow__pane").click({ position: { x: 20, y: 20 } })
  await page.keyboard.press("/")
  await page.getByRole("combobox", { name: /What should happen/ }).fill("empty")
  await page.getByRole("option", { name: /^Empty/ }).first().waitFor()
  await measure("adding a node", async () => {
    await page.keyboard.press("Enter")
    await page.getByText(/Changes not saved yet/).waitFor()
    await page.getByRole("complementary", { name: "Node step" }).getByRole("tab", { name: "General" }).waitFor()
  })
  await page.getByRole("tab", { name: "General" }).click()
  const field = page.getByRole("complementary").getByRole("textbox", { name: /^Description/ })
  await field.click()
  await measure("typing in a form", () => field.pressSequentially("What it does", { delay: 30 }))
  await page.keyboard.press("Escape")
  await page.getByRole("complementary").waitFor({ state: "detached" })
  // Whoever comes to a node by its address sees it, with a draft and the notice about it, too.
  const far = `n${n - 2}`
  await page.goto(`/workflows/${workflow.id}?node=${far}`)
  await page.getByText(/Your draft was found again/).waitFor()
  await page.getByRole("complementary", { name: `Node ${far}` }).waitFor()
  await expect.poll(() => inView(page, far)).toBe(true)
  await leave(page)
  quiet()

  // Near enough to take hold of one.
  const near = await open(`/workflows/${workflow.id}?node=n1`, { reducedMotion: "no-preference", fresh: !!process.env.FIGURES })
  await near.getByRole("complementary", { name: "Node n1" }).waitFor()
  await near.keyboard.press("Escape")
  await near.getByRole("complementary").waitFor({ state: "detached" })
  await near.getByRole("button", { name: "No problems found" }).waitFor()
  const measureNear = async (what: string, act: () => Promise<unknown>) => {
    longest[what] = await figures(near, `${n} nodes, ${what}`, act)
  }
  const at = await middle(near, '.react-flow__node[data-id="n1"]')
  await measureNear("moving a node", async () => {
    await near.mouse.move(at.x, at.y)
    await near.mouse.down()
    for (let i = 1; i <= 15; i++) await near.mouse.move(at.x + 4 * i, at.y - 6 * i)
    await near.mouse.up()
    await near.getByText(/Changes not saved yet/).waitFor()
  })
  await near.keyboard.press("Escape")
  const from = await middle(near, '.react-flow__node[data-id="n1"] .react-flow__handle-right')
  const to = await middle(near, '.react-flow__node[data-id="n2"]')
  const other = near.locator('.react-flow__edge[data-id="n1-result-n2"]')
  await measureNear("connecting two", async () => {
    await near.mouse.move(from.x, from.y)
    await near.mouse.down()
    for (let i = 1; i <= 10; i++) await near.mouse.move(from.x + ((to.x - from.x) * i) / 10, from.y + ((to.y - from.y) * i) / 10)
    await near.mouse.up()
    await other.waitFor({ state: "attached" })
  })
  await measureNear("undoing it", async () => {
    await near.keyboard.press("Control+z")
    await other.waitFor({ state: "detached" })
  })
  await near.getByRole("button", { name: "Show the text beside the canvas" }).click()
  await near.getByRole("textbox", { name: "Text of the workflow (YAML)" }).locator(".cm-line", { hasText: "Step 1." }).last().click()
  await near.keyboard.press("End")
  await measureNear("typing in the text", () => near.keyboard.type(" And more", { delay: 30 }))
  if (n === 30) Object.assign(small, longest)
  expect(Object.entries(longest).filter(([what, ms]) => ms > most(what))).toEqual([])
  await leave(near)
  quiet()
})
