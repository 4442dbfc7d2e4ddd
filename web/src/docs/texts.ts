import all from "virtual:documents"
import type { Language } from "@/words"
import { type Outline, partsOf } from "./outline"

const files = import.meta.glob<string>("../../../docs/{*,zh/*,decisions/*}.md", { query: "?raw", import: "default" })

export type Document = { name: string } & Outline

/** The documents in the order in which somebody reads them; one that is not named here comes at the end of its group. */
const order = {
  use: ["web", "workflow-format", "triggers", "people", "forms_and_chat", "agents", "tools", "models", "credentials", "files", "testing"],
  run: ["cli", "operating", "api", "users", "limits", "mcp_server", "sandbox", "performance"],
  build: ["architecture", "engine", "extending"],
} as const

export type Group = keyof typeof order | "decisions"
export const groups: Group[] = ["use", "run", "build", "decisions"]

const own = (name: string, lang: Language) => (lang === "zh" ? all.find((d) => d.name === `zh/${name}`) : undefined) ?? all.find((d) => d.name === name)

/** find is a document by its name, in the language if there is one in it. */
export const find = (name: string, lang: Language): Document | undefined => {
  const found = own(name, lang)
  return found && { ...found, name }
}

const named = (group: keyof typeof order): readonly string[] => order[group]
const known = new Set(Object.values(order).flat() as string[])

/** documentsOf are the documents of a group. */
export function documentsOf(group: Group, lang: Language): Document[] {
  const rest = group === "decisions" ? all.filter((d) => d.name.startsWith("decisions/")) : group === "use" ? all.filter((d) => !d.name.includes("/") && !known.has(d.name)) : []
  return [...(group === "decisions" ? [] : named(group)), ...rest.map((d) => d.name)].flatMap((name) => find(name, lang) ?? [])
}

/** isIn says whether there is a document in the language; otherwise it is English. */
export const isIn = (name: string, lang: Language) => lang === "en" || all.some((d) => d.name === `zh/${name}`)

/** read loads the text of a document. What is meant for the programs that check it is left out. */
export async function read(name: string, lang: Language): Promise<string> {
  const load = (isIn(name, lang) && lang === "zh" ? files[`../../../docs/zh/${name}.md`] : undefined) ?? files[`../../../docs/${name}.md`]
  if (!load) throw new Error(`there is no document ${name}`)
  return (await load()).replace(/^\s*<!--[^>]*-->\s*?\n/gm, "")
}

/** placeOf is where a link in a document leads in the UI: null where it leads to something that is not here, undefined where it leads out. */
export function placeOf(from: string, target: string): string | null | undefined {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return undefined
  const to = new URL(target, `http://docs/docs/${from}.md`)
  const path = to.pathname.replace(/^\/docs\//, "").replace(/^zh\//, "")
  if (!to.pathname.startsWith("/docs/")) return null
  if (path === "openapi.json") return "/openapi"
  if (path === "" || path === "README.md") return "/docs"
  // The headings of the reference are the names of the kinds: FLOW.LOOP is #flowloop there, and is found by that here, too.
  if (path.startsWith("nodes/")) return to.hash ? `/docs/kinds/${to.hash.slice(1)}` : "/docs/kinds"
  const name = path.replace(/\.md$/, "")
  return all.some((d) => d.name === name) ? `/docs/${name}${to.hash}` : null
}

/** Found is a place in a document where the words stand, with what stands around them. */
export type Found = { name: string; title: string; slug: string; around: string }

/** search looks for all the words in each part of each document. */
export async function search(words: string, lang: Language): Promise<Found[]> {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
  if (wanted.length === 0) return []
  const found: Found[] = []
  for (const d of groups.flatMap((g) => documentsOf(g, lang))) {
    partsOf(await read(d.name, lang)).forEach((part, i) => {
      const text = `${part.title}\n${part.text}`
      const low = text.toLowerCase()
      if (!wanted.every((w) => low.includes(w))) return
      const at = Math.max(0, low.indexOf(wanted[0]!) - 60)
      found.push({ name: d.name, title: i > 0 ? `${d.title} · ${part.title}` : d.title, slug: i > 0 ? part.slug : "", around: (at > 0 ? "…" : "") + text.slice(at, at + 180).replace(/\s+/g, " ") + "…" })
    })
  }
  return found
}
