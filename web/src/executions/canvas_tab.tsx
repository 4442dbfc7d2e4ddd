import { Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import { useTranslation } from "react-i18next"
import { call, client } from "@/api/client"
import { Graph, type NodeState, readDefinition, useKinds, withKinds } from "@/graph"
import { Empty, Shown } from "@/parts/states"
import { lasted } from "@/parts/when"
import { useAddress } from "./addresses"
import { LoopPicker, useSteps } from "./filters"
import { loopOf, type Run, type Step } from "./run"
import page from "./one.module.css"

/** statesOf are the states of the nodes on the canvas: of their last visit, or of that in the chosen iteration. */
export function statesOf(run: Run, steps: readonly Step[], times: (count: number) => string): { states: Record<string, NodeState>; last: Map<string, Step> } {
  const last = new Map<string, Step>()
  const visits = new Map<string, number>()
  for (const s of steps) {
    if (s.inner !== undefined) continue
    last.set(s.node, s)
    visits.set(s.node, (visits.get(s.node) ?? 0) + 1)
  }
  const states: Record<string, NodeState> = {}
  for (const [node, s] of last) {
    const took = s.start !== undefined && s.end !== undefined && s.state !== "SKIPPED" ? lasted(s.end - s.start) : undefined
    const count = visits.get(node)!
    states[node] = { status: run.stateOf(s), note: [count > 1 && times(count), took].filter(Boolean).join(" · ") || undefined }
  }
  return { states, last }
}

/** CanvasTab draws the revision that ran, with the state of each node as it changes; a click opens the node's step. */
export function CanvasTab({ id, run, version }: { id: string; run: Run; version: number }) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const { kinds, query: kindsQuery } = useKinds()
  const { loops } = useSteps(run, version)
  const loop = params.get("loop") ?? ""
  const iteration = params.get("iteration")
  const query = useQuery({
    queryKey: ["executions", id, "definition"],
    staleTime: Infinity,
    queryFn: ({ signal }) => call(client.GET("/api/v1/executions/{id}", { params: { path: { id }, query: { include: ["workflow"] } }, signal })).then((got) => got.workflow_definition ?? null),
  })
  const definition = useMemo(() => withKinds(readDefinition(query.data), kinds), [query.data, kinds])
  const { states, last } = useMemo(() => {
    // Nodes outside of the chosen loop keep their states; inside of it those of the iteration are shown.
    const steps = loop && iteration !== null ? run.steps.filter((s) => loopOf(s)?.loop !== loop || loopOf(s)?.iteration === Number(iteration)) : run.steps
    return statesOf(run, steps, (count) => t("canvas.times", { count }))
    // eslint-disable-next-line
  }, [run, version, loop, iteration, t])
  return (
    <div className={page.main}>
      {loops.size > 0 && (
        <div className={page.tools}>
          <LoopPicker loops={loops} />
        </div>
      )}
      {kindsQuery.error ? <Shown query={kindsQuery}>{() => null}</Shown> : null}
      <Shown query={query} what={t("loading.one")}>
        {() =>
          definition.nodes.length === 0 ? (
            <Empty title={t("canvas.none")}>
              <Text c="dimmed">{t("canvas.noneText")}</Text>
            </Empty>
          ) : (
            <div className={page.canvas}>
              <Graph
                definition={definition}
                kinds={kinds}
                label={t("tab.canvas")}
                states={states}
                onOpen={(node) => {
                  const step = last.get(node)
                  if (step) change({ step: step.id, pick: undefined })
                }}
              />
            </div>
          )
        }
      </Shown>
    </div>
  )
}
