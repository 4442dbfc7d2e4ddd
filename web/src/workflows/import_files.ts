/** Given is a file that somebody hands in, or a text that was pasted, which has no name. */
export type Given = { name: string; text: string }

const record = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value)

async function documentOf(text: string): Promise<unknown> {
  try {
    return JSON.parse(text)
  } catch {
    const { parse } = await import("yaml")
    return parse(text)
  }
}

/** idOf finds the id that a file asks for, so that one which is there already can be given another revision. */
export async function idOf(text: string): Promise<string | undefined> {
  const file = await documentOf(text)
  return record(file) && record(file.metadata) && typeof file.metadata.id === "string" ? file.metadata.id : undefined
}

/**
 * isOther says whether another system has written a file: it is a document, but not a definition as this product writes it. A text that cannot be
 * read is none, so that what is wrong is told with its line.
 */
export async function isOther(text: string): Promise<boolean> {
  let file: unknown
  try {
    file = await documentOf(text)
  } catch {
    return false
  }
  if (Array.isArray(file)) return true
  if (!record(file)) return false
  const { nodes, connections } = file
  if (!record(file.metadata) || !Array.isArray(nodes)) return true
  if (connections !== undefined && connections !== null && !(Array.isArray(connections) && connections.every((c) => record(c) && "from_node" in c))) return true
  return nodes.some((n) => record(n) && ("parameters" in n || /\.|_NODE$/.test(String(n.type))))
}
