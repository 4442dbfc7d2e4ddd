import { call, client } from "@/api/client"
import type { Definition } from "./definition"

/** readDefinition reads a revision, the newest if none is named, with the text that its author wrote where that is kept. */
export async function readDefinition(id: string, revision?: number, signal?: AbortSignal): Promise<Definition> {
  return call(client.GET("/api/v1/workflows/{id}", { params: { path: { id }, query: { include: ["source"], ...(revision ? { revision } : {}) } }, signal }))
}

/** download hands a text to the browser as a file. */
export function download(name: string, text: string, type: string) {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const a = document.createElement("a")
  a.href = url
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

/** exportWorkflow saves a workflow as a file that can be imported elsewhere. */
export async function exportWorkflow(id: string, format: "yaml" | "json") {
  const [definition, { jsonOf, yamlOf }] = await Promise.all([readDefinition(id), import("./definition")])
  if (format === "json") download(`${id}.json`, jsonOf(definition), "application/json")
  else download(`${id}.yaml`, yamlOf(definition), "application/yaml")
}
