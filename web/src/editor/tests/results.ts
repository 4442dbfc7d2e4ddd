import { call, client, type Schemas } from "@/api/client"
import { language } from "@/words"

/** Result is how a test ended when it was run last in this browser, as the server told it. */
export type Result = { passed: boolean; status?: string; execution?: string; differences: Schemas["TestDifference"][]; error?: string; at: number; /** Of which text. */ of: number }
export type Results = Record<string, Result>

const nameOf = (workflow: string) => `tandem.tests.${workflow}`

export function readResults(workflow: string): Results {
  try {
    const said: unknown = JSON.parse(localStorage.getItem(nameOf(workflow)) ?? "{}")
    return typeof said === "object" && said !== null ? (said as Results) : {}
  } catch {
    return {}
  }
}

export function keepResults(workflow: string, results: Results) {
  try {
    localStorage.setItem(nameOf(workflow), JSON.stringify(results))
  } catch {
    // Without room they are there until the page is left.
  }
}

/** markOf tells two texts apart. */
export function markOf(text: string): number {
  let h = 0
  for (let i = 0; i < text.length; i++) h = (Math.imul(h, 31) + text.charCodeAt(i)) | 0
  return h
}

/** runTest runs one test of a text, saved or not. Nothing with effects runs. */
export async function runTest(workflow: string, text: string, test: string): Promise<Result> {
  const of = markOf(text)
  const answer = await call(client.POST("/api/v1/workflows/test", { body: { definition: text as never, ...(workflow === "new" ? {} : { workflow_id: workflow }), test, language: language() } }))
  return { passed: answer.passed ?? false, status: answer.status, execution: answer.execution_id, differences: answer.differences ?? [], at: Date.now(), of }
}
