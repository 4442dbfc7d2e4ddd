import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import type { Schemas } from "@/api/client"
import { type Connection, useFollow } from "@/api/live"

// The frames of the stream, which the document of the API describes in words alone.
type Snapshot = { interactions: Schemas["Interaction"][] | null; total_count: number }
type Event = { interaction: Schemas["Interaction"]; may_respond: boolean; answered?: boolean }

/**
 * useWaiting follows the questions that wait for the user; one on which they have voted waits for others. Whoever shows questions asks again when one has changed: the queries whose key begins with
 * "interactions".
 */
export function useWaiting(): { count: number; connection: Connection } {
  const client = useQueryClient()
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const changed = () => void client.invalidateQueries({ queryKey: ["interactions"] })
  const connection = useFollow("/api/v1/interactions/stream", {
    events: {
      snapshot: (data) => {
        const { interactions } = JSON.parse(data) as Snapshot
        setOpen(new Set((interactions ?? []).map((q) => q.id)))
        changed()
      },
      interaction: (data) => {
        const { interaction: q, may_respond, answered } = JSON.parse(data) as Event
        setOpen((now) => {
          const next = new Set(now)
          if (q.status === "pending" && may_respond && !answered) next.add(q.id)
          else next.delete(q.id)
          return next
        })
        changed()
      },
    },
  })
  return { count: open.size, connection }
}
