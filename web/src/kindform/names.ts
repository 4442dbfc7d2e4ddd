import { useQuery } from "@tanstack/react-query"
import { call, client, type Schemas } from "@/api/client"
import { valuesOf } from "@/api/values"

/** Named is a record that a configuration can name, and what else people know of it. */
export type Named = { value: string; title?: string; hint?: string; type?: string }

const roles = valuesOf<NonNullable<Schemas["User"]["roles"]>[number]>({ admin: 1, editor: 1, operator: 1, approver: 1, viewer: 1 })

async function tools(signal: AbortSignal): Promise<Named[]> {
  const { servers } = await call(client.GET("/api/v1/mcp/servers", { signal }))
  const lists = await Promise.all(
    (servers ?? []).map((s) =>
      call(client.GET("/api/v1/mcp/servers/{id}/tools", { params: { path: { id: s.id! } }, signal })).then(
        (got) => (got.tools ?? []).map((tool): Named => ({ value: `${s.id}/${tool.tool_name}`, title: tool.title, hint: tool.description })),
        // A server that cannot be asked now offers nothing; its tools can still be written.
        () => [],
      ),
    ),
  )
  return lists.flat()
}

const lists: Record<string, (signal: AbortSignal) => Promise<Named[]>> = {
  profile: async (signal) => ((await call(client.GET("/api/v1/llm/profiles", { signal }))).profiles ?? []).map((p) => ({ value: p.id!, title: p.name, hint: [p.provider, p.model].filter(Boolean).join(" · ") })),
  tool_server: async (signal) => ((await call(client.GET("/api/v1/mcp/servers", { signal }))).servers ?? []).map((s) => ({ value: s.id!, title: s.name, hint: s.description })),
  tool: tools,
  workflow: async (signal) => ((await call(client.GET("/api/v1/workflows", { params: { query: { page_size: 100 } }, signal }))).workflows ?? []).map((w) => ({ value: w.id, title: w.name, hint: w.description })),
  agent: async (signal) => ((await call(client.GET("/api/v1/agents", { params: { query: { page_size: 100 } }, signal }))).agents ?? []).map((a) => ({ value: a.id!, title: a.name, hint: a.description })),
  template: async (signal) => ((await call(client.GET("/api/v1/node-templates", { signal }))).node_templates ?? []).map((x) => ({ value: x.id!, title: x.name, type: x.kind })),
  person: async (signal) => [
    ...((await call(client.GET("/api/v1/users", { signal }))).users ?? []).map((u) => ({ value: `user:${u.id}`, title: u.name, hint: u.email })),
    ...roles.map((r) => ({ value: `role:${r}` })),
  ],
  credential: async (signal) => ((await call(client.GET("/api/v1/credentials", { signal }))).credentials ?? []).map((c) => ({ value: c.name, hint: c.type, type: c.type })),
}

// The same keys begin with the name of the resource, so that a change of it is seen here too.
const resources: Record<string, string> = { profile: "profiles", tool_server: "servers", tool: "servers", workflow: "workflows", agent: "agents", template: "templates", person: "users", credential: "credentials" }

/** useNames lists the records of a sort. Who may not see them, or while they cannot be read, writes the name by hand. */
export function useNames(sort: string | undefined) {
  return useQuery({
    queryKey: [resources[sort ?? ""] ?? "none", "names", sort],
    enabled: !!sort && sort in lists,
    staleTime: 30_000,
    retry: false,
    queryFn: ({ signal }) => lists[sort!]!(signal),
  })
}
