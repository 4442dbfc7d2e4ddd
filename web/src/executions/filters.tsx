import { ActionIcon, NumberInput, SegmentedControl, Select, Text, TextInput } from "@mantine/core"
import { IconChevronLeft, IconChevronRight } from "@tabler/icons-react"
import { useMemo } from "react"
import { useTranslation } from "react-i18next"
import { useAddress } from "./addresses"
import { loopOf, type Run, type Step } from "./run"
import page from "./one.module.css"

/** loopsOf are the loops between whose iterations one can choose, each with its last. Of a loop that went round once there is nothing to choose, as of an agent that made one plan; the chosen one stays. */
export function loopsOf(steps: readonly Pick<Step, "id" | "inner">[], chosen: string): Map<string, number> {
  const loops = new Map<string, number>()
  for (const s of steps) {
    const l = loopOf(s)
    if (l) loops.set(l.loop, Math.max(loops.get(l.loop) ?? 0, l.iteration))
  }
  for (const [name, last] of loops) if (last === 0 && name !== chosen) loops.delete(name)
  return loops
}

/** useSteps are the steps that the filters in the address leave: a word, what is inside nodes or not, one iteration of a loop. */
export function useSteps(run: Run, version: number) {
  const [params] = useAddress()
  const word = (params.get("find") ?? "").toLowerCase()
  const inside = params.get("inside") !== "no"
  const loop = params.get("loop") ?? ""
  const iteration = Number(params.get("iteration") ?? "-1")
  return useMemo(() => {
    const loops = loopsOf(run.steps, loop)
    const shown: Step[] = []
    for (const s of run.steps) {
      const l = loopOf(s)
      if (!inside && s.inner !== undefined) continue
      if (loop && l?.loop !== loop) continue
      if (loop && iteration >= 0 && l?.iteration !== iteration) continue
      if (word && !`${s.name} ${s.id} ${s.kind} ${s.tool ?? ""} ${s.detail ?? ""}`.toLowerCase().includes(word)) continue
      shown.push(s)
    }
    return { shown, loops }
    // eslint-disable-next-line
  }, [run, version, word, inside, loop, iteration])
}

/** LoopPicker chooses one iteration of one loop, where there are loops. */
export function LoopPicker({ loops }: { loops: ReadonlyMap<string, number> }) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const loop = params.get("loop") ?? ""
  const iteration = params.get("iteration")
  const last = loops.get(loop) ?? 0
  const go = (n: number) => change({ iteration: String(Math.max(0, Math.min(last, n))) })
  if (loops.size === 0) return null
  return (
    <>
      <Select size="xs" w={160} clearable placeholder={t("timeline.loop")} aria-label={t("timeline.loop")} data={[...loops.keys()]} value={loop || null} onChange={(v) => change({ loop: v ?? undefined, iteration: v ? "0" : undefined })} />
      {loop && (
        <>
          <ActionIcon size="md" variant="default" aria-label={t("timeline.previous")} disabled={Number(iteration ?? 0) <= 0} onClick={() => go(Number(iteration ?? 0) - 1)}>
            <IconChevronLeft size={14} />
          </ActionIcon>
          <NumberInput size="xs" w={72} hideControls aria-label={t("timeline.iteration", { last: last + 1 })} min={1} max={last + 1} value={iteration === null ? "" : Number(iteration) + 1} onChange={(v) => change({ iteration: v === "" ? undefined : String(Math.max(0, Number(v) - 1)) })} />
          <Text fz="xs" c="dimmed">
            {t("timeline.of", { last: last + 1 })}
          </Text>
          <ActionIcon size="md" variant="default" aria-label={t("timeline.next")} disabled={Number(iteration ?? 0) >= last} onClick={() => go(Number(iteration ?? 0) + 1)}>
            <IconChevronRight size={14} />
          </ActionIcon>
        </>
      )}
    </>
  )
}

/** StepFilters are the filters of a list of steps, with the picker of an iteration where there are loops. */
export function StepFilters({ loops, count, total }: { loops: ReadonlyMap<string, number>; count: number; total: number }) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  return (
    <div className={page.tools}>
      <TextInput size="xs" w={180} placeholder={t("timeline.find")} aria-label={t("timeline.find")} value={params.get("find") ?? ""} onChange={(e) => change({ find: e.currentTarget.value })} />
      <SegmentedControl
        size="xs"
        aria-label={t("timeline.inside")}
        value={params.get("inside") === "no" ? "no" : "yes"}
        onChange={(v) => change({ inside: v === "no" ? "no" : undefined })}
        data={[
          { value: "yes", label: t("timeline.all") },
          { value: "no", label: t("timeline.nodes") },
        ]}
      />
      <LoopPicker loops={loops} />
      <span className={page.count} role="status">
        {count === total ? t("timeline.count", { count: total }) : t("timeline.countOf", { count, total })}
      </span>
    </div>
  )
}
