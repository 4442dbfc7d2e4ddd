import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useRef, useState } from "react"
import { call, client, type Schemas } from "@/api/client"
import { stepEvents, textEvent } from "@/api/events"
import { useFollow } from "@/api/live"
import { ended as hasEnded } from "@/api/status"

export type Agent = Schemas["Agent"]
export type Run = Schemas["Execution"]

export function useAgents(page: number) {
  return useQuery({ queryKey: ["agents", "list", page], queryFn: ({ signal }) => call(client.GET("/api/v1/agents", { params: { query: { page, page_size: 50 } }, signal })) })
}

export function useAgent(id: string) {
  return useQuery({ queryKey: ["agents", "one", id], queryFn: ({ signal }) => call(client.GET("/api/v1/agents/{id}", { params: { path: { id } }, signal })) })
}

export function useProfiles() {
  return useQuery({ queryKey: ["profiles"], queryFn: ({ signal }) => call(client.GET("/api/v1/llm/profiles", { signal })), staleTime: 30_000 })
}

/** useToolServers lists the servers whose tools an agent may use. Who may not read them has none. */
export function useToolServers(enabled = true) {
  return useQuery({ queryKey: ["mcp", "servers"], enabled, queryFn: ({ signal }) => call(client.GET("/api/v1/mcp/servers", { signal })), staleTime: 10_000 })
}

const runKey = (id: string) => ["executions", id, "task"]

export function useRun(id: string) {
  return useQuery({ queryKey: runKey(id), queryFn: ({ signal }) => call(client.GET("/api/v1/executions/{id}", { params: { path: { id } }, signal })), select: (d) => d.execution })
}

type Piece = { data: { text: string; activation_id: string; attempt: number; offset: number; snapshot?: boolean } }

/** pieceOf adds a piece of streamed text to what came before: a snapshot or a new attempt replaces it. */
export function pieceOf(before: { key: string; text: string }, { data }: Piece): { key: string; text: string } {
  const key = `${data.activation_id}/${data.attempt}`
  return { key, text: data.snapshot || data.offset === 0 || key !== before.key ? data.text : before.text + data.text }
}

/** useTask follows a task: its record, asked for again when something has happened, and the text of its answer while it is written. */
export function useTask(id: string) {
  const queries = useQueryClient()
  const query = useRun(id)
  const [live, setLive] = useState({ key: "", text: "" })
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const changed = () => {
    clearTimeout(timer.current)
    timer.current = setTimeout(() => {
      void queries.invalidateQueries({ queryKey: runKey(id) })
      void queries.invalidateQueries({ queryKey: ["agents", "tasks"] })
    }, 80)
  }
  const run = query.data
  const ended = hasEnded(run?.status)
  useFollow(run && !ended ? `/api/v1/executions/${encodeURIComponent(id)}/events?vocabulary=flow` : null, {
    after: run ? String(run.seq) : undefined,
    events: {
      ...Object.fromEntries(stepEvents.map((e) => [e, changed])),
      [textEvent]: (data) => setLive((now) => pieceOf(now, JSON.parse(data) as Piece)),
    },
  })
  return { query, run, ended, text: run?.task?.full_answer || live.text }
}
