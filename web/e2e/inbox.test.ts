import { expect, test } from "vitest"
import { accessible, accessibleToo } from "./axe"
import { answerOf, ask, ended, questionOf } from "./questions"
import { follow, type Tandem, world } from "./tandem"

const { tandem, open, quiet } = world()

/** user makes a user with a role and returns a token of theirs. */
export async function user(tandem: Tandem, id: string, role: string): Promise<string> {
  await tandem.api("POST", "/users", { id, name: id, roles: [role] })
  return (await tandem.api<{ secret: string }>("POST", `/users/${id}/tokens`, { name: "e2e" })).secret
}

test("an empty inbox says so and what to do, in both languages", async () => {
  const page = await open("/inbox")
  await page.getByText("Nothing waits for you").waitFor()
  await page.getByText("Ended", { exact: true }).click()
  await page.waitForURL(/show=ended/)
  await page.getByText("No question has ended yet").waitFor()
  await accessible(page)
  const zh = await open("/inbox", { locale: "zh-CN" })
  await zh.getByText("没有需要您回答的问题").waitFor()
  quiet()
})

test("a question that does not exist is told as that", async () => {
  const page = await open("/inbox/none")
  await page.getByText("There is no such question").waitFor()
})

test("approve in the inbox and see the run go on", async () => {
  const page = await open("/inbox")
  await page.getByText("Nothing waits for you").waitFor()
  const { question, run } = await ask(tandem, "pay", "IN_APP_APPROVAL", {
    title: "Pay invoice 118?",
    description: "The goods have arrived.",
    content: { amount: "12,400 EUR", recipient: "Meier & Sons", positions: [{ item: "Desk", count: 4 }] },
    risk: "high",
    timeout_seconds: 3000,
  })
  // It comes by itself, with the badge.
  await page.getByRole("link", { name: /Pay invoice 118/ }).click()
  await page.getByText("1 question waits for you").waitFor({ state: "attached" })
  await page.getByRole("heading", { level: 1, name: "Pay invoice 118?" }).waitFor()
  await page.getByRole("note").getByText("High risk").waitFor()
  const about = page.getByRole("table", { name: "What it is about" })
  expect(await about.getByRole("row", { name: /amount/ }).textContent()).toContain("12,400 EUR")
  const happens = page.getByRole("list", { name: "What happens then" })
  await happens.getByText("the run goes on with “carry_it_out”").waitFor()
  await happens.getByText("the run goes on with “tell_them”").waitFor()
  // The countdown runs.
  const timer = happens.getByRole("timer")
  const before = await timer.textContent()
  expect(before).toMatch(/^49:\d\d left$|^50:00 left$/)
  await expect.poll(() => timer.textContent()).not.toBe(before)
  await accessible(page)

  await page.getByLabel("Notes (optional)").fill("checked")
  await page.getByRole("button", { name: "Approve" }).click()
  await page.getByText(/Recorded at/).waitFor()
  const done = page.getByRole("status").filter({ hasText: "Recorded at" })
  await done.getByText("carry_it_out").waitFor()
  await done.getByText("succeeded").first().waitFor()
  expect((await ended(tandem, run)).status).toBe("SUCCESS")
  expect(await answerOf(tandem, question)).toMatchObject({ action: "approve", notes: "checked" })
  await page.getByText("Nothing waits for you").waitFor()
  await accessible(page)
  quiet()
})

