import { lazy, Suspense } from "react"
import { Loading } from "@/parts/states"
import type { GraphProps } from "./canvas"

const Canvas = lazy(() => import("./canvas"))

/**
 * Graph draws a workflow: `<Graph definition={readDefinition(workflow)} kinds={kinds} label="…" />`, with `useKinds()` for the kinds. It fills the box that it is in,
 * which must have a height. `states` colours the nodes of an execution; `editing` makes it a place where the workflow is changed. What draws is loaded when it is needed.
 */
export function Graph(props: GraphProps) {
  return (
    <Suspense fallback={<Loading />}>
      <Canvas {...props} />
    </Suspense>
  )
}

export type { Adding, Chosen, Editing, GraphHandle, GraphProps } from "./canvas"
export type { Mark, Marks, NodeProblem, NodeState } from "./flow"
export { type ConnectionDef, type Definition, type NodeDef, readDefinition, withKinds } from "./definition"
export { type Kinds, outputKeys } from "./keys"
export { useKinds } from "./kinds"
