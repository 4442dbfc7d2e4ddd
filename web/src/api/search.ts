import { useSearchParams } from "react-router"

/** useSearch reads and changes what the address says behind "?": the state of a view, so that a pasted link shows the same. */
export function useSearch() {
  const [params, setParams] = useSearchParams()
  /** set changes some names; an empty text, null or undefined takes one out. */
  const set = (changes: Record<string, string | number | null | undefined>, options: { replace?: boolean } = {}) =>
    setParams(
      (now) => {
        const next = new URLSearchParams(now)
        for (const [name, value] of Object.entries(changes)) {
          if (value === null || value === undefined || value === "") next.delete(name)
          else next.set(name, String(value))
        }
        return next
      },
      { replace: options.replace },
    )
  return { params, get: (name: string) => params.get(name) ?? "", page: Math.max(1, Number(params.get("page")) || 1), set }
}