test("a form has every type of field; what is wrong is said beside it, and what was typed survives a reload", async () => {
  const { question, run } = await ask(tandem, "stay", "FORM_SUBMISSION", {
    title: "The stay",
    input_fields: [
      { name: "guest", label: "Guest", required: true, validation: { max_length: 20 } },
      { name: "arrival", label: "Day of arrival", type: "date", required: true },
      { name: "nights", label: "Nights", type: "number", required: true, validation: { min: 1, max: 30, message: "between one night and thirty" } },
      { name: "room", label: "Room", type: "select", required: true, options: ["single", { value: "double", label: "Double room" }] },
      { name: "breakfast", label: "With breakfast", type: "boolean" },
      { name: "mail", label: "Mail address", type: "email" },
      { name: "passport", label: "Passport", type: "file", required: true },
    ],
  })
  const page = await open(`/inbox/${question}`)
  await page.getByLabel("Guest").fill("Ada")
  await page.getByLabel("Nights").fill("99")
  await page.getByLabel("Mail address").fill("nobody")
  await page.getByLabel("Nights").press("Enter")
  await page.getByText("Please check your answer").waitFor()
  await page.getByText("Between one night and thirty.").waitFor()
  await page.getByText(/is not a mail address/).waitFor()
  await accessible(page)

  await page.reload()
  await page.getByLabel("Guest").waitFor()
  expect(await page.getByLabel("Guest").inputValue()).toBe("Ada")
  await page.getByLabel("Nights").fill("3")
  await page.getByLabel("Mail address").fill("ada@example.com")
  await page.getByLabel("Day of arrival").fill("2027-03-31")
  await page.getByLabel("Room").selectOption({ label: "Double room" })
  await page.getByRole("radiogroup", { name: "With breakfast" }).getByLabel("Yes").check()
  await page.locator("input[type=file]").setInputFiles({ name: "passport.txt", mimeType: "text/plain", buffer: Buffer.from("P123") })
  await page.getByText(/passport\.txt/).waitFor()
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect((await ended(tandem, run)).status).toBe("SUCCESS")
  const { field_values } = (await answerOf(tandem, question)) as { field_values: Record<string, unknown> }
  expect(field_values).toMatchObject({ guest: "Ada", nights: 3, arrival: "2027-03-31", room: "double", breakfast: true, mail: "ada@example.com", passport: { name: "passport.txt", size: 4 } })
  quiet()
})

test("a form in Chinese tells in Chinese what is wrong", async () => {
  const { question } = await ask(tandem, "count", "FORM_SUBMISSION", { title: "Count", input_fields: [{ name: "n", label: "How many", type: "number", required: true, validation: { min: 5 } }] })
  const page = await open(`/inbox/${question}`, { locale: "zh-CN" })
  await page.getByLabel("How many").fill("1")
  await page.getByRole("button", { name: "发送" }).click()
  await page.getByText("请检查您的回答").waitFor()
  expect(await page.getByRole("form", { name: "您的回答" }).textContent()).toContain("数值过小，最小为 5。")
  await accessibleToo(page)
  quiet()
})

test("a form by a JSON Schema keeps the digits of numbers and takes nested JSON", async () => {
  const { question, run } = await ask(tandem, "schema", "FORM_SUBMISSION", {
    title: "By schema",
    form_schema: {
      type: "object",
      required: ["big", "colours"],
      properties: { big: { type: "integer", title: "Big" }, colours: { type: "array", title: "Colours", items: { enum: ["red", "green", "blue"] } }, more: { type: "object", title: "More" } },
    },
  })
  const page = await open(`/inbox/${question}`)
  await page.getByLabel("Big").fill("12345678901234567890")
  await page.getByRole("checkbox", { name: "red" }).check()
  await page.getByRole("checkbox", { name: "blue" }).check()
  await page.getByLabel("More").fill('{"a": [1,')
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText("This is not valid JSON", { exact: false }).waitFor()
  await page.getByLabel("More").fill('{"a": [1, 2]}')
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/Recorded at/).waitFor()
  await ended(tandem, run)
  const answer = await fetch(`${tandem.url}/api/v1/interactions/${question}`, { headers: { Authorization: `Bearer ${tandem.token}` } }).then((r) => r.text())
  expect(answer).toContain("12345678901234567890")
  expect(await answerOf(tandem, question)).toMatchObject({ field_values: { colours: ["red", "blue"], more: { a: [1, 2] } } })
})

test("a selection of several and of one", async () => {
  const several = await ask(tandem, "several", "IN_APP_APPROVAL", { title: "Whom do we ask?", interaction_type: "selection", selection_options: ["Meier", { value: "x", label: "Somebody else" }, "Schmidt"], allow_multiple: true })
  const page = await open(`/inbox/${several.question}`)
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText("Please check your answer").waitFor()
  await page.getByRole("checkbox", { name: "Somebody else" }).check()
  await page.getByRole("checkbox", { name: "Schmidt" }).check()
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect(await answerOf(tandem, several.question)).toMatchObject({ selected_values: ["x", "Schmidt"] })
  const one = await ask(tandem, "only_one", "IN_APP_APPROVAL", { title: "Which one?", interaction_type: "selection", selection_options: ["A", "B"] })
  await follow(page, `/inbox/${one.question}`)
  await page.getByRole("radio", { name: "B" }).check()
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect(await answerOf(tandem, one.question)).toMatchObject({ selected_values: ["B"] })
  quiet()
})

