import { type ChildProcess, spawn } from "node:child_process"
import { randomInt } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject } from "vitest"

const root = join(import.meta.dirname, "..", "..")

/** freePort finds a port that the system gives to nobody by itself, so that a server that is killed and started again still finds it free, and that browsers go to. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(11_000, 32_000)
    const free = await new Promise<boolean>((resolve) => {
      const s = createServer()
      s.once("error", () => resolve(false))
      s.listen(port, "127.0.0.1", () => s.close(() => resolve(true)))
    })
    if (free) return port
  }
}

/**
 * What a worker keeps from one file of tests to the next: the port of their servers, the browser, and pages that nobody uses. As the servers have one address, the browser
 * loads the files of the UI once. The noises are those of the file that is tested now.
 */
const kept = { port: 0, browser: undefined as Promise<Browser> | undefined, rested: [] as Visit[], noises: [] as string[] }

/** Tandem is a server of its own with a data directory of its own. */
export class Tandem {
  dir = mkdtempSync(join(tmpdir(), "tandem-e2e-data-"))
  token = ""
  private process?: ChildProcess
  private said = ""

  get url() {
    return `http://127.0.0.1:${kept.port}`
  }

  /** start starts the server and waits until it is ready. The first start shows the token of the admin. */
  async start(...flags: string[]) {
    kept.port ||= await freePort()
    this.said = ""
    const p = spawn(inject("tandem"), ["serve", "--addr", `127.0.0.1:${kept.port}`, "--data", this.dir, ...flags], { cwd: root, stdio: ["ignore", "pipe", "pipe"] })
    this.process = p
    p.stdout.on("data", (d: Buffer) => (this.said += d))
    p.stderr.on("data", (d: Buffer) => (this.said += d))
    for (;;) {
      if (p.exitCode !== null) throw new Error(`tandem ended with ${p.exitCode}:\n${this.said}`)
      const ready = await fetch(this.url + "/readyz").then(
        (r) => r.ok,
        () => false,
      )
      // It answers a moment before it has printed the token.
      const token = /^\s*(tdm_\S+)\s*$/m.exec(this.said)?.[1]
      if (token) this.token = token
      if (ready && this.token) break
      await new Promise((done) => setTimeout(done, 50))
    }
  }

  /** kill ends the process as a crash would. */
  async kill(signal: NodeJS.Signals = "SIGKILL") {
    const p = this.process
    if (!p || p.exitCode !== null || p.signalCode !== null) return
    const gone = new Promise((done) => p.once("exit", done))
    p.kill(signal)
    await gone
  }

