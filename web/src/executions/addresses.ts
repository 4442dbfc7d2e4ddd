import { useCallback } from "react"
import { useSearchParams } from "react-router"

/** useAddress reads and writes what a view keeps in its address. An empty value is taken out; `replace` makes no step of the browser's history. */
export function useAddress(): [URLSearchParams, (changes: Record<string, string | string[] | undefined>, options?: { replace?: boolean }) => void] {
  const [params, setParams] = useSearchParams()
  const change = useCallback(
    (changes: Record<string, string | string[] | undefined>, { replace = true }: { replace?: boolean } = {}) => {
      setParams(
        (now) => {
          const next = new URLSearchParams(now)
          if ("page" in changes) next.delete("mark") // it belongs to the page
          for (const [name, value] of Object.entries(changes)) {
            next.delete(name)
            for (const v of Array.isArray(value) ? value : value ? [value] : []) next.append(name, v)
          }
          return next
        },
        { replace },
      )
    },
    [setParams],
  )
  return [params, change]
}
