import type { Schemas } from "@/api/client"
import { Failure } from "@/api/client"

type List = Schemas["Executions"]
type Asked = { page: number; older_than?: string; newer_than?: string }

/**
 * markFor says from where another page is found, beside its number: "3.exec_…" is the execution at the end of page 3 that is nearer to it. So turning the pages of a long list takes
 * the same time everywhere, and what has begun in the meantime moves nothing. The first and the last page are found by their numbers.
 */
export function markFor(list: List["executions"] | undefined, at: number, next: number, pages: number): string | undefined {
  if (!list?.length || next <= 1 || next >= pages || next === at) return undefined
  return `${at}.${(next > at ? list[list.length - 1] : list[0])!.execution_id}`
}

/** askedFor is what is asked of the API for a page with its mark. */
export function askedFor(page: number, mark: string | null): Asked {
  const [, at, id] = /^(\d{1,9})\.(.+)$/.exec(mark ?? "") ?? []
  const distance = page - Number(at)
  if (!id || !distance) return { page }
  return distance > 0 ? { page: distance, older_than: id } : { page: -distance, newer_than: id }
}

/** turned reads a page with its mark, and by its number alone when what the mark names is no longer kept. */
export async function turned(page: number, mark: string | null, read: (asked: Asked) => Promise<List>): Promise<List> {
  const asked = askedFor(page, mark)
  if (!asked.older_than && !asked.newer_than) return read(asked)
  try {
    return await read(asked)
  } catch (e) {
    if (e instanceof Failure && e.status === 404) return read({ page })
    throw e
  }
}
