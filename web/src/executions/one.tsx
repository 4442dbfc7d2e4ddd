import { Tabs } from "@mantine/core"
import { IconDatabase, IconHistory, IconListDetails, IconSchema, IconTimeline } from "@tabler/icons-react"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useParams } from "react-router"
import { Failure } from "@/api/client"
import { useRole } from "@/api/me"
import { ended } from "@/api/status"
import { Shown } from "@/parts/states"
import { ActDialog, FreezeDialog } from "./act"
import { useAddress } from "./addresses"
import { type Act, actsOn, actsOnStep } from "./allowed"
import { CanvasTab } from "./canvas_tab"
import { Compare, CompareDialog } from "./compare"
import { DataTab } from "./data_tab"
import { ForkDialog } from "./fork"
import { Head } from "./head"
import { History } from "./history"
import { Logs } from "./logs"
import type { Step } from "./run"
import { StepPanel } from "./step"
import { Timeline } from "./timeline"
import { useExecution, useRun } from "./use_run"
import { Missing } from "./missing"
import classes from "./one.module.css"

const tabs = ["timeline", "canvas", "data", "history", "logs"] as const
type Tab = (typeof tabs)[number]

/** One execution: what is its state, what did it do, where did this value come from, what can I do now. */
export function Component() {
  const { id } = useParams()
  return <Execution key={id} id={id!} />
}

function Execution({ id }: { id: string }) {
  const { t } = useTranslation("executions")
  const query = useExecution(id)
  if (query.error instanceof Failure && query.error.status === 404) return <Missing id={id} />
  return (
    <Shown query={query} what={t("loading.one")}>
      {() => <Opened id={id} />}
    </Shown>
  )
}

function Opened({ id }: { id: string }) {
  const { t } = useTranslation("executions")
  const { data: e } = useExecution(id)
  const { run, connection } = useRun(id)
  const [params, change] = useAddress()
  const [doing, setDoing] = useState<{ act: Act; step?: Step }>()
  const [comparing, setComparing] = useState(false)
  const may = { operate: useRole("editor", "operator"), edit: useRole("editor"), admin: useRole() }
  if (!e) return null
  const asked = params.get("tab") as Tab
  const tab: Tab = tabs.includes(asked) ? asked : "timeline"
  const other = params.get("compare")
  const over = ended(e.status)
  const actsOf = (step: Step) => actsOnStep(e.status, step, may)
  const selected = run.step(params.get("step") ?? "")
  const icon = { size: 16, stroke: 1.6 }
  return (
    <div className={classes.page}>
      <Head e={e} run={run} acts={actsOn({ status: e.status, task: !!e.task, openQuestion: (e.questions ?? []).length > 0 }, may)} onAct={(act) => setDoing({ act })} onCompare={() => setComparing(true)} />
      {other ? (
        <Compare left={e} other={other} />
      ) : (
        <Tabs value={tab} onChange={(v) => change({ tab: v === "timeline" ? undefined : (v ?? undefined) }, { replace: false })} className={classes.tabs} keepMounted={false}>
          <Tabs.List className={classes.tabList}>
            <Tabs.Tab value="timeline" leftSection={<IconTimeline {...icon} />}>
              {t("tab.timeline")}
            </Tabs.Tab>
            <Tabs.Tab value="canvas" leftSection={<IconSchema {...icon} />}>
              {t("tab.canvas")}
            </Tabs.Tab>
            <Tabs.Tab value="data" leftSection={<IconDatabase {...icon} />}>
              {t("tab.data")}
            </Tabs.Tab>
            <Tabs.Tab value="history" leftSection={<IconHistory {...icon} />}>
              {t("tab.history")}
            </Tabs.Tab>
            <Tabs.Tab value="logs" leftSection={<IconListDetails {...icon} />}>
              {t("tab.logs")}
            </Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="timeline" className={classes.panel}>
            <div className={classes.split}>
              <Timeline run={run} version={run.version} running={!over} />
              {selected && (
                <aside className={classes.side}>
                  <StepPanel execution={id} run={run} step={selected} acts={actsOf(selected)} onAct={(act, step) => setDoing({ act, step })} />
                </aside>
              )}
            </div>
          </Tabs.Panel>
          <Tabs.Panel value="canvas" className={classes.panel}>
            <div className={classes.split}>
              <CanvasTab id={id} run={run} version={run.version} />
              {selected && (
                <aside className={classes.side}>
                  <StepPanel execution={id} run={run} step={selected} acts={actsOf(selected)} onAct={(act, step) => setDoing({ act, step })} />
                </aside>
              )}
            </div>
          </Tabs.Panel>
          <Tabs.Panel value="data" className={classes.panel}>
            <DataTab e={e} run={run} version={run.version} actsOf={actsOf} onAct={(act, step) => setDoing({ act, step })} />
          </Tabs.Panel>
          <Tabs.Panel value="history" className={classes.panel}>
            <History id={id} />
          </Tabs.Panel>
          <Tabs.Panel value="logs" className={classes.panel}>
            <Logs id={id} live={!over} version={run.version} connected={connection === "open"} />
          </Tabs.Panel>
        </Tabs>
      )}
      {doing?.act === "fork" && doing.step && <ForkDialog execution={id} step={doing.step} onClose={() => setDoing(undefined)} />}
      {doing?.act === "freeze" && <FreezeDialog execution={id} onClose={() => setDoing(undefined)} />}
      {doing && doing.act !== "fork" && doing.act !== "freeze" && <ActDialog execution={id} name={e.workflow_name || e.workflow_id} act={doing.act} step={doing.step} onClose={() => setDoing(undefined)} />}
      {comparing && (
        <CompareDialog
          e={e}
          onClose={() => setComparing(false)}
          onChoose={(chosen) => {
            setComparing(false)
            change({ compare: chosen, step: undefined, pick: undefined }, { replace: false })
          }}
        />
      )}
    </div>
  )
}
