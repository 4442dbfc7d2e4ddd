import { MantineProvider } from "@mantine/core"
import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import i18next from "i18next"
import * as React from "react"
import type { ReactNode } from "react"
import { createRoot, type Root } from "react-dom/client"
import { afterAll, afterEach, beforeAll } from "vitest"
import { client } from "@/api/client"
import { prepareWords } from "@/words"

declare global {
  var IS_REACT_ACT_ENVIRONMENT: boolean
}

/**
 * act does something and waits until React has drawn what came of it. React's own is there in its development build alone; that for production is
 * waited for until it has nothing more to do.
 */
export const act: (does: () => unknown) => Promise<void> = React.act
  ? (does) => React.act(async () => void (await does()))
  : async (does) => {
      await does()
      for (let i = 0; i < 4; i++) await new Promise((done) => setImmediate(done))
    }

/**
 * testPage gives the unit tests of a file a page without a browser: `show` renders into it, again and again, and waits until what was put off has happened.
 * `areas` are the words that are needed.
 */
export function testPage(...areas: string[]) {
  let root: Root | undefined
  const place = document.body.appendChild(document.createElement("div"))
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  beforeAll(async () => {
    globalThis.IS_REACT_ACT_ENVIRONMENT = !!React.act
    // What this page of tests lacks and the libraries ask for.
    window.matchMedia ??= ((query: string) => ({ matches: false, media: query, addEventListener() {}, removeEventListener() {}, addListener() {}, removeListener() {} })) as never
    globalThis.ResizeObserver ??= class {
      observe() {}
      unobserve() {}
      disconnect() {}
    } as never
    Range.prototype.getClientRects ??= () => [] as unknown as DOMRectList
    Range.prototype.getBoundingClientRect ??= () => new DOMRect()
    Element.prototype.scrollIntoView ??= () => {}
    await prepareWords()
    await i18next.loadNamespaces([...areas, "code"])
    await import("@/parts/code/editor")
  })
  afterEach(async () => {
    await act(() => root?.unmount())
    root = undefined
  })
  const show = async (element: ReactNode) => {
    root ??= createRoot(place)
    await act(async () => {
      root!.render(
        <MantineProvider env="test">
          <QueryClientProvider client={queries}>{element}</QueryClientProvider>
        </MantineProvider>,
      )
    })
    await settle()
  }
  const settle = () => act(() => new Promise((done) => setTimeout(done, 0)))
  return { place, show, settle }
}

/**
 * answering lets the server of the unit tests of a file answer reads, by their paths. `asked` waits until one of them was, and its answer is drawn.
 */
export function answering(answers: Record<string, unknown>) {
  const paths = new Set<string>()
  const server = {
    onRequest({ request }: { request: Request }) {
      const path = new URL(request.url).pathname
      paths.add(path)
      return Response.json(answers[path] ?? {})
    },
  }
  beforeAll(() => client.use(server))
  afterAll(() => client.eject(server))
  const settle = () => act(() => new Promise((done) => setTimeout(done, 0)))
  const asked = async (path: string) => {
    while (!paths.has(path)) await settle()
    await settle()
  }
  return { asked }
}
