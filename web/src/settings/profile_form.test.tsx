import { expect, test } from "vitest"
import type { Schemas } from "@/api/client"
import { act, answering, testPage } from "@/testing/page"
import { speak } from "@/words"
import { ProfileForm } from "./profile_form"

const { asked } = answering({
  "/api/v1/users/me": { id: "ann", roles: ["admin"] },
  "/api/v1/credentials": { credentials: [{ id: "c1", name: "delphi", type: "oracle" }, { id: "c2", name: "chat", type: "slack" }] },
})

const page = testPage("settings", "places")

const providers: Schemas["ProfileProvider"][] = [
  { name: "oracle", label: { en: "The oracle", zh: "神谕" } },
  { name: "play", label: { en: "A play", zh: "剧本" }, scripted: true },
]

const show = (provider: string) => page.show(<ProfileForm key={provider} start={{ provider }} all={[]} providers={providers} isNew onClose={() => undefined} />)
const has = (label: string) => page.place.textContent!.includes(label)
async function options(label: string) {
  const of = [...page.place.querySelectorAll("label")].find((l) => l.textContent!.startsWith(label))!
  await act(() => document.getElementById(of.htmlFor)!.click())
  await page.settle()
  return [...document.querySelectorAll('[role="option"]')].map((o) => o.textContent)
}

test("the providers are those that the server has, in the language of the reader, with the credentials of their types", async () => {
  await show("oracle")
  await asked("/api/v1/credentials")
  expect(await options("Service")).toEqual(expect.arrayContaining(["The oracle", "A play"]))
  const credentials = await options("Credential")
  expect(credentials).toContain("delphi (oracle)")
  expect(credentials).not.toContain("chat (slack)")
  expect([has("Model"), has("Credential"), has("Script (JSON)")]).toEqual([true, true, false])
  await act(() => speak("zh"))
  await show("oracle")
  expect(page.place.querySelector<HTMLInputElement>('input[value="神谕"]')).not.toBeNull()
  await act(() => speak("en"))
})

test("a provider that plays a script has a script, and neither a model nor a credential", async () => {
  await show("play")
  expect([has("Model"), has("Credential"), has("Script (JSON)")]).toEqual([false, false, true])
})
