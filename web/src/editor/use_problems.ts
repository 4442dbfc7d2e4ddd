import { useDebouncedValue } from "@mantine/hooks"
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import { call, client, type Schemas } from "@/api/client"
import type { NodeProblem } from "@/graph"
import type { Model } from "./history"

export type FileProblem = Schemas["Problem"]

/** useProblems is everything that is wrong with the text, as the server says it, a moment after the last change. While the server is away the last answer stays. */
export function useProblems(model: Model) {
  const [text] = useDebouncedValue(model.text, 350)
  const query = useQuery({
    queryKey: ["workflow-validation", text],
    queryFn: ({ signal }) => call(client.POST("/api/v1/workflows/validate", { headers: { "Content-Type": "application/yaml" }, bodySerializer: (b: unknown) => b as string, body: text as never, signal })),
    enabled: text.trim() !== "",
    placeholderData: keepPreviousData,
    gcTime: 60_000,
    staleTime: 60_000,
  })
  const problems = useMemo(() => sorted(query.data?.problems ?? []), [query.data])
  const { definition } = model
  const byNode = useMemo(() => {
    const map = new Map<string, NodeProblem[]>()
    for (const p of problems) {
      const id = nodeOf(p, { definition })
      // A missing description is in the list; a card is not marked for it.
      if (id && p.code !== "no_description") map.set(id, [...(map.get(id) ?? []), p])
    }
    return map
  }, [problems, definition])
  return { problems, byNode, current: query.isSuccess && !query.isPlaceholderData && text === model.text }
}

const sorted = (list: FileProblem[]) => [...list].sort((a, b) => Number(b.severity === "error") - Number(a.severity === "error") || (a.line ?? 0) - (b.line ?? 0))

/** nodeOf is the node that a problem is about: the one it names, the one its path leads to, or that of a connection. */
export function nodeOf(p: Pick<FileProblem, "node" | "path">, { definition }: Pick<Model, "definition">): string | undefined {
  if (p.node) return p.node
  const [, list, index] = /^(nodes|connections)\[(\d+)\]/.exec(p.path ?? "") ?? []
  if (list === "nodes") return definition.nodes.find((n) => n.index === Number(index))?.id
  if (list === "connections") return definition.connections.find((c) => c.index === Number(index))?.from
  return undefined
}
