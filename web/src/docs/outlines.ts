import type { Language } from "@/words"
import { documentsOf, groups } from "./texts"

/** outlines are the documents and their headings, each with its address, for the palette. */
export function outlines(lang: Language): { to: string; name: string }[] {
  return groups.flatMap((g) => documentsOf(g, lang)).flatMap((d) => [{ to: `/docs/${d.name}`, name: d.title }, ...d.sections.map((s) => ({ to: `/docs/${d.name}#${s.slug}`, name: `${d.title} · ${s.title}` }))])
}
