import { Text } from "@mantine/core"
import { useVirtualizer } from "@tanstack/react-virtual"
import { useRef } from "react"
import { useTranslation } from "react-i18next"
import type { Schemas } from "@/api/client"
import { Data } from "@/parts/data"
import { StateMark } from "@/parts/state"
import { Empty } from "@/parts/states"
import { useAddress } from "./addresses"
import type { Act } from "./allowed"
import { StepFilters, useSteps } from "./filters"
import { loopOf, type Run, type Step } from "./run"
import { StepPanel } from "./step"
import { stepName } from "./step_name"
import page from "./one.module.css"
import classes from "./data_tab.module.css"

type Props = { e: Schemas["Execution"]; run: Run; version: number; actsOf: (step: Step) => Act[]; onAct: (act: Act, step: Step) => void }

/** DataTab shows what came into and out of each step; without a chosen step what the run was started with and what it has brought. */
export function DataTab({ e, run, version, actsOf, onAct }: Props) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const { shown, loops } = useSteps(run, version)
  const selected = run.step(params.get("step") ?? "")
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({ count: shown.length, getScrollElement: () => box.current, estimateSize: () => 30, overscan: 15 })
  return (
    <div className={page.main} style={{ height: "100%" }}>
      <StepFilters loops={loops} count={shown.length} total={run.steps.length} />
      <div className={classes.both}>
        <div ref={box} className={classes.list} role="list" aria-label={t("data.steps")} tabIndex={0}>
          {shown.length === 0 && <Empty title={t("timeline.empty")} />}
          <div className={page.virtual} style={{ height: virtual.getTotalSize() }} role="presentation">
            {virtual.getVirtualItems().map((item) => {
              const s = shown[item.index]!
              const loop = loopOf(s)
              return (
                <div key={s.id} role="listitem" aria-setsize={shown.length} aria-posinset={item.index + 1}>
                  <button type="button" className={classes.step} aria-pressed={s.id === selected?.id} style={{ transform: `translateY(${item.start}px)`, paddingLeft: 8 + Math.min(s.level, 6) * 12 }} onClick={() => change({ step: s.id, pick: undefined })}>
                    <StateMark status={run.stateOf(s)} word={false} size={14} />
                    <bdi>{stepName(s, t)}</bdi>
                    {loop && loops.has(loop.loop) && <Text span fz="xs" c="dimmed">{`#${loop.iteration + 1}`}</Text>}
                  </button>
                </div>
              )
            })}
          </div>
        </div>
        <div className={classes.one}>
          {selected ? (
            <StepPanel execution={e.execution_id} run={run} step={selected} acts={actsOf(selected)} onAct={onAct} height={420} />
          ) : (
            <div className={classes.whole}>
              <Text fz="sm" fw={600}>
                {t("data.started")}
              </Text>
              <Data value={e.trigger_info.trigger_data ?? e.metadata} execution={e.execution_id} label={t("data.started")} />
              <Text fz="sm" fw={600}>
                {t("data.outputs")}
              </Text>
              {e.outputs ? (
                <Data value={e.outputs} execution={e.execution_id} label={t("data.outputs")} depth={3} />
              ) : (
                <Text fz="sm" c="dimmed">
                  {t("data.noOutputs")}
                </Text>
              )}
              <Text fz="sm" c="dimmed">
                {t("data.choose")}
              </Text>
            </div>
          )}
        </div>
      </div>
    </div>
  )
}
