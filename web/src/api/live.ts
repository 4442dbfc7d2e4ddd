import { useEffect, useRef, useState } from "react"

/** Connection says how a stream is doing: it has said something, it is being opened, or the server is away and is tried again. */
export type Connection = "open" | "connecting" | "away"

type Options = {
  /** The kinds of events that are wanted, by name. */
  events: Record<string, (data: string, id: string) => void>
  /** Where to go on when the page opens the stream: the last id it has seen. */
  after?: string
}

const patience = [500, 1_000, 2_000, 4_000]

/**
 * follow reads server-sent events until it is stopped. A stream that breaks is opened again behind the last id that was seen, so nothing is missed and
 * nothing comes twice. The browser's own way of connecting again gives up at some refusals; this one does not.
 */
export function follow(path: string, { events, after }: Options, tell: (c: Connection) => void = () => {}): () => void {
  let last = after ?? ""
  let source: EventSource | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let tries = 0
  let stopped = false
  const open = () => {
    if (stopped) return
    tell(tries === 0 ? "connecting" : "away")
    const url = new URL(path, location.origin)
    if (last) url.searchParams.set("after", last)
    source = new EventSource(url)
    source.onopen = () => {
      tries = 0
      tell("open")
    }
    for (const [name, take] of Object.entries(events)) {
      source.addEventListener(name, (e) => {
        if (e.lastEventId) last = e.lastEventId
        take(e.data as string, e.lastEventId)
      })
    }
    source.onerror = () => {
      source?.close()
      if (stopped) return
      tell("away")
      timer = setTimeout(open, patience[Math.min(tries++, patience.length - 1)])
    }
  }
  open()
  return () => {
    stopped = true
    clearTimeout(timer)
    source?.close()
  }
}

/** useFollow follows a stream while a component is shown; a null path follows nothing. The handlers may change at any time. */
export function useFollow(path: string | null, options: Options): Connection {
  const [connection, tell] = useState<Connection>("connecting")
  const now = useRef(options)
  now.current = options
  const names = Object.keys(options.events).join(" ")
  useEffect(() => {
    if (path === null) return
    const events = Object.fromEntries(names.split(" ").map((name) => [name, (data: string, id: string) => now.current.events[name]?.(data, id)]))
    return follow(path, { events, after: now.current.after }, tell)
  }, [path, names])
  return connection
}
