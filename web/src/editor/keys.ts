import { useEffect, useRef } from "react"

/** Keys are what the keyboard does on the canvas. */
export type Keys = {
  add: () => void
  undo: () => void
  redo: () => void
  remove: () => void
  all: () => void
  save: () => void
  /** Says whether there was something to close. */
  escape: () => boolean
  copy: () => string | undefined
  cut: () => string | undefined
  paste: (text: string) => void
}

// While somebody writes, keys write; while a dialog is open, they belong to it.
function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest(".cm-editor, [role=dialog], [role=menu]") !== null)
}

/** useKeys listens while the editor is shown. */
export function useKeys(on: boolean, keys: Keys) {
  const now = useRef(keys)
  now.current = keys
  useEffect(() => {
    if (!on) return
    const press = (e: KeyboardEvent) => {
      const mod = e.ctrlKey || e.metaKey
      if (mod && e.key.toLowerCase() === "s") {
        e.preventDefault()
        now.current.save()
        return
      }
      if (isWriting(e.target) || e.defaultPrevented) return
      const act = mod
        ? { z: e.shiftKey ? now.current.redo : now.current.undo, y: now.current.redo, a: now.current.all }[e.key.toLowerCase()]
        : { "/": now.current.add, Delete: now.current.remove, Backspace: now.current.remove }[e.key]
      if (!act) return
      e.preventDefault()
      act()
    }
    // Before anybody else: what is open is closed first, and what is chosen stays chosen.
    const escape = (e: KeyboardEvent) => {
      if (e.key !== "Escape" || !(e.target instanceof Element)) return
      if (e.target.closest("[role=dialog], [aria-expanded=true]") || document.querySelector(".cm-tooltip-autocomplete")) return
      if (now.current.escape()) e.stopPropagation()
    }
    const take = (e: ClipboardEvent) => {
      if (isWriting(e.target) || !(getSelection()?.isCollapsed ?? true)) return
      const text = e.type === "cut" ? now.current.cut() : now.current.copy()
      if (text === undefined) return
      e.clipboardData?.setData("text/plain", text)
      e.preventDefault()
    }
    const put = (e: ClipboardEvent) => {
      if (isWriting(e.target)) return
      const text = e.clipboardData?.getData("text/plain")
      if (!text) return
      e.preventDefault()
      now.current.paste(text)
    }
    document.addEventListener("keydown", press)
    document.addEventListener("keydown", escape, true)
    document.addEventListener("copy", take)
    document.addEventListener("cut", take)
    document.addEventListener("paste", put)
    return () => {
      document.removeEventListener("keydown", press)
      document.removeEventListener("keydown", escape, true)
      document.removeEventListener("copy", take)
      document.removeEventListener("cut", take)
      document.removeEventListener("paste", put)
    }
  }, [on])
}
