import { MantineProvider } from "@mantine/core"
import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import i18next from "i18next"
import { act, type ReactNode } from "react"
import { createRoot, type Root } from "react-dom/client"
import { afterEach, beforeAll } from "vitest"
import { prepareWords } from "@/words"

declare global {
  var IS_REACT_ACT_ENVIRONMENT: boolean
}

/**
 * testPage gives the unit tests of a file a page without a browser: `show` renders into it, again and again, and waits until what was put off has happened.
 * `areas` are the words that are needed.
 */
export function testPage(...areas: string[]) {
  let root: Root | undefined
  const place = document.body.appendChild(document.createElement("div"))
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  beforeAll(async () => {
    globalThis.IS_REACT_ACT_ENVIRONMENT = true
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
  afterEach(() => {
    act(() => root?.unmount())
    root = undefined
  })
  const show = async (element: ReactNode) => {
    root ??= createRoot(place)
    await act(async () => {
      root!.render(
        <MantineProvider env="test">
          <QueryClientProvider client={client}>{element}</QueryClientProvider>
        </MantineProvider>,
      )
    })
    await settle()
  }
  const settle = () => act(() => new Promise((done) => setTimeout(done, 0)))
  return { place, show, settle }
}
