/** valueAt follows a path as the server writes it, nodes[3].configurations.server_id, into a definition. */
export function valueAt(d: unknown, path: string): unknown {
  let at: unknown = d
  for (const step of path.replace(/\[(\d+)\]/g, ".$1").split(".")) {
    if (typeof at !== "object" || at === null) return undefined
    at = (at as Record<string, unknown>)[step]
  }
  return at
}
