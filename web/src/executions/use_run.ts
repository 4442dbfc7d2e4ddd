import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react"
import { call, client } from "@/api/client"
import { passingEvents, recordedEvents } from "@/api/events"
import { type Connection, useFollow } from "@/api/live"
import { ended } from "@/api/status"
import { inheritedStep, Run, type Step } from "./run"

const one = (id: string) => ["executions", id, "record"] as const

/** useExecution is the record of an execution, as the API tells it. */
export function useExecution(id: string | undefined) {
  return useQuery({
    queryKey: one(id ?? ""),
    enabled: !!id,
    queryFn: ({ signal }) => call(client.GET("/api/v1/executions/{id}", { params: { path: { id: id! } }, signal })).then((got) => got.execution),
  })
}

// inheritedSteps are the steps that a fork shares with its source. They come first in its history.
async function inheritedSteps(id: string, signal: AbortSignal): Promise<Step[]> {
  const steps: Step[] = []
  for (let after: string | undefined; ; ) {
    const part = await call(client.GET("/api/v1/executions/{id}/history", { params: { path: { id }, query: { limit: 1_000, ...(after ? { after } : {}) } }, signal }))
    const shared = (part.history ?? []).filter((r) => r.inherited_from && r.step)
    steps.push(...shared.map((r) => inheritedStep(r.step!)))
    after = part.next
    if (!after || (part.history ?? []).some((r) => !r.inherited_from)) return steps
  }
}

/**
 * useRun follows an execution from its beginning to its end, and further when somebody retries what had ended. The record is asked for again when
 * the stream says that something has changed, at most every two seconds.
 */
export function useRun(id: string): { run: Run; connection: Connection } {
  const queries = useQueryClient()
  const run = useMemo(() => new Run(), [id])
  useSyncExternalStore(run.subscribe, () => run.version)
  const { data } = useExecution(id)
  const [stopped, setStopped] = useState<{ run: Run; at: string }>()
  const asked = useRef<ReturnType<typeof setTimeout>>(undefined)
  const seq = data?.seq ?? 0
  const told = Number(run.last.split(".")[0] || 0)

  // The stream of an execution that has ended ends too. It is followed again when the record has grown.
  const over = ended(data?.status) && (told >= seq || (stopped?.run === run && stopped.at === run.last))
  const take = (json: string, at: string) => {
    if (!run.take(at, json) || !at) return
    asked.current ??= setTimeout(
      () => {
        asked.current = undefined
        void queries.invalidateQueries({ queryKey: ["executions", id, "record"] })
        void queries.invalidateQueries({ queryKey: ["executions", id, "history"] })
      },
      told === 0 ? 300 : 2_000,
    )
  }
  useEffect(
    () => () => {
      clearTimeout(asked.current)
      asked.current = undefined
    },
    [id],
  )
  const connection = useFollow(over ? null : `/api/v1/executions/${encodeURIComponent(id)}/events`, {
    // Text while it is written, and that lines were written, has no id; the browser gives it that of the event before.
    events: Object.fromEntries([...recordedEvents.map((name) => [name, take]), ...passingEvents.map((name) => [name, (json: string) => take(json, "")])]),
    after: run.last || undefined,
  })

  // The stream of a fork tells what the fork did; what it shares with its source is in the history.
  const forked = !!data?.fork
  const [missed, setMissed] = useState(0)
  useEffect(() => {
    if (!forked) return
    const stop = new AbortController()
    // What could not be read because the server was away is asked for again.
    const read = () =>
      void inheritedSteps(id, stop.signal).then(
        (steps) => {
          if (!stop.signal.aborted) run.inherit(steps)
        },
        () => {
          if (!stop.signal.aborted) setMissed((n) => n + 1)
        },
      )
    const timer = setTimeout(read, missed === 0 ? 0 : 2_000)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [forked, id, run, missed])

  // A stream that ends twice at the same place has told everything.
  const before = useRef("")
  useEffect(() => {
    if (connection !== "away" || !ended(data?.status)) return
    if (before.current === run.last && run.last) setStopped({ run, at: run.last })
    before.current = run.last
  }, [connection, data?.status, run])
  useEffect(() => {
    // What ended while the server was away is seen in the record.
    if (connection === "open") void queries.invalidateQueries({ queryKey: one(id) })
  }, [connection, id, queries])
  return { run, connection: over ? "open" : connection }
}
