import { Text, UnstyledButton } from "@mantine/core"
import { IconChevronRight } from "@tabler/icons-react"
import { lazy, Suspense, useState } from "react"
import { useTranslation } from "react-i18next"
import type { Schemas } from "@/api/client"
import { Prose, ValueTable, visible } from "@/parts/question/value"
import { StateMark } from "@/parts/state"
import { Loading } from "@/parts/states"
import classes from "./agents.module.css"

const Data = lazy(() => import("@/parts/data").then((m) => ({ default: m.Data })))

type Step = Schemas["TaskStep"]

// The states of steps, as states of the rest of the product.
const states: Record<Step["status"], string> = { INIT: "PENDING", WAITING: "WAITING_FOR_HUMAN", PARAM: "WAITING_FOR_HUMAN", RUNNING: "RUNNING", SUCCESS: "SUCCESS", ERROR: "ERROR", CANCELLED: "CANCELED", SKIPPED: "SKIPPED" }

/** Plan lists the steps of a task as they are planned, each with its call: what it was given and what it brought. */
export function Plan({ steps, execution }: { steps: Step[]; execution: string }) {
  const { t } = useTranslation("agents")
  if (steps.length === 0) return null
  return (
    <ol className={classes.plan} aria-label={t("plan.title")}>
      {steps.map((s) => (
        <PlanStep key={s.step_id} step={s} execution={execution} />
      ))}
    </ol>
  )
}

function PlanStep({ step: s, execution }: { step: Step; execution: string }) {
  const { t } = useTranslation("agents")
  const [open, setOpen] = useState(false)
  const rung = s.rung === "alternative" || s.rung === "repair" || s.rung === "replan" ? s.rung : undefined
  return (
    <li>
      <UnstyledButton className={classes.step} aria-expanded={open} onClick={() => setOpen(!open)}>
        <IconChevronRight size={14} aria-hidden className={open ? classes.opened : undefined} />
        <StateMark status={states[s.status]} word={false} />
        <span className={classes.grow}>
          <Text span fw={500} className={classes.wrap}>
            {visible(s.description || s.tool)}
          </Text>
          <Text span fz="sm" c="dimmed" display="block" className={classes.wrap}>
            <code>{visible(s.tool)}</code>
            {rung && ` · ${t(`plan.${rung}`)}`}
          </Text>
        </span>
      </UnstyledButton>
      {s.error && (
        <Text fz="sm" c="var(--state-red)" className={classes.said}>
          {visible(s.error)}
        </Text>
      )}
      {open && (
        <div className={classes.inside}>
          {s.risk && (
            <Text fz="sm">
              <strong>{t(`plan.risk.${s.risk.risk}`)}</strong>
            </Text>
          )}
          {s.risk?.reason && <Prose>{s.risk.reason}</Prose>}
          {s.arguments !== undefined && s.arguments !== null && (
            <section aria-label={t("plan.arguments")}>
              <Text fz="sm" fw={600}>
                {t("plan.arguments")}
              </Text>
              <ValueTable value={s.arguments} label={t("plan.arguments")} />
            </section>
          )}
          {s.result !== undefined && s.result !== null && (
            <Suspense fallback={<Loading />}>
              <Data value={s.result} execution={execution} label={t("plan.result")} title={t("plan.result")} height={280} />
            </Suspense>
          )}
        </div>
      )}
    </li>
  )
}
