import { call, client, type Schemas } from "./client"

// A definition may be sent as YAML or JSON; the server reads both as YAML, and keeps comments where it keeps the text.
const asText = { headers: { "Content-Type": "application/yaml" }, bodySerializer: (body: unknown) => body as string }

/** createWorkflow keeps a new workflow, written as YAML or JSON. */
export function createWorkflow(text: string): Promise<Schemas["Saved"]> {
  return call(client.POST("/api/v1/workflows", { ...asText, body: text as never }))
}

/** putWorkflow keeps a new revision under this id, or the first one. With `match` only if the newest revision is still that one. */
export function putWorkflow(id: string, text: string, match?: number): Promise<Schemas["Saved"]> {
  const header = match === undefined ? {} : { "If-Match": `"${match}"` }
  return call(client.PUT("/api/v1/workflows/{id}", { ...asText, params: { path: { id }, header }, body: text as never }))
}
