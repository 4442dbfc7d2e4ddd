import { useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import { call, client } from "@/api/client"
import type { FieldSchema } from "@/kindform/schema"
import type { Kinds } from "./keys"

const none: Kinds = new Map()
const noFields: FieldSchema = {}

/** useKinds are the kinds of nodes that can be run here, by name, and what nodes of every kind can be configured with. They do not change while a server runs. */
export function useKinds() {
  const query = useQuery({ queryKey: ["node-kinds"], queryFn: ({ signal }) => call(client.GET("/api/v1/node-kinds", { signal })), staleTime: Infinity })
  const kinds = useMemo<Kinds>(() => (query.data ? new Map((query.data.node_kinds ?? []).map((k) => [k.name, k])) : none), [query.data])
  const common = (query.data?.common_fields as FieldSchema | undefined) ?? noFields
  return { kinds, common, ready: !!query.data, query }
}