const scorings = [
  { scoring: "pass_fail", fill: "Pass", kept: true },
  { scoring: "numeric_scale", fill: "4", kept: 4 },
  { scoring: "letter_grade", fill: "B", kept: "B" },
  { scoring: "custom", fill: "Pass", kept: true },
]

test.each(scorings)("a review by $scoring, with what the score rests on", async ({ scoring, fill, kept }) => {
  const { question, run } = await ask(tandem, `review_${scoring}`, "MANUAL_REVIEW", { title: "May this be published?", content: "We are open on Sunday.", reviewers: ["user:admin"], review_criteria: ["It is true"], scoring_system: scoring, passing_threshold: 3, require_evidence: true })
  const page = await open(`/inbox/${question}`)
  await page.getByRole("radiogroup", { name: "It is true" }).getByLabel(fill, { exact: true }).check()
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/say what the score rests on/).waitFor()
  await page.getByLabel("Evidence for “It is true”").fill("the sign at the door")
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect(await answerOf(tandem, question)).toMatchObject({ scores: { "It is true": kept }, evidence: { "It is true": "the sign at the door" } })
  expect((await ended(tandem, run)).node_executions.yes?.status).toBe("completed")
})

test("a score of one's own, and a checklist of which one item is not ticked", async () => {
  const own = await ask(tandem, "own_score", "MANUAL_REVIEW", { title: "Judge", reviewers: ["user:admin"], review_criteria: ["Clear"], scoring_system: "custom", passing_threshold: 3, require_evidence: false })
  const page = await open(`/inbox/${own.question}`)
  await page.getByLabel("Clear: Or write another").fill("3.5")
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect(await answerOf(tandem, own.question)).toMatchObject({ scores: { Clear: 3.5 } })
  const list = await ask(tandem, "checklist", "MANUAL_REVIEW", { title: "Check", reviewers: ["user:admin"], review_criteria: ["Locked", "Dark"], scoring_system: "checklist", require_evidence: false })
  await follow(page, `/inbox/${list.question}`)
  await page.getByRole("checkbox", { name: "Locked" }).check()
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect(await answerOf(tandem, list.question)).toMatchObject({ scores: { Locked: true, Dark: false } })
  expect((await ended(tandem, list.run)).node_executions.no?.status).toBe("completed")
  quiet()
})

test("two look, one answers, the other sees it at once", async () => {
  const bea = await user(tandem, "bea", "approver")
  const { question } = await ask(tandem, "both", "IN_APP_APPROVAL", { title: "Who is first?", approvers: ["user:admin", "user:bea"] })
  const one = await open(`/inbox/${question}`)
  const other = await open(`/inbox/${question}`, { token: bea })
  await other.getByLabel("Notes (optional)").fill("I was going to say no")
  await one.getByRole("button", { name: "Approve" }).click()
  await other.getByText("This happened while you were looking", { exact: false }).waitFor()
  await other.getByText(/Answered by admin/).waitFor()
  await accessibleToo(other)
  quiet()
})

