import createClient from "openapi-fetch"
import type { components, paths } from "./schema"
import { language } from "@/words"

export type Schemas = components["schemas"]

/** Problem is how the server says that something did not work (RFC 9457). */
export type Problem = Partial<Schemas["Fault"]>

/** Failure is thrown by every call that did not work. Status 0: the server was not reached. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly problem?: Problem,
  ) {
    super(message)
    this.name = "Failure"
  }
  get away() {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504
  }
}

/** toLogin leads to the page on which people log in, and back from there to where they are now. */
export function toLogin() {
  const here = location.pathname + location.search
  location.assign("/login" + (here === "/" ? "" : "?next=" + encodeURIComponent(here)))
}

export const client = createClient<paths>({ baseUrl: location.origin })

client.use({
  onRequest({ request }) {
    request.headers.set("Accept-Language", language())
    return request
  },
})

type Answer<T> = { data?: T; error?: unknown; response: Response }

/**
 * call waits for an answer of the client and returns its data, or throws a Failure that says why there is none.
 * Use it around each call: `await call(client.GET("/api/v1/workflows", {}))`.
 */
export async function call<T>(answer: Promise<Answer<T>>): Promise<T> {
  let got: Answer<T>
  try {
    got = await answer
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error
    throw new Failure(0, "unreachable", error instanceof Error ? error.message : String(error))
  }
  if (got.response.ok) return got.data as T
  if (got.response.status === 401) toLogin()
  const p = (typeof got.error === "object" && got.error !== null ? got.error : {}) as Problem
  throw new Failure(got.response.status, p.code ?? "", p.detail ?? p.title ?? (typeof got.error === "string" ? got.error : got.response.statusText), p)
}
