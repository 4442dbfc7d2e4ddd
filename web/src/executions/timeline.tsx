import { Text } from "@mantine/core"
import { IconRobot, IconTool, IconUser } from "@tabler/icons-react"
import { useVirtualizer } from "@tanstack/react-virtual"
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { plain } from "@/parts/plain"
import { type State, stateColor, StateMark } from "@/parts/state"
import { Empty } from "@/parts/states"
import { lasted } from "@/parts/when"
import { useAddress } from "./addresses"
import { StepFilters, useSteps } from "./filters"
import { loopOf, type Run, type Step } from "./run"
import { stepName } from "./step_name"
import page from "./one.module.css"
import classes from "./timeline.module.css"

const rowHeight = 32

/** Timeline is the waterfall: one line per step, people, models and calls of tools included. Only the lines in view are drawn. */
export function Timeline({ run, version, running }: { run: Run; version: number; running: boolean }) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const selected = params.get("step")
  const { shown, loops } = useSteps(run, version)
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({ count: shown.length, getScrollElement: () => box.current, estimateSize: () => rowHeight, overscan: 15 })
  const now = useClock(running)
  const [from, to] = useMemo(() => {
    let [first, last] = [Infinity, 0]
    for (const s of shown) {
      if (s.inherited) continue
      if (s.start !== undefined && s.start < first) first = s.start
      last = Math.max(last, s.end ?? s.start ?? 0)
    }
    return [first, Math.max(last, running ? now : 0, first + 1)]
  }, [shown, running, now])

  // A link to a step shows that step.
  const came = useRef(false)
  useEffect(() => {
    if (came.current || !selected) return
    const i = shown.findIndex((s) => s.id === selected)
    if (i < 0) return
    came.current = true
    virtual.scrollToIndex(i, { align: "center" })
  }, [selected, shown, virtual])

  const keys = (e: KeyboardEvent, i: number) => {
    const step = e.key === "ArrowDown" || e.key === "j" ? 1 : e.key === "ArrowUp" || e.key === "k" ? -1 : 0
    const next = shown[i + step]
    if (!step || !next) return
    e.preventDefault()
    virtual.scrollToIndex(i + step)
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[data-index="${i + step}"]`)?.focus())
  }
  return (
    <div className={page.main}>
      <StepFilters loops={loops} count={shown.length} total={run.steps.length} />
      {shown.length === 0 && <Empty title={run.steps.length ? t("timeline.none") : t("timeline.empty")} />}
      <div ref={box} className={page.scroll} role="list" aria-label={t("tab.timeline")} tabIndex={shown.length ? 0 : undefined}>
        <div className={page.virtual} style={{ height: virtual.getTotalSize() }} role="presentation">
          {virtual.getVirtualItems().map((item) => {
            const s = shown[item.index]!
            return (
              <div key={s.id} role="listitem" aria-setsize={shown.length} aria-posinset={item.index + 1}>
                <button
                  type="button"
                  data-index={item.index}
                  data-step={s.id}
                  aria-pressed={s.id === selected}
                  className={classes.row}
                  style={{ transform: `translateY(${item.start}px)` }}
                  onClick={() => change({ step: s.id === selected ? undefined : s.id })}
                  onKeyDown={(e) => keys(e, item.index)}
                >
                  <Line step={s} state={run.stateOf(s)} from={from} to={to} now={now} />
                </button>
              </div>
            )
          })}
        </div>
      </div>
      <Speaking run={run} />
    </div>
  )
}

function Line({ step: s, state, from, to, now }: { step: Step; state: State; from: number; to: number; now: number }) {
  const { t } = useTranslation("executions")
  const whole = to - from
  const end = s.end ?? (s.start === undefined ? undefined : now)
  const loop = loopOf(s)
  const took = s.start !== undefined && end !== undefined && s.state !== "SKIPPED" ? lasted(Math.max(0, end - s.start)) : ""
  return (
    <>
      <span className={classes.what} style={{ paddingLeft: Math.min(s.level, 6) * 16 }}>
        <StateMark status={state} word={false} />
        <Sort step={s} />
        <span className={`${classes.name} ${s.inner ? classes.inner : ""}`} title={s.id}>
          <bdi>{stepName(s, t)}</bdi>
        </span>
        {loop && <span className={classes.number}>#{loop.iteration + 1}</span>}
        {s.retries > 0 && <span className={classes.number}>{t("timeline.attempt", { n: s.retries + 1 })}</span>}
        {s.pinned && <span className={classes.number}>{t("timeline.pinned")}</span>}
        {s.inherited && <span className={classes.number}>{t("timeline.inherited")}</span>}
        <span className={classes.detail} title={s.detail}>
          {s.detail}
        </span>
      </span>
      <span className={classes.track} aria-hidden>
        {s.start !== undefined && end !== undefined && s.state !== "SKIPPED" && !s.inherited && (
          <span
            className={`${classes.bar} ${s.end === undefined ? classes.open : ""}`}
            style={{ left: `${(100 * (s.start - from)) / whole}%`, width: `max(3px, ${(100 * Math.max(0, end - s.start)) / whole}%)`, backgroundColor: stateColor(state) }}
          />
        )}
      </span>
      <span className={classes.took}>{took}</span>
    </>
  )
}

// Sort marks people, models and tools, which stand between the nodes.
function Sort({ step }: { step: Step }) {
  const icon = { size: 14, stroke: 1.6, "aria-hidden": true }
  if (step.kind.startsWith("HUMAN") || step.inner?.startsWith("approve") || step.inner?.startsWith("confirm")) return <IconUser {...icon} />
  if (step.tool !== undefined || step.inner?.startsWith("call")) return <IconTool {...icon} />
  if (step.kind.startsWith("AI_AGENT")) return <IconRobot {...icon} />
  return null
}

// Speaking shows what models are writing now.
function Speaking({ run }: { run: Run }) {
  const { t } = useTranslation("executions")
  if (run.texts.size === 0) return null
  return (
    <div className={classes.live} role="log" aria-label={t("timeline.speaking")} tabIndex={0}>
      {[...run.texts].map(([id, { text }]) => (
        <div key={id}>
          <Text fz="xs" c="dimmed">
            {t("timeline.writes", { name: run.step(id)?.name ?? id })}
          </Text>
          <pre className={page.text}>{plain(text.length > 20_000 ? "…" + text.slice(-20_000) : text)}</pre>
        </div>
      ))}
    </div>
  )
}

// useClock goes on while something runs, so that bars grow.
function useClock(running: boolean): number {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    if (!running) return
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [running])
  return now
}
