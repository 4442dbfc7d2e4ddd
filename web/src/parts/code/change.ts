/** smallestChange is the one replacement that makes `next` of `before`, so that the cursor and what is folded stay where they are; undefined when they are the same. */
export function smallestChange(before: string, next: string): { from: number; to: number; insert: string } | undefined {
  if (before === next) return undefined
  const shorter = Math.min(before.length, next.length)
  let from = 0
  while (from < shorter && before.charCodeAt(from) === next.charCodeAt(from)) from++
  let same = 0
  while (same < shorter - from && before.charCodeAt(before.length - 1 - same) === next.charCodeAt(next.length - 1 - same)) same++
  return { from, to: before.length - same, insert: next.slice(from, next.length - same) }
}
