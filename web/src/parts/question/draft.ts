import { useCallback, useState } from "react"
import type { Filling } from "./answer"

const key = (id: string) => `tandem.question.${id}`

// A file is too large to be kept beside; everything else that was typed is.
function keep(id: string, filling: Filling) {
  const light = Object.fromEntries(Object.entries(filling).filter(([, f]) => !f.file))
  try {
    if (Object.keys(light).length === 0) sessionStorage.removeItem(key(id))
    else sessionStorage.setItem(key(id), JSON.stringify(light))
  } catch {
    // There is no room: what was typed is still on the page.
  }
}

function kept(id: string): Filling {
  try {
    return JSON.parse(sessionStorage.getItem(key(id)) ?? "{}") as Filling
  } catch {
    return {}
  }
}

/** useFilling is what somebody fills into the form of a question. It is still there after the page was loaded again, until it is sent. */
export function useFilling(id: string): { filling: Filling; fill: (path: string, to: Filling[string]) => void; forget: () => void } {
  const [all, setAll] = useState(() => ({ id, filling: kept(id) }))
  const filling = all.id === id ? all.filling : kept(id)
  if (all.id !== id) setAll({ id, filling })
  const fill = useCallback(
    (path: string, to: Filling[string]) =>
      setAll((now) => {
        const next = { ...now.filling, [path]: to }
        keep(now.id, next)
        return { ...now, filling: next }
      }),
    [],
  )
  const forget = useCallback(() => {
    keep(id, {})
    setAll({ id, filling: {} })
  }, [id])
  return { filling, fill, forget }
}
