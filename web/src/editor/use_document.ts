import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react"
import { dropDraft, keepDraft, readDraft } from "./draft"
import { begin, change, checked, edited, type History, put, redo, undo } from "./history"
import type { Plain } from "./rewrite"

/** Base is what the server has: the text of a revision. Revision 0 is a workflow that is not there yet; from is the template that it begins with, if any. */
export type Base = { text: string; revision: number; from?: string }

/** draftOf is the name under which the draft of a workflow is kept. Each template has one of its own, so that looking at it loses no other workflow that was begun. */
const draftOf = (id: string, from: string | undefined) => (id === "" && from ? `template:${from}` : id)

/** Document is what an editor works on: the text, its past, and how it differs from what the server has. */
export type Doc = {
  history: History
  base: Base
  dirty: boolean
  /** A draft of an earlier visit was taken up again, made at this time. */
  restored?: number
  /** The draft was made from another revision than the server has now. */
  stale: boolean
  /** The browser has no room for drafts: what is typed is lost when the page is closed. */
  homeless: boolean
  type: (text: string) => void
  edit: (change: (value: Plain) => Plain, by?: string) => void
  undo: () => void
  redo: () => void
  /** The text was saved as this revision, or another revision is taken as the one to compare with. */
  rebase: (base: Base) => void
  /** The text was saved for the first time, under this id: the page of that id goes on with everything that was done here, also until it opens. */
  handOver: (id: string, base: Base) => void
  /** Begins anew with a text, which can be undone. */
  replace: (text: string) => void
  forget: () => void
}

// What a workflow went through before it had an address: the page of that address goes on with it. It is asked for when that page opens, because somebody may type
// until then.
let handed: { id: string; base: Base; now: () => History } | undefined

// The server may tell the same in other words than those that were saved; these stay. Nothing is cleared here: React may begin a page more than once before it shows it.
function takeOver(id: string, { revision }: Base): { history: History; restored?: undefined; base: Base } | undefined {
  if (handed?.id !== id || handed.base.revision !== revision) return undefined
  return { history: handed.now(), base: handed.base }
}

/**
 * useDocument holds the text of a workflow while it is edited. Everything typed is kept in the browser at once, so that a reload, a crash or a server that is away
 * loses nothing.
 */
export function useDocument(opened: string, first: Base): Doc {
  const [id, setId] = useState(opened)
  const { from } = first
  const [start] = useState(() => {
    const given = takeOver(id, first)
    if (given) return given
    const draft = readDraft(draftOf(id, first.from))
    const use = draft && draft.text !== first.text ? draft : undefined
    if (draft && !use) dropDraft(draftOf(id, first.from))
    return { history: begin(use ? use.text : first.text), restored: use?.at, base: use && use.revision !== first.revision ? { text: use.base, revision: use.revision } : first }
  })
  const [history, setHistory] = useState(start.history)
  const [base, setBase] = useState<Base>(start.base)
  const [restored, setRestored] = useState(start.restored)
  const [homeless, setHomeless] = useState(false)
  const text = history.now.text
  const dirty = text !== base.text
  useEffect(() => {
    if (handed?.id === opened) handed = undefined
  }, [opened])
  const latest = useRef(history)
  useLayoutEffect(() => {
    latest.current = history
  }, [history])

  // Drafts are written when somebody pauses for a moment, and at the latest when the page goes away.
  const pending = useRef<(() => void) | undefined>(undefined)
  useEffect(() => {
    const write = () => {
      pending.current = undefined
      if (dirty) setHomeless(!keepDraft(draftOf(id, from), { text, revision: base.revision, base: base.text, at: Date.now() }))
      else dropDraft(draftOf(id, from))
    }
    pending.current = write
    const timer = setTimeout(write, 150)
    return () => clearTimeout(timer)
  }, [id, from, text, dirty, base])
  useEffect(() => {
    const flush = () => pending.current?.()
    addEventListener("pagehide", flush)
    document.addEventListener("visibilitychange", flush)
    return () => {
      flush()
      removeEventListener("pagehide", flush)
      document.removeEventListener("visibilitychange", flush)
    }
  }, [])

  // What cannot be read by itself is read with all the rest when somebody pauses.
  const { unsure } = history.now
  useEffect(() => {
    if (!unsure) return
    const timer = setTimeout(() => setHistory(checked), 400)
    return () => clearTimeout(timer)
  }, [unsure, text])

  const edit = useCallback((act: (value: Plain) => Plain, by = "") => {
    setHistory((h) => (h.now.broken ? h : put(h, edited(h.now, act(h.now.value)), by)))
  }, [])
  return {
    history,
    base,
    dirty,
    restored,
    stale: base.revision !== first.revision,
    homeless,
    type: useCallback((next: string) => setHistory((h) => change(h, next, "text")), []),
    edit,
    undo: useCallback(() => setHistory(undo), []),
    redo: useCallback(() => setHistory(redo), []),
    rebase: useCallback((next: Base) => {
      setBase(next)
      setRestored(undefined)
    }, []),
    handOver: useCallback((next: string, base: Base) => {
      dropDraft(draftOf("", from))
      setId(next)
      setBase(base)
      handed = { id: next, base, now: () => latest.current }
    }, [from]),
    replace: useCallback((next: string) => setHistory((h) => change(h, next, "replace")), []),
    forget: useCallback(() => {
      setRestored(undefined)
      dropDraft(draftOf(id, from))
    }, [id, from]),
  }
}
