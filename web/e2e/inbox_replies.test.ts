// Replies in people's own words, how they were understood, and links to the response page.
import { createHmac, randomBytes } from "node:crypto"
import { createServer } from "node:http"
import { afterAll, beforeAll, expect, test } from "vitest"
import { accessible } from "./axe"
import { answerOf, ask, ended } from "./questions"
import { world } from "./tandem"

const secret = randomBytes(32).toString("hex")
let bob = ""

const { tandem, open, quiet } = world({
  flags: ["--http-allow", "127.0.0.1"],
  prepare: async (tandem) => {
    await tandem.api("POST", "/users", { id: "bob", name: "bob", roles: ["approver"] })
    bob = (await tandem.api<{ secret: string }>("POST", "/users/bob/tokens", { name: "e2e" })).secret
    await tandem.api("POST", "/credentials", { name: "hook", type: "webhook_secret", data: { secret } })
  },
})

const asked = new Map<string, (callback: string) => void>()
const callbacks = new Map<string, string>()

// The program that questions are posted to.
const program = createServer((request, response) => {
  let body = ""
  request.on("data", (d: Buffer) => (body += d))
  request.on("end", () => {
    const { interaction, callback_url } = JSON.parse(body) as { interaction?: { id: string }; callback_url?: string }
    if (interaction && callback_url) {
      callbacks.set(interaction.id, callback_url)
      asked.get(interaction.id)?.(callback_url)
    }
    response.end("{}")
  })
})

beforeAll(async () => {
  await new Promise<void>((done) => program.listen(0, "127.0.0.1", done))
})

afterAll(() => {
  program.closeAllConnections()
  program.close()
})

/** replies brings what somebody says in their own words, as the program does. */
async function replies(question: string, responder: string, text: string) {
  const url = callbacks.get(question) ?? (await new Promise<string>((done) => asked.set(question, done)))
  const body = JSON.stringify({ interaction_id: question, responder, text })
  const at = String(Math.floor(Date.now() / 1000))
  const signature = "v1=" + createHmac("sha256", secret).update(`${at}.${body}`).digest("hex")
  const answer = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json", "X-Tandem-Timestamp": at, "X-Tandem-Signature": signature }, body })
  expect(answer.status, await answer.text()).toBe(200)
}

const byProgram = () => ({ channel_type: "webhook", webhook_url: `http://127.0.0.1:${(program.address() as { port: number }).port}/in`, credential_id: "hook" })

test("how a reply was understood is shown with its reasons, and one that was understood wrongly is corrected", async () => {
  const { question } = await ask(tandem, "prose", "IN_APP_APPROVAL", { ...byProgram(), title: "Pay the invoice?", approvers: ["user:bob", "user:admin"], min_approvals: 2 })
  await replies(question, "bob", "I approve this.")
  const page = await open(`/inbox/${question}`)
  await page.getByText("1 of 2 that are needed").waitFor()
  const history = page.getByRole("list").filter({ hasText: "bob answered" })
  await history.getByText("I approve this.").waitFor()
  await history.getByText(/Understood as: Approve\. It is a clear answer · score 0\.\d\d|score 1\.00/).waitFor()
  await history.getByText(/^Reasons: /).waitFor()
  await accessible(page)
  await history.getByRole("button", { name: "Correct how it was understood" }).click()
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("It decides nothing: it no longer counts").check()
  await accessible(page)
  expect(await dialog.getByRole("button", { name: "Correct it" }).isDisabled()).toBe(true)
  await dialog.getByLabel("Why").fill("he meant another invoice")
  await dialog.getByRole("button", { name: "Correct it" }).click()
  await page.getByText("0 of 2 that are needed").waitFor()
  await page.getByText("you said that it was understood wrongly: he meant another invoice").waitFor()
  expect(await page.getByRole("button", { name: "Correct how it was understood" }).count()).toBe(0)
  quiet()
})

test("what was not clear counts as what an approver says that it means, in Chinese too", async () => {
  const { question, run } = await ask(tandem, "unclear", "IN_APP_APPROVAL", { ...byProgram(), title: "Pay the other invoice?", approvers: ["user:bob", "user:admin"] })
  await replies(question, "bob", "Maybe, who knows.")
  const page = await open(`/inbox/${question}`, { locale: "zh-CN" })
  await page.getByText("未理解出任何决定。", { exact: false }).waitFor()
  await page.getByRole("button", { name: "更正理解" }).click()
  const dialog = page.getByRole("dialog")
  expect(await dialog.getByText("不构成决定：不再计入").count()).toBe(0)
  await dialog.getByLabel("拒绝").check()
  await dialog.getByLabel("理由").fill("已电话确认")
  await dialog.getByRole("button", { name: "更正" }).click()
  await page.getByText(/记录/).first().waitFor()
  expect((await ended(tandem, run)).node_executions.no?.status).toBe("completed")
  expect(await answerOf(tandem, question)).toMatchObject({ action: "reject" })
  await page.getByText("认定为此意", { exact: false }).waitFor()
  quiet()
})

test("who wrote a reply does not correct it, and who is not asked does not either", async () => {
  const { question } = await ask(tandem, "own_words", "IN_APP_APPROVAL", { ...byProgram(), title: "Pay a third?", approvers: ["user:bob"] })
  await replies(question, "bob", "Maybe, who knows.")
  for (const token of [bob, tandem.token]) {
    const page = await open(`/inbox/${question}`, { token })
    await page.getByText("Understood as no decision", { exact: false }).waitFor()
    expect(await page.getByRole("button", { name: "Correct how it was understood" }).count()).toBe(0)
  }
  quiet()
})

test("a link of one's own is made and copied, and answers without a login", async () => {
  const { question, run } = await ask(tandem, "linked", "IN_APP_APPROVAL", { title: "By link?", approvers: ["user:bob"] })
  const page = await open(`/inbox/${question}`, { token: bob })
  await page.getByRole("button", { name: "Make a link to answer" }).click()
  const dialog = page.getByRole("dialog")
  await dialog.getByText("answers in your name", { exact: false }).waitFor()
  await dialog.getByRole("button", { name: "Make the link" }).click()
  const url = await dialog.getByLabel("The link, shown this once").inputValue()
  await accessible(page)
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
  await dialog.getByRole("button", { name: "Copy it" }).click()
  await dialog.getByRole("button", { name: "Copied" }).waitFor()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(url)
  // An admin who is not asked can only have one sent, and is told where it cannot be.
  const admin = await open(`/inbox/${question}`)
  await admin.getByRole("button", { name: "Make a link to answer" }).click()
  await admin.getByRole("dialog").getByText("You are not shown it", { exact: false }).waitFor()
  await admin.getByRole("dialog").getByRole("button", { name: "Send them a link" }).click()
  await admin.getByText("has not chosen to be reached elsewhere", { exact: false }).waitFor()
  const stranger = await open(new URL(url).pathname, { token: null })
  await stranger.getByRole("button", { name: "Approve" }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect((await ended(tandem, run)).status).toBe("SUCCESS")
  quiet()
})
