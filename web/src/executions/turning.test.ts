import { expect, test } from "vitest"
import { Failure, type Schemas } from "@/api/client"
import { askedFor, markFor, turned } from "./turning"

const list = ["c", "b", "a"].map((execution_id) => ({ execution_id })) as Schemas["Executions"]["executions"]

test("a page is counted from the nearest execution that is shown, the first and the last by their numbers", () => {
  const at = (next: number) => askedFor(next, markFor(list, 5, next, 9) ?? null)
  expect(at(6)).toEqual({ page: 1, older_than: "a" })
  expect(at(8)).toEqual({ page: 3, older_than: "a" })
  expect(at(4)).toEqual({ page: 1, newer_than: "c" })
  expect(at(2)).toEqual({ page: 3, newer_than: "c" })
  expect(at(1)).toEqual({ page: 1 })
  expect(at(9)).toEqual({ page: 9 })
  expect(askedFor(4, "4.a")).toEqual({ page: 4 })
  expect(askedFor(4, "nonsense")).toEqual({ page: 4 })
  expect(markFor([], 5, 6, 9)).toBeUndefined()
})

test("an execution that is no longer kept is not counted from", async () => {
  const asked: unknown[] = []
  const read = async (q: { page: number; older_than?: string }) => {
    asked.push(q)
    if (q.older_than) throw new Failure(404, "not_found", "gone")
    return { executions: list, total_count: 3, page: q.page, page_size: 3 } as Schemas["Executions"]
  }
  expect((await turned(4, "3.gone", read)).page).toBe(4)
  expect(asked).toEqual([{ page: 1, older_than: "gone" }, { page: 4 }])
})
