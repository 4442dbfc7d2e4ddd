import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    tandem: string
    chromium: string
  }
}

const root = join(import.meta.dirname, "..", "..")

/**
 * The tests use the real binary, built once with the UI as it is in dist (TANDEM_BINARY names another), and a real Chromium. Whatever they, the servers and the browsers
 * leave in the directory for temporary files is gone at the end.
 */
export default function setup(project: TestProject) {
  const dir = mkdtempSync(join(tmpdir(), "tandem-e2e-"))
  process.env.TMPDIR = dir
  let binary = process.env.TANDEM_BINARY
  if (!binary) {
    binary = join(dir, "tandem")
    execFileSync(process.env.GO ?? "go", ["build", "-o", binary, "./cmd/tandem"], { cwd: root, stdio: "inherit" })
  }
  project.provide("tandem", binary)
  project.provide("chromium", execFileSync(join(root, "scripts", "chromium.sh"), { encoding: "utf8" }).trim())
  return () => rmSync(dir, { recursive: true, force: true, maxRetries: 10 })
}
