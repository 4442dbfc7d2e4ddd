import { slugs } from "../parts/markdown/slugs.ts"

/** Part is a heading of a document, its address, and what stands below it up to the next one. */
export type Part = { title: string; slug: string; level: number; text: string }

/** partsOf takes a document apart at its headings. What stands in a block of code is not a heading. */
export function partsOf(text: string): Part[] {
  const slug = slugs()
  const parts: Part[] = []
  let code = false
  for (const line of text.split("\n")) {
    if (/^\s*(```|~~~)/.test(line)) code = !code
    const [, marks, heading] = (!code && /^(#{1,6})\s+(.+?)\s*#*$/.exec(line)) || []
    if (marks && heading) parts.push({ title: heading.replace(/[`*]/g, "").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1"), slug: slug(heading), level: marks.length, text: "" })
    else if (parts.length > 0) parts[parts.length - 1]!.text += line + "\n"
  }
  return parts
}

/** Outline is the title of a document and its headings, each with its address. */
export type Outline = { title: string; sections: Omit<Part, "text">[] }

/** outline is what a document is about, without its text. */
export function outline(text: string): Outline {
  const [first, ...rest] = partsOf(text)
  return { title: first?.title ?? "", sections: rest.map(({ title, slug, level }) => ({ title, slug, level })) }
}
