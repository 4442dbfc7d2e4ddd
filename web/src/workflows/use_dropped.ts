import { useEffect, useEffectEvent, useState } from "react"

/** useDropped hands over the files that are dropped anywhere on the page, and says whether some hang over it now. */
export function useDropped(on: boolean, take: (files: File[]) => void): boolean {
  const [over, setOver] = useState(false)
  const taken = useEffectEvent(take)
  useEffect(() => {
    if (!on) return
    const hasFiles = (e: DragEvent) => e.dataTransfer?.types.includes("Files")
    const hang = (e: DragEvent) => {
      if (!hasFiles(e)) return
      e.preventDefault()
      setOver(true)
    }
    const leave = (e: DragEvent) => {
      if (!e.relatedTarget) setOver(false)
    }
    const drop = (e: DragEvent) => {
      setOver(false)
      if (!hasFiles(e)) return
      e.preventDefault()
      taken([...(e.dataTransfer?.files ?? [])])
    }
    addEventListener("dragover", hang)
    addEventListener("dragleave", leave)
    addEventListener("drop", drop)
    return () => {
      removeEventListener("dragover", hang)
      removeEventListener("dragleave", leave)
      removeEventListener("drop", drop)
    }
  }, [on])
  return on && over
}
