import type { Schemas } from "@/api/client"
import { families, familyOf } from "@/graph/family"
import type { Kinds } from "@/graph/keys"

type Kind = Schemas["NodeKind"]

const both = (text: Schemas["Text"] | undefined) => (text ? Object.values(text).filter((v): v is string => typeof v === "string") : [])

// What a kind is found by: its names in both languages, then its description, then its examples.
function placesOf(k: Kind): string[][] {
  return [[...both(k.title), k.name, k.subtype.replaceAll("_", " ")], both(k.description), (k.examples ?? []).flatMap((e) => [...both(e.shows), JSON.stringify(e.configurations ?? "")])]
}

const cache = new WeakMap<Kind, string[][]>()

/** findKinds are the kinds that have all the words, those with the words in their names first; without words all of them, by family. */
export function findKinds(kinds: Kinds, words: string, only?: (kind: Kind) => boolean): Kind[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
  const scored: { kind: Kind; score: number }[] = []
  for (const kind of kinds.values()) {
    if (only && !only(kind)) continue
    let places = cache.get(kind)
    if (!places) cache.set(kind, (places = placesOf(kind).map((list) => list.map((t) => t.toLowerCase()))))
    let score = 0
    for (const word of wanted) {
      const at = places.findIndex((list) => list.some((t) => t.includes(word)))
      if (at < 0) {
        score = -1
        break
      }
      score += [100, 10, 1][at]!
      if (at === 0) score += places[0]!.some((t) => t === word) ? 60 : places[0]!.some((t) => t.startsWith(word)) ? 30 : 0
    }
    if (score >= 0) scored.push({ kind, score })
  }
  const family = (k: Kind) => families.indexOf(familyOf(k.name))
  return scored.sort((a, b) => b.score - a.score || family(a.kind) - family(b.kind) || a.kind.name.localeCompare(b.kind.name)).map((s) => s.kind)
}
