import react from "@vitejs/plugin-react"
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import type { Plugin } from "vite"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"
import { outline } from "./src/docs/outline.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

// compressed keeps the assets as they are sent: the binary has one copy of each, and the server compresses nothing.
function compressed(): Plugin {
  return {
    name: "tandem-compressed",
    apply: "build",
    closeBundle() {
      const dir = join(here, "dist", "assets")
      for (const name of readdirSync(dir, { recursive: true, encoding: "utf8" })) {
        const file = join(dir, name)
        if (!statSync(file).isFile() || !/\.(js|css|svg|json)$/.test(name)) continue
        writeFileSync(file + ".gz", gzipSync(readFileSync(file), { level: 9 }))
        rmSync(file)
      }
    },
  }
}

// documents lists the documents of the product with their headings, so that they are found without being loaded. Their texts are loaded one by one.
function documents(): Plugin {
  const name = "virtual:documents"
  return {
    name: "tandem-documents",
    resolveId: (id) => (id === name ? "\0" + name : undefined),
    load(id) {
      if (id !== "\0" + name) return
      const dir = join(here, "..", "docs")
      const found = readdirSync(dir, { recursive: true, encoding: "utf8" })
        .filter((file) => /^(zh\/|decisions\/)?[\w-]+\.md$/.test(file))
        .sort()
      return `export default ${JSON.stringify(found.map((file) => ({ name: file.replace(/\.md$/, ""), ...outline(readFileSync(join(dir, file), "utf8")) })))}`
    },
  }
}

// The longest files of tests begin first: a worker that begins with one of them when all others are done keeps everybody waiting. Without this, files
// begin by their size where nobody has run them before. The one without a browser is before them all: no other can share its worker.
const long = ["kinds_form", "kinds", "editor", "settings", "executions", "inbox"]

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const at = ({ moduleId }: TestSpecification) => {
      const found = long.findIndex((name) => moduleId.endsWith(`/e2e/${name}.test.ts`))
      return found < 0 ? long.length : found
    }
    return (await super.sort(files)).sort((a, b) => at(a) - at(b))
  }
}

// The tests read all icons from one file. Else each of them is one of thousands of files, and all are read for a few.
const icons = { "@tabler/icons-react": join(here, "node_modules", "@tabler", "icons-react", "dist", "cjs", "tabler-icons-react.cjs") }

const server = process.env.TANDEM_URL ?? "http://127.0.0.1:8080"
const proxied = ["/api", "/login", "/openapi", "/respond", "/forms", "/chat", "/run"]

export default defineConfig({
  plugins: [react(), compressed(), documents()],
  resolve: { alias: { "@": join(here, "src") } },
  // Browsers of 2024 know light-dark(); for older ones it would be rewritten into something that only works where the style sheet itself sets color-scheme.
  build: { outDir: "dist", assetsInlineLimit: 0, sourcemap: false, chunkSizeWarningLimit: 800, cssTarget: ["chrome123", "firefox120", "safari17.5"] },
  // `npx vite` while the UI is worked on: the API is that of a running server.
  server: { fs: { allow: [here, join(here, "..", "docs")] }, proxy: Object.fromEntries(proxied.map((path) => [path, { target: server, ws: true }])) },
  test: {
    sequence: { sequencer: LongFirst },
    projects: [
      // The files share a page and what they import: to make both anew for each of them is half of all the work.
      { extends: true, resolve: { alias: icons }, test: { name: "unit", include: ["src/**/*.test.{ts,tsx}"], environment: "jsdom", isolate: false, testTimeout: 30_000 } },
      // The files of a worker share its browser.
      {
        extends: true,
        resolve: { alias: { ...icons, "react/jsx-dev-runtime": join(here, "e2e", "jsx.ts") } },
        test: { name: "e2e", include: ["e2e/**/*.test.ts"], globalSetup: ["e2e/setup.ts"], setupFiles: ["e2e/production.ts"], retry: 1, testTimeout: 300_000, hookTimeout: 300_000, expect: { poll: { timeout: 120_000 } }, isolate: false, fileParallelism: true, maxWorkers: 3 },
      },
    ],
  },
})
