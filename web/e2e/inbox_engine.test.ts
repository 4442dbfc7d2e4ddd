// The questions that the engine and tools ask by themselves, answered in the inbox.
import { expect, test } from "vitest"
import { accessible, accessibleToo } from "./axe"
import { ended, questionOf } from "./questions"
import { world } from "./tandem"
import { call, tools, withTools } from "./tools"

const { tandem, open, quiet } = world({ inOrder: true })

test("a tool that somebody wants to be asked about is called with exactly what was shown", async () => {
  await withTools(tandem)
  await tandem.api("PUT", "/mcp/servers/toolbox/policies", { policies: { parcels: { policy: "ask" } } })
  const run = await call(tandem, "asks_first")
  const question = await questionOf(tandem, run, "tool_approval")
  const page = await open(`/inbox/${question}`)
  const exactly = page.getByRole("table", { name: "It will be done with exactly this" })
  expect(await exactly.textContent()).toMatch(/parcels.*p1.*2/)
  // The hash of what was shown goes with the answer.
  const sent = page.waitForRequest((r) => r.url().endsWith("/respond"))
  await accessible(page)
  await page.getByRole("button", { name: "Approve" }).click()
  const body = (await sent).postDataJSON() as { arguments_hash: string; response_data: object }
  expect(body.arguments_hash).toMatch(/^[0-9a-f]{64}$/)
  expect(body.response_data).toEqual({ approved: true })
  await page.getByText(/Recorded at/).waitFor()
  expect((await ended(tandem, run)).status).toBe("SUCCESS")
  await tandem.api("PUT", "/mcp/servers/toolbox/policies", { policies: { parcels: { policy: "read_only" } } })
  quiet()
})

test("a tool that has changed is shown as a difference, and used when it was accepted", async () => {
  tools({ description: "Deletes what parcels cost." })
  await tandem.api("POST", "/mcp/servers/toolbox/restart", {})
  const run = await call(tandem, "drifts")
  const page = await open(`/inbox/${await questionOf(tandem, run, "drift")}`)
  const difference = page.getByRole("region", { name: "What has changed" })
  await difference.getByText(/Says what parcels cost/).waitFor()
  await difference.getByText(/Deletes what parcels cost/).waitFor()
  await expect.poll(() => difference.getByRole("img", { name: "gone:" }).count()).toBeGreaterThan(0)
  await expect.poll(() => difference.getByRole("img", { name: "new:" }).count()).toBeGreaterThan(0)
  await accessible(page)
  await page.getByRole("button", { name: "Accept", exact: true }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect((await ended(tandem, run)).status).toBe("SUCCESS")
  quiet()
})

test("a tool server that is not activated is activated by the answer", async () => {
  await tandem.api("DELETE", "/mcp/servers/toolbox/activate")
  const run = await call(tandem, "activates")
  const page = await open(`/inbox/${await questionOf(tandem, run, "activation")}`)
  await page.getByText("the tools of this server may be used in your name", { exact: false }).waitFor()
  await page.getByRole("button", { name: "Accept", exact: true }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect((await ended(tandem, run)).status).toBe("SUCCESS")
  quiet()
})

test("a budget that is used up is raised", async () => {
  await tandem.api("POST", "/llm/profiles", { id: "poor", provider: "scripted", script: { rules: [{ reply: "Here you are." }] }, budget: [{ per: "workflow", tokens: 10 }] })
  await tandem.api("POST", "/workflows", {
    metadata: { id: "spends", name: "spends", description: "It spends.", version: "1.0" },
    triggers: ["start"],
    nodes: [
      { id: "start", name: "start", type: "TRIGGER", subtype: "MANUAL", configurations: {} },
      { id: "write", name: "write", type: "AI_AGENT", subtype: "LLM", configurations: { llm_profile: "poor", user_prompt: "Write a long letter about many things to many people. ".repeat(20) } },
    ],
    connections: [{ id: "c1", from_node: "start", to_node: "write" }],
  })
  const { execution_id: run } = await tandem.api<{ execution_id: string }>("POST", "/workflows/spends/execute", { inputs: {} })
  const page = await open(`/inbox/${await questionOf(tandem, run, "budget")}`)
  await page.getByRole("table", { name: "The budget" }).getByText("10 tokens").waitFor()
  await page.getByLabel("Raise the budget by").fill("-5")
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/A positive number was expected/).waitFor()
  await accessibleToo(page)
  await page.getByLabel("Raise the budget by").fill("100000")
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect((await ended(tandem, run)).status).toBe("SUCCESS")
  quiet()
})

test("what became of a call in which the process died is asked, and the run goes on by the answer", async () => {
  tools({ description: "Deletes what parcels cost.", hang: true })
  await tandem.api("POST", "/mcp/servers/toolbox/restart", {})
  const run = await call(tandem, "dies")
  await expect.poll(async () => (await tandem.api<{ execution: { node_executions: Record<string, { status: string }> } }>("GET", `/executions/${run}`)).execution.node_executions.quote?.status).toBe("running")
  // The call is under way when its start is in the record; killing the process leaves nobody who knows.
  await tandem.kill()
  tools({ description: "Deletes what parcels cost." })
  await tandem.start()
  const page = await open(`/inbox/${await questionOf(tandem, run, "outcome_unknown")}`)
  await page.getByRole("button", { name: "It was done", exact: true }).waitFor()
  await accessibleToo(page)
  await page.getByLabel(/Result \(JSON, optional\)/).fill('{"euros": 6}')
  await page.getByRole("button", { name: "Stop", exact: true }).click()
  await page.getByText(/only what was done has a result/i).waitFor()
  await page.getByRole("button", { name: "It was done", exact: true }).click()
  await page.getByText(/Recorded at/).waitFor()
  expect((await ended(tandem, run)).status).toBe("SUCCESS")
})
