/** Line is a line of a difference: in both, only in the old, or only in the new. */
export type Line = { kind: "same" | "gone" | "new"; text: string }

const most = 2_000

/** difference compares two texts line by line. Where they are too long to be compared, all of the one is gone and all of the other new. */
export function difference(before: string, after: string): Line[] {
  const a = before === "" ? [] : before.split("\n")
  const b = after === "" ? [] : after.split("\n")
  if (a.length > most || b.length > most) return [...a.map((text): Line => ({ kind: "gone", text })), ...b.map((text): Line => ({ kind: "new", text }))]
  const wide = b.length + 1
  const common = new Uint16Array((a.length + 1) * wide)
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * wide + j] = a[i] === b[j] ? common[(i + 1) * wide + j + 1]! + 1 : Math.max(common[(i + 1) * wide + j]!, common[i * wide + j + 1]!)
  const lines: Line[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i]! })
      i++
      j++
    } else if (j >= b.length || (i < a.length && common[(i + 1) * wide + j]! >= common[i * wide + j + 1]!)) lines.push({ kind: "gone", text: a[i++]! })
    else lines.push({ kind: "new", text: b[j++]! })
  }
  return lines
}
