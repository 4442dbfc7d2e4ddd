import { MemoryRouter } from "react-router"
import { expect, test, vi } from "vitest"
import { testPage } from "@/testing/page"
import { QuestionAbout } from "./about"
import type { Question } from "./types"

vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}", { headers: { "Content-Type": "application/json" } })))

const page = testPage("question", "markdown")

test("a line that tells an edited value gives way to the table, whatever it says; the others stay", async () => {
  const question = {
    id: "q",
    execution_id: "x",
    purpose: "human_node",
    request_data: { fork: { edits: [{ name: "amount", original: 1, edited: 2 }] } },
    form: { language: "en", lines: ["This is a fork.", "amount has become 2", "amount: now 3, says the reason"], edit_lines: [1], entries: [] },
  } as unknown as Question
  await page.show(
    <MemoryRouter>
      <QuestionAbout question={question} />
    </MemoryRouter>,
  )
  const said = page.place.textContent
  expect(said).toContain("This is a fork.")
  expect(said).toContain("amount: now 3, says the reason")
  expect(said).not.toContain("amount has become 2")
})
