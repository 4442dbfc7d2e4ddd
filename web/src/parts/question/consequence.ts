import { useQuery } from "@tanstack/react-query"
import { call, client } from "@/api/client"
import type { Question } from "./types"

type Definition = { nodes?: { id: string; name?: string }[]; connections?: { from_node: string; to_node: string; output_key?: string }[] }

/** Next are the names of the nodes that follow an answer, by what it decides. */
export type Next = { confirmed: string[]; rejected: string[]; timeout: string[] }

/** nextOf reads in a definition what follows a question. */
export function nextOf(definition: Definition, node: string): Next {
  const name = (id: string) => definition.nodes?.find((n) => n.id === id)?.name || id
  const after = (...keys: string[]) => [...new Set((definition.connections ?? []).filter((c) => c.from_node === node && keys.includes(c.output_key || "result")).map((c) => name(c.to_node)))]
  return { confirmed: after("confirmed", "result"), rejected: after("rejected", "result"), timeout: after("timeout", "result") }
}

/** useNext is what follows the question of a node; nothing for those that the engine or an agent asks. */
export function useNext(q: Question): Next | undefined {
  const { data } = useQuery({
    queryKey: ["executions", q.execution_id, "definition"],
    enabled: q.purpose === "human_node" && q.status === "pending",
    staleTime: Infinity,
    queryFn: ({ signal }) => call(client.GET("/api/v1/executions/{id}", { params: { path: { id: q.execution_id }, query: { include: ["workflow"] } }, signal })),
  })
  const definition = (data as { workflow_definition?: Definition } | undefined)?.workflow_definition
  return definition && nextOf(definition, q.node_id)
}