  /** api calls the API as the admin and returns what it answers. */
  async api<T = Record<string, unknown>>(method: string, path: string, body?: unknown, token = this.token): Promise<T> {
    const text = typeof body === "string"
    const answer = await fetch(this.url + "/api/v1" + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...(body === undefined ? {} : { "Content-Type": text ? "application/yaml" : "application/json" }) },
      body: body === undefined ? undefined : text ? body : JSON.stringify(body),
    })
    const said = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${said}`)
    return (said ? JSON.parse(said) : {}) as T
  }

  async end() {
    await this.kill("SIGTERM")
    rmSync(this.dir, { recursive: true, force: true })
  }

  /** renew ends the server and forgets everything that it kept: the next start is a first start. */
  async renew() {
    await this.end()
    this.dir = mkdtempSync(join(tmpdir(), "tandem-e2e-data-"))
    this.token = ""
  }
}

const quietly = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]

/** theBrowser is that of the worker, or another one when it has died. */
async function theBrowser(): Promise<Browser> {
  const alive = await kept.browser?.then(
    (b) => b.isConnected(),
    () => false,
  )
  if (!alive) {
    kept.rested.length = 0
    kept.browser = chromium.launch({ executablePath: inject("chromium"), args: quietly })
  }
  return kept.browser!
}

/** follow goes to an address within the page, as a link in it does: nothing is loaded once more but what the address needs. */
export async function follow(page: Page, address: string) {
  await page.evaluate((to) => {
    history.pushState(null, "", to)
    dispatchEvent(new PopStateEvent("popstate", { state: null }))
  }, address)
}

/** Visit is a page in a browser context of its own, which was made with these options. */
type Visit = { page: Page; like: BrowserContextOptions }

/** Look is what a page can be shown in without another context: one that is used again gets what its next test wants. */
type Look = Pick<BrowserContextOptions, "colorScheme" | "reducedMotion" | "viewport">

/**
 * rest makes a page as it was before its first visit, all but what the browser keeps of the files of the UI and how it looks, and says whether that is so. A new
 * page takes three times the work, because it is a new process.
 */
async function rest({ page }: Visit, origin: string): Promise<boolean> {
  const context = page.context()
  if (page.isClosed() || context.pages().length !== 1) return false
  try {
    await Promise.all([page.unrouteAll({ behavior: "ignoreErrors" }), context.unrouteAll({ behavior: "ignoreErrors" }), page.evaluate(() => sessionStorage.clear())])
    await page.goto("about:blank")
    // What is left to be kept when a page is left, is kept by now.
    const debug = await context.newCDPSession(page)
    await debug.send("Storage.clearDataForOrigin", { origin, storageTypes: "cookies,local_storage,indexeddb,cache_storage,service_workers" })
    await debug.detach() // while it is there, styles that the page puts into others are refused
    await Promise.all([context.clearCookies(), context.clearPermissions(), page.mouse.move(0, 0)])
    return true
  } catch {
    return false // a page that does not answer is not used again
  }
}

/** turn lets a page that is used again look as somebody wants it. */
async function turn(page: Page, { colorScheme, reducedMotion, viewport }: Look) {
  await page.emulateMedia({ colorScheme, reducedMotion })
  if (viewport && JSON.stringify(page.viewportSize()) !== JSON.stringify(viewport)) await page.setViewportSize(viewport)
}

/**
 * world gives a test file a server of its own and the browser of its worker. Every page that it opens is watched: an error or a warning on the console, or a request to
 * anywhere else, fails the test that calls `quiet`, and the file at its end. What `prepare` makes is there before the first test.
 *
 * A test that failed and is tried once more gets a new server, prepared in the same way: it would trip over what it made the first time. So no
 * test may need what another test left behind, unless all tests of the file are one story, told `inOrder`. With E2E_FRESH=1 every test gets a new
 * server, which shows those that need something.
 */
export function world({ flags = [], prepare = async () => {}, inOrder = false }: { flags?: string[]; prepare?: (tandem: Tandem) => Promise<unknown>; inOrder?: boolean } = {}) {
  const tandem = new Tandem()
  const { noises, rested } = kept
  const visits: Visit[] = []
  beforeAll(async () => {
    noises.length = 0
    await tandem.start(...flags)
    await prepare(tandem)
  })
  beforeEach(async ({ task }) => {
    if (inOrder || (!task.result?.retryCount && !process.env.E2E_FRESH)) return
    noises.length = 0
    await tandem.renew()
    await tandem.start(...flags)
    await prepare(tandem)
  })
  // A page that stays open goes on asking the server and drawing, beside every test that comes after it.
  afterEach(async ({ task }) => {
    const keep = task.result?.state !== "fail" && !process.env.E2E_FRESH
    await Promise.all(visits.splice(0).map((v) => end(v, keep)))
    await Promise.all(rested.splice(0, rested.length - 4).map((v) => v.page.context().close()))
  })
  const end = async (v: Visit, keep: boolean) => void (keep && (await rest(v, tandem.url)) ? rested.push(v) : await v.page.context().close())
  afterAll(async () => {
    await tandem.end()
    expect(noises).toEqual([])
  })
  /**
   * open opens a page, which is left when the test ends; it is logged in unless `token` is null. It belongs to somebody who wants no motion: without a graphics card, what moves
   * takes most of the processor. A `fresh` one is of somebody who was never here: the browser has to load everything.
   */
  const open = async (path = "/", { token = tandem.token, fresh = false, ...options }: BrowserContextOptions & { token?: string | null; fresh?: boolean } = {}): Promise<Page> => {
    const { colorScheme = "light", reducedMotion = "reduce", viewport = { width: 1280, height: 800 }, ...others } = options
    const look = { colorScheme, reducedMotion, viewport }
    const like: BrowserContextOptions = { locale: "en-GB", baseURL: tandem.url, ...others }
    const browser = await theBrowser()
    const v = (fresh ? undefined : await again(like, look)) ?? (await visit(browser, like, look))
    visits.push(v)
    if (token) {
      const answer = await v.page.context().request.post(tandem.url + "/api/v1/sessions", { headers: { Authorization: `Bearer ${token}` } })
      expect(answer.status()).toBe(201)
    }
    await v.page.goto(path)
    return v.page
  }
  const again = async (like: BrowserContextOptions, look: Look): Promise<Visit | undefined> => {
    const at = rested.findIndex((v) => JSON.stringify(v.like) === JSON.stringify(like))
    if (at < 0) return undefined
    const [v] = rested.splice(at, 1)
    await turn(v!.page, look)
    return v
  }
  const visit = async (browser: Browser, like: BrowserContextOptions, look: Look): Promise<Visit> => {
    const context = await browser.newContext({ ...like, ...look })
    // Beside much other work everything takes several times as long.
    context.setDefaultTimeout(120_000)
    const page = await context.newPage()
    watch(page)
    return { page, like }
  }
  const watch = (page: Page) => {
    page.on("console", (m) => {
      // The browser itself says that a request failed, which is what happens while a server is away; the page has to cope with it.
      if ((m.type() === "error" || m.type() === "warning") && !/Failed to load resource|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE/.test(m.text())) noises.push(`${page.url()}: ${m.text()}`)
    })
    page.on("pageerror", (e) => noises.push(`${page.url()}: ${e.stack ?? e.message}`))
    page.on("request", (r) => {
      if (!r.url().startsWith(tandem.url) && !/^(data|blob):/.test(r.url())) noises.push(`${page.url()} asks for ${r.url()}`)
    })
  }
  /** leave leaves a page before the test ends, for the next one that is opened. */
  const leave = (page: Page) => Promise.all(visits.splice(0).map((v) => (v.page === page ? end(v, true) : void visits.push(v))))
  /** quiet fails when a page of this file has made a noise so far. */
  const quiet = () => expect(noises).toEqual([])
  return { tandem, open, leave, quiet }
}
