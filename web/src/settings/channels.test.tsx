import { expect, test } from "vitest"
import type { Schemas } from "@/api/client"
import { act, answering, testPage } from "@/testing/page"
import { ChannelForm } from "./channels"

const { asked } = answering({
  "/api/v1/users/me": { id: "ann", roles: ["admin"] },
  "/api/v1/credentials": { credentials: [{ id: "c1", name: "loft", type: "feather" }, { id: "c2", name: "chat", type: "slack_bot" }, { id: "c3", name: "nest", type: "straw" }] },
})

const page = testPage("settings", "places")

const has = (label: string) => [...page.place.querySelectorAll("label")].some((l) => l.textContent!.startsWith(label))
async function options(label: string) {
  const of = [...page.place.querySelectorAll("label")].find((l) => l.textContent!.startsWith(label))!
  await act(() => document.getElementById(of.htmlFor)!.click())
  await page.settle()
  return [...document.querySelectorAll('[role="option"]')].map((o) => o.textContent)
}

test("what a channel can be sent and read with is what the server says of its media", async () => {
  const media: Schemas["ContactMedium"][] = [{ channel_type: "pigeon", credentials: ["feather"], reads_with: ["straw"], needs_url: true }]
  await page.show(<ChannelForm start={{ name: "coop", credential_id: "c1" }} media={media} onClose={() => undefined} />)
  await asked("/api/v1/credentials")
  const sent = await options("Sends with")
  expect(sent).toContain("loft (feather)")
  expect(sent).not.toContain("chat (slack_bot)")
  expect(has("Reads replies with")).toBe(true)
  expect(has("Address of the program")).toBe(true)
  await page.show(<ChannelForm key="plain" start={{ name: "coop", credential_id: "c1" }} media={[{ channel_type: "pigeon", credentials: ["feather"] }]} onClose={() => undefined} />)
  expect(has("Reads replies with")).toBe(false)
  expect(has("Address of the program")).toBe(false)
})