test("votes are counted, and a question is handed on", async () => {
  const cem = await user(tandem, "cem", "approver")
  const dora = await user(tandem, "dora", "approver")
  const { question, run } = await ask(tandem, "votes", "IN_APP_APPROVAL", { title: "Two have to agree", approvers: ["user:admin", "user:cem"], min_approvals: 2, allow_delegation: true })
  const page = await open(`/inbox/${question}`)
  await page.getByText("0 of 2 that are needed").waitFor()
  await page.getByRole("button", { name: "Approve" }).click()
  await page.getByText("Your vote is recorded").waitFor()
  // It waits for others now: neither the list nor the badge counts it, also after a reload.
  const list = page.getByRole("region", { name: "Inbox" })
  await expect.poll(() => list.getByRole("link", { name: /Two have to agree/ }).count()).toBe(0)
  await page.reload()
  await page.getByText("1 of 2 that are needed").waitFor()
  expect(await list.getByRole("link", { name: /Two have to agree/ }).count()).toBe(0)
  const { total_count } = await tandem.api<{ total_count: number }>("GET", "/interactions?mine=true&status=pending")
  const badge = page.getByRole("navigation", { name: "Places" }).getByText(/questions? waits? for you/)
  if (total_count > 0) await expect.poll(async () => (await badge.textContent())?.match(/\d+/)?.[0]).toBe(String(total_count))
  else await expect.poll(() => badge.count()).toBe(0)
  await page.getByText("1 of 2 that are needed").waitFor()
  const his = await open(`/inbox/${question}`, { token: cem })
  await his.getByText("1 of 2 that are needed").waitFor()
  await his.getByRole("button", { name: "Hand it on" }).click()
  await accessible(his)
  const dialog = his.getByRole("dialog")
  await dialog.getByLabel("To whom").fill("dora")
  await dialog.getByLabel("A word to them (optional)").fill("you know more")
  await dialog.getByRole("button", { name: "Hand it on" }).click()
  await his.getByText("Handed on to dora").waitFor()
  await his.getByText("You cannot answer this question").waitFor()
  await his.getByText("handed it on to dora", { exact: false }).waitFor()
  const hers = await open("/inbox", { token: dora })
  await hers.getByRole("link", { name: /Two have to agree/ }).click()
  await hers.getByRole("button", { name: "Approve" }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect((await ended(tandem, run)).status).toBe("SUCCESS")
  quiet()
})

test("an admin decides in the place of others only with a reason, reminds them, and withdraws", async () => {
  await user(tandem, "eli", "approver")
  const { question } = await ask(tandem, "override", "IN_APP_APPROVAL", { title: "For Eli", approvers: ["user:eli"] })
  const page = await open("/inbox?show=all")
  await page.getByRole("link", { name: /For Eli/ }).click()
  await page.getByText("You cannot answer this question").waitFor()
  await page.getByRole("button", { name: "Remind them" }).click()
  await page.getByText("nobody who is asked has chosen to be reached elsewhere", { exact: false }).waitFor()
  await page.getByRole("button", { name: "Decide in their place" }).click()
  await page.getByRole("button", { name: "Approve" }).click()
  await page.getByText("Say why you decide", { exact: false }).waitFor()
  await page.getByLabel("Why you decide in their place").fill("Eli is ill")
  await page.getByRole("button", { name: "Approve" }).click()
  await page.getByText(/decided in the place of those who were asked \(Eli is ill\)/).waitFor()
  expect(await answerOf(tandem, question)).toMatchObject({ action: "approve" })
  const other = await ask(tandem, "withdrawn", "IN_APP_APPROVAL", { title: "Not needed" })
  await follow(page, `/inbox/${other.question}`)
  await page.getByRole("button", { name: "Withdraw the question" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Withdraw it" }).click()
  await page.getByText(/Withdrawn at/).waitFor()
  quiet()
})

test("the keys j, k and Enter go through the list; what is shown is in the address", async () => {
  await ask(tandem, "key_one", "IN_APP_APPROVAL", { title: "Key one" })
  await ask(tandem, "key_two", "IN_APP_APPROVAL", { title: "Key two" })
  const { question: answered } = await ask(tandem, "key_three", "IN_APP_APPROVAL", { title: "Key three" })
  await tandem.api("POST", `/interactions/${answered}/respond`, { response_data: { action: "approve" } })
  const page = await open("/inbox")
  const links = page.locator("a[data-question]")
  await links.nth(1).waitFor()
  const second = await links.nth(1).getAttribute("data-question")
  await page.keyboard.press("j")
  await page.keyboard.press("j")
  await page.keyboard.press("j")
  await page.keyboard.press("k")
  const focused = await page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset.question)
  expect(focused).toBeTruthy()
  await page.keyboard.press("Enter")
  await page.waitForURL(`**/inbox/${focused}`)
  expect(second).toBeTruthy()
  await follow(page, "/inbox?show=ended")
  await page.getByRole("link", { name: /Key three/ }).waitFor()
  quiet()
})

test("a fork shows what was edited beside what it was, and why it is asked again", async () => {
  const first = await ask(tandem, "forked", "IN_APP_APPROVAL", { title: "Pay {{amount}}?", content: { amount: "{{amount}}", total: "{{total}}" } }, { amount: 5, total: 6 })
  await tandem.api("POST", `/interactions/${first.question}/respond`, { response_data: { action: "approve" } })
  await ended(tandem, first.run)
  const fork = await tandem.api<{ execution_id: string }>("POST", `/executions/${first.run}/actions`, { action: "fork", node_id: "ask", input: { amount: 5000, Reason: "x" }, reason: "one nought was missing" })
  const id = fork.execution_id
  const page = await open(`/inbox/${await questionOf(tandem, id)}`)
  const note = page.getByRole("note").filter({ hasText: "Before you answer" })
  await note.getByText(/this is a fork/).waitFor()
  const row = note.getByRole("row", { name: /amount/ })
  expect(await row.getByRole("cell").allTextContents()).toEqual(["5", "5000"])
  // Also where a value is called like the beginning of a line.
  await note.getByText("Reason: one nought was missing").waitFor()
  // What stands beside it is as it was before, and that is said.
  await note.getByText("Not edited, and not computed again from what was: total").waitFor()
  await accessible(page)
  const zh = await open(new URL(page.url()).pathname, { locale: "zh-CN" })
  await zh.getByRole("note").getByText("没有修改、也没有根据修改后的值重新计算：total").waitFor()
  quiet()
})

const nasty = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script> [link](javascript:alert(1)) \u202egnp.exe`

test("hostile content is inert", async () => {
  const { question } = await ask(tandem, "hostile", "IN_APP_APPROVAL", { title: nasty, description: nasty, content: { [nasty]: nasty, html: "<b onclick=alert(1)>x</b>", url: "javascript:alert(1)" }, approval_options: [{ value: "ok", label: nasty, outcome: "confirmed" }, "reject"] })
  const page = await open("/inbox")
  await page.locator(`a[data-question="${question}"]`).click()
  const article = page.getByRole("article")
  await article.getByRole("heading", { level: 1 }).waitFor()
  expect(await article.textContent()).toContain("<img src=x onerror=")
  // What turns the direction of reading is written out.
  expect(await article.textContent()).toContain("\\u202e")
  expect(await article.textContent()).not.toContain("\u202e")
  expect(await page.locator("article img, article script, article a[href^=javascript]").count()).toBe(0)
  expect(await page.title()).not.toBe("owned")
  quiet()
})

test("on a phone, dark and in Chinese: one column, buttons far apart, nothing wider than the screen", async () => {
  const { question } = await ask(tandem, "phone", "IN_APP_APPROVAL", { title: "Phone?", content: { amount: "5 EUR", long: "x".repeat(300) }, risk: "medium" })
  const page = await open("/inbox", { viewport: { width: 375, height: 740 }, colorScheme: "dark", locale: "zh-CN", hasTouch: true })
  await page.getByRole("link", { name: /Phone\?/ }).click()
  const yes = page.getByRole("button", { name: "批准" })
  const no = page.getByRole("button", { name: "拒绝" })
  await yes.waitFor()
  const [a, b] = [await yes.boundingBox(), await no.boundingBox()]
  expect(a!.height).toBeGreaterThanOrEqual(44)
  expect(b!.y - (a!.y + a!.height)).toBeGreaterThanOrEqual(24)
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375)
  await accessible(page)
  await page.getByRole("link", { name: "全部问题" }).click()
  await page.waitForURL("**/inbox")
  await accessibleToo(page)
  await follow(page, `/inbox/${question}`)
  await yes.click()
  await page.getByText(/记录/).first().waitFor()
  quiet()
})

test("while the server is away the page says so, keeps what was typed, and goes on by itself", async () => {
  const { question, run } = await ask(tandem, "away", "IN_APP_APPROVAL", { title: "Away?" })
  const page = await open(`/inbox/${question}`)
  await page.getByLabel("Notes (optional)").fill("still here")
  await tandem.kill()
  await page.getByText("The server does not answer. What you typed is kept", { exact: false }).waitFor()
  await page.getByRole("button", { name: "Approve" }).click()
  await page.getByText("Nothing was sent for certain", { exact: false }).waitFor()
  await tandem.start()
  await page.getByText("The server does not answer. What you typed is kept", { exact: false }).waitFor({ state: "detached" })
  expect(await page.getByLabel("Notes (optional)").inputValue()).toBe("still here")
  await page.getByRole("button", { name: "Approve" }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect((await ended(tandem, run)).status).toBe("SUCCESS")
})

test("the first load of the inbox is under 500 KB as it is sent", async () => {
  const page = await open("/inbox", { fresh: true })
  await page.getByRole("heading", { name: "Inbox" }).waitFor()
  await page.waitForLoadState("load")
  const sent = await page.evaluate(() => {
    const list = [...performance.getEntriesByType("resource"), ...performance.getEntriesByType("navigation")] as PerformanceResourceTiming[]
    return list.filter((e) => !e.name.includes("/api/")).reduce((sum, e) => sum + e.transferSize, 0)
  })
  expect(sent).toBeGreaterThan(50_000)
  expect(sent).toBeLessThan(500_000)
  console.info(`the inbox loads ${Math.round(sent / 1000)} KB`)
})
