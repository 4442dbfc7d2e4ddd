import { Anchor, Button, Group, Text } from "@mantine/core"
import { IconHandStop } from "@tabler/icons-react"
import { useInfiniteQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { Data } from "@/parts/data"
import { plain } from "@/parts/plain"
import { StateMark } from "@/parts/state"
import { Empty, Shown } from "@/parts/states"
import { exact, lasted, When } from "@/parts/when"
import { language } from "@/words"
import { Asked } from "./asked"
import { meansText } from "./means"
import { toldState } from "./run"
import { stepName } from "./step_name"
import page from "./one.module.css"
import classes from "./history.module.css"

type Record = Schemas["HistoryRecord"]
type Step = Schemas["HistoryStep"]

const part = 200

/** History tells what happened and who decided it, in order, to be read. */
export function History({ id }: { id: string }) {
  const { t } = useTranslation("executions")
  const query = useInfiniteQuery({
    queryKey: ["executions", id, "history"],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => call(client.GET("/api/v1/executions/{id}/history", { params: { path: { id }, query: { limit: part, ...(pageParam ? { after: pageParam } : {}) } }, signal })),
    getNextPageParam: (last) => last.next || undefined,
  })
  return (
    <Shown query={query} what={t("loading.history")}>
      {(data) => {
        const first = data.pages[0]!
        const records = data.pages.flatMap((p) => p.history ?? [])
        if (records.length === 0) return <Empty title={t("history.empty")} />
        return (
          <div className={page.scroll} style={{ height: "100%" }} tabIndex={0} role="region" aria-label={t("tab.history")}>
            <Records records={records} execution={id} />
            {query.hasNextPage && (
              <Group p="md">
                <Button size="xs" variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                  {t("history.more")}
                </Button>
              </Group>
            )}
            {(first.forks ?? []).length > 0 && (
              <div style={{ padding: "0 16px 24px" }}>
                <Text fw={600} fz="sm">
                  {t("history.forks")}
                </Text>
                {(first.forks ?? []).map((f) => (
                  <Group key={f.execution_id} gap={8}>
                    <StateMark status={f.status} />
                    <Anchor component={Link} to={`/executions/${encodeURIComponent(f.execution_id)}`} fz="sm">
                      {f.execution_id}
                    </Anchor>
                    <Text fz="sm" c="dimmed">
                      {t("head.by", { who: f.by })} <When at={f.at} />
                    </Text>
                  </Group>
                ))}
              </div>
            )}
          </div>
        )
      }}
    </Shown>
  )
}

function Records({ records, execution }: { records: readonly Record[]; execution: string }) {
  return (
    <ol className={classes.list}>
      {records.map((r, i) => (
        <li key={`${r.step?.id ?? r.action?.action ?? ""} ${r.time} ${i}`} className={classes.item}>
          <time className={classes.time} dateTime={new Date(r.time).toISOString()} title={exact(r.time)}>
            {new Intl.DateTimeFormat(language() === "zh" ? "zh-CN" : "en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(r.time)}
          </time>
          {r.action ? <IconHandStop size={16} stroke={1.6} aria-hidden /> : <StateMark status={toldState(r.step?.step_status ?? "")} word={false} />}
          <div className={classes.what}>
            {r.action && <ActText act={r.action} />}
            {r.step && <StepText step={r.step} execution={execution} />}
            {r.inherited_from && <Inherited from={r.inherited_from} />}
          </div>
        </li>
      ))}
    </ol>
  )
}

function Inherited({ from }: { from: string }) {
  const { t } = useTranslation("executions")
  return (
    <Text fz="xs" c="dimmed">
      <Anchor component={Link} to={`/executions/${encodeURIComponent(from)}`} fz="xs">
        {t("history.inherited")}
      </Anchor>
    </Text>
  )
}

function ActText({ act }: { act: Schemas["Act"] }) {
  const { t } = useTranslation("executions")
  return (
    <>
      <span className={classes.quote}>{t(`history.act.${act.action}`, { by: act.by, node: act.node_id ?? act.activation_id ?? "" })}</span>
      {act.reason && <span className={classes.quote}> · {t("history.reason", { reason: plain(act.reason) })}</span>}
      {(act.means || act.token_made_by) && (
        <Text fz="xs" c="dimmed">
          {act.means && meansText(act.means, act.by, t)}
          {act.token_made_by && act.token_made_by !== act.by && act.token_made_by !== act.means?.token_made_by && ` · ${t("history.tokenOf", { who: act.token_made_by })}`}
        </Text>
      )}
    </>
  )
}

function StepText({ step: s, execution }: { step: Step; execution: string }) {
  const { t } = useTranslation("executions")
  const [open, setOpen] = useState(false)
  const details = (s.execution_details ?? {}) as { tool_name?: string; branch_taken?: string }
  return (
    <>
      <Group gap={8} align="baseline">
        <span className={s.inner_step ? classes.inner : classes.name}>
          {stepName({ inner: s.inner_step, name: plain(s.step_name), node: s.node_id, tool: details.tool_name }, t)}
          {s.iteration !== undefined && s.inner_step === undefined && ` #${s.iteration + 1}`}
        </span>
        <span>
          {t(`history.step.${s.step_status}`)}
          {details.branch_taken !== undefined && ` → ${details.branch_taken}`}
        </span>
        <Text span fz="xs" c="dimmed">
          {[
            s.duration_ms !== undefined && lasted(s.duration_ms),
            (s.retries ?? []).length > 0 && t("timeline.attempt", { n: s.retries!.length + 1 }),
            (s.tokens_used?.total_tokens ?? 0) > 0 && t("cost.tokens", { count: s.tokens_used!.total_tokens }),
            s.credits_consumed > 0 && t("cost.credits", { cost: s.credits_consumed }),
          ]
            .filter(Boolean)
            .join(" · ")}
        </Text>
        <Button size="compact-xs" variant="subtle" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? t("history.hide") : t("history.show")}
        </Button>
      </Group>
      {s.error && <pre className={page.message}>{plain(s.error.error_message)}</pre>}
      {(s.retries ?? []).map((r) => (
        <Text key={r.attempt} fz="xs" c="dimmed">
          {t("history.retry", { n: r.attempt, why: plain(r.error?.error_message ?? "") })} <When at={r.at} />
        </Text>
      ))}
      {(s.questions ?? []).map((q) => (
        <Asked key={q.interaction_id} q={q} execution={execution} />
      ))}
      {(s.child_execution_ids ?? []).map((c) => (
        <div key={c}>
          <Anchor component={Link} to={`/executions/${encodeURIComponent(c)}`} fz="xs">
            {t("history.child", { id: c })}
          </Anchor>
        </div>
      ))}
      {open && (
        <div>
          <Text fz="xs" fw={600}>
            {t("step.input")}
          </Text>
          <Data value={s.input_data} execution={execution} label={t("step.input")} height={240} depth={1} />
          <Text fz="xs" fw={600}>
            {t("step.output")}
          </Text>
          <Data value={s.output_data} execution={execution} label={t("step.output")} height={240} />
          {s.sent !== undefined && s.sent !== null && (
            <>
              <Text fz="xs" fw={600}>
                {t("step.sent")}
              </Text>
              <Data value={s.sent} execution={execution} label={t("step.sent")} height={240} />
            </>
          )}
          {(s.children ?? []).map((c) => (
            <div key={c.execution_id} className={classes.children}>
              <Text fz="sm" fw={600}>
                {c.workflow_name}
              </Text>
              <Records records={c.history ?? []} execution={c.execution_id} />
            </div>
          ))}
        </div>
      )}
    </>
  )
}
