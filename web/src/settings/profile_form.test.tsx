import { expect, test, vi } from "vitest"
import type { Schemas } from "@/api/client"
import { act, testPage } from "@/testing/page"
import { speak } from "@/words"
import { ProfileForm } from "./profile_form"

// The client takes fetch when it is made, which is before anything here runs.
const asked = vi.hoisted(() => {
  const answers: Record<string, unknown> = {
    "/api/v1/users/me": { id: "ann", roles: ["admin"] },
    "/api/v1/credentials": { credentials: [{ id: "c1", name: "delphi", type: "oracle" }, { id: "c2", name: "chat", type: "slack" }] },
  }
  const paths: string[] = []
  vi.stubGlobal("fetch", (request: Request) => {
    const path = new URL(request.url).pathname
    paths.push(path)
    return Promise.resolve(new Response(JSON.stringify(answers[path] ?? {}), { headers: { "Content-Type": "application/json" } }))
  })
  return paths
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
  await vi.waitUntil(() => asked.includes("/api/v1/credentials"))
  await page.settle()
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
