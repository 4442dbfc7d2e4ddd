import { lazy, Suspense } from "react"
import type { CodeLanguage } from "./code"
import { Loading } from "./states"

export type DifferenceProps = {
  before: string
  after: string
  language?: CodeLanguage
  /** What the two texts are, as they are read out: "your draft", "revision 7". */
  beforeLabel: string
  afterLabel: string
  /** Beside each other by default; one below the other where there is no room, or when it is wanted. */
  inline?: boolean
}

const Merge = lazy(() => import("./code/merge"))

/** Difference shows two texts, what was taken away from the one and what the other adds. */
export function Difference(props: DifferenceProps) {
  return (
    <Suspense fallback={<Loading />}>
      <Merge {...props} />
    </Suspense>
  )
}
