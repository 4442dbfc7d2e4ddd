import { ActionIcon, Alert, Anchor, Badge, Button, Group, Stack, Text, Title } from "@mantine/core"
import { IconGitFork, IconPlayerSkipForward, IconRefresh, IconX } from "@tabler/icons-react"
import { useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { Data, type Path, pathText } from "@/parts/data"
import { Markdown } from "@/parts/markdown"
import { plain } from "@/parts/plain"
import { StateMark } from "@/parts/state"
import { Loading, Failed } from "@/parts/states"
import { lasted, When } from "@/parts/when"
import { useAddress } from "./addresses"
import type { Act } from "./allowed"
import { OriginOf } from "./origin"
import { type Origin, outputPath, type Source } from "./lineage"
import type { Run, Step } from "./run"
import { stepName } from "./step_name"
import classes from "./one.module.css"

/** useActivation reads one activation with its data and where its input came from; again when the step has changed. */
export function useActivation(execution: string, step: Step | undefined) {
  return useQuery<Schemas["NodeExecution"]>({
    queryKey: ["executions", execution, "activation", step?.id, step?.state, step?.generation, step?.attempt],
    enabled: !!step,
    placeholderData: (before) => (before?.activation_id === step?.id ? before : undefined),
    queryFn: async ({ signal }) => {
      // An id has slashes and brackets, which the server takes as they are.
      return call(client.GET("/api/v1/executions/{id}/activations/{activation}", { params: { path: { id: execution, activation: step!.id } }, signal }))
    },
  })
}

/** pickedOf reads which value is picked from the address: ["in", …path] or ["out", …path]. */
function pickedOf(text: string | null): { side: "in" | "out"; path: Path } | undefined {
  if (!text) return
  try {
    const [side, ...path] = JSON.parse(text) as (string | number)[]
    if (side === "in" || side === "out") return { side, path }
  } catch {
    // An address that was cut off picks nothing.
  }
}

type Props = { execution: string; run: Run; step: Step; acts: Act[]; onAct: (act: Act, step: Step) => void; height?: number }

/** StepPanel shows one step: what came in, what went out, what it sent, and where each value of the input came from. */
export function StepPanel({ execution, run, step, acts, onAct, height = 340 }: Props) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const picked = useMemo(() => pickedOf(params.get("pick")), [params.get("pick")]) // eslint-disable-line
  const query = useActivation(execution, step)
  const n = query.data
  const pick = (side: "in" | "out") => (path: Path) => change({ pick: JSON.stringify([side, ...path]) })
  const go = async (to: Step, source: Source) => {
    const there = await call(client.GET("/api/v1/executions/{id}/activations/{activation}", { params: { path: { id: execution, activation: to.id } } })).catch(() => undefined)
    const path = outputPath(source, there?.output_data)
    change({ step: to.id, pick: path && JSON.stringify(["out", ...path]), ...(to.inner ? { inside: undefined } : {}), loop: undefined, iteration: undefined }, { replace: false })
  }
  return (
    <Stack p="sm" gap="sm" role="region" aria-label={t("step.label", { name: stepName(step, t) })}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <div>
          <Title order={2} size="h5" className={classes.title}>
            {stepName(step, t)}
          </Title>
          <Group gap="sm">
            <StateMark status={run.stateOf(step)} />
            <Text fz="xs" c="dimmed" ff="monospace" title={t("step.kind")}>
              {step.kind}
            </Text>
            {step.effect && <Badge size="xs" tt="none" variant="default" title={t(`effect.${step.effect}Text`)}>{t(`effect.${step.effect}`)}</Badge>}
          </Group>
        </div>
        <ActionIcon variant="subtle" color="gray" aria-label={t("step.close")} onClick={() => change({ step: undefined, pick: undefined })}>
          <IconX size={16} />
        </ActionIcon>
      </Group>
      <Text fz="xs" c="dimmed" className={classes.title}>
        {step.id}
        {step.start !== undefined && (
          <>
            {" · "}
            {t("step.began")} <When at={step.start} />
          </>
        )}
        {step.start !== undefined && step.end !== undefined && ` · ${t("step.took", { time: lasted(step.end - step.start) })}`}
        {step.retries > 0 && ` · ${t("timeline.attempt", { n: step.retries + 1 })}`}
        {step.pinned && ` · ${t("timeline.pinned")}`}
        {step.inherited && ` · ${t("timeline.inherited")}`}
        {step.tokens > 0 && ` · ${t("cost.tokens", { count: step.tokens })}`}
        {step.cost > 0 && ` · ${t("cost.credits", { cost: step.cost })}`}
        {step.due !== undefined && step.end === undefined && (
          <>
            {" · "}
            {t("step.due")} <When at={step.due} />
          </>
        )}
      </Text>
      <Children execution={execution} step={step} />
      {n?.wait_url && (
        <Text fz="sm" className={classes.title}>
          {t("step.waitUrl")} <code>{n.wait_url}</code>
        </Text>
      )}
      {acts.length > 0 && (
        <Group gap="xs">
          {acts.includes("retry_node") && (
            <Button size="compact-sm" variant="light" leftSection={<IconRefresh size={14} />} onClick={() => onAct("retry_node", step)}>
              {t("act.retry_node.verb")}
            </Button>
          )}
          {acts.includes("skip_node") && (
            <Button size="compact-sm" variant="default" leftSection={<IconPlayerSkipForward size={14} />} onClick={() => onAct("skip_node", step)}>
              {t("act.skip_node.verb")}
            </Button>
          )}
          {acts.includes("fork") && (
            <Button size="compact-sm" variant="default" leftSection={<IconGitFork size={14} />} onClick={() => onAct("fork", step)}>
              {t("act.fork.verb")}
            </Button>
          )}
        </Group>
      )}
      {n?.error && (
        <div>
          <pre className={classes.message}>{plain(n.error.error_message)}</pre>
          <Text fz="xs" c="dimmed">
            {t("step.code", { code: n.error.error_code })} · {n.error.is_retryable ? t("step.retryable") : t("step.notRetryable")}
          </Text>
        </div>
      )}
      {(n?.warnings ?? []).map((w) => (
        <Alert key={(w.path ?? "") + w.message} color="yellow" p="xs">
          <Text fz="sm">{w.message}</Text>
          {w.placeholder && <code>{w.placeholder}</code>}
        </Alert>
      ))}
      {run.texts.has(step.id) && (step.kind.startsWith("AI_AGENT") ? <Markdown text={run.texts.get(step.id)!.text} breaks /> : <pre className={classes.text}>{plain(run.texts.get(step.id)!.text)}</pre>)}
      {query.error && !n ? <Failed error={query.error} again={() => void query.refetch()} /> : null}
      {!n && !query.error && <Loading what={t("loading.step")} />}
      {n && picked?.side === "in" && <OriginOf run={run} step={step} picked={picked.path} lineage={n.lineage as Origin[] | undefined} onGo={(to, source) => void go(to, source)} onClose={() => change({ pick: undefined })} />}
      {n && (
        <>
          <Part title={t("step.input")} hint={t("step.inputHint")}>
            <Data key={`in ${step.id}`} value={n.input_data} execution={execution} label={t("step.input")} onPick={pick("in")} picked={picked?.side === "in" ? picked.path : undefined} height={height} />
          </Part>
          <Part title={t("step.output")} hint={picked?.side === "out" ? t("step.outputPicked", { path: pathText(picked.path) }) : undefined}>
            <Data key={`out ${step.id}`} value={n.output_data} execution={execution} label={t("step.output")} onPick={pick("out")} picked={picked?.side === "out" ? picked.path : undefined} height={height} depth={3} />
          </Part>
          {n.sent !== undefined && n.sent !== null && (
            <Part title={t("step.sent")} hint={t("step.sentHint")}>
              <Data key={`sent ${step.id}`} value={n.sent} execution={execution} label={t("step.sent")} height={height} />
            </Part>
          )}
          {n.execution_details !== undefined && n.execution_details !== null && (
            <Part title={t("step.details")}>
              <Data key={`details ${step.id}`} value={n.execution_details} execution={execution} label={t("step.details")} height={200} depth={1} />
            </Part>
          )}
        </>
      )}
    </Stack>
  )
}

const startsOthers = /SUB_WORKFLOW|AGENT|TASK/

// Children links to the executions that a step has started, which the history names.
function Children({ execution, step }: { execution: string; step: Step }) {
  const { t } = useTranslation("executions")
  const { data } = useQuery({
    queryKey: ["executions", execution, "children", step.state],
    enabled: startsOthers.test(step.kind),
    queryFn: async ({ signal }) => {
      const { history } = await call(client.GET("/api/v1/executions/{id}/history", { params: { path: { id: execution }, query: { limit: 1_000 } }, signal }))
      return new Map((history ?? []).flatMap((r) => (r.step?.child_execution_ids?.length ? [[r.step.step_id, r.step.child_execution_ids] as const] : [])))
    },
  })
  return (data?.get(step.id) ?? []).map((child) => (
    <Anchor key={child} component={Link} fz="sm" to={`/executions/${encodeURIComponent(child)}`}>
      {t("history.child", { id: child })}
    </Anchor>
  ))
}

function Part({ title, hint, children }: { title: string; hint?: string; children: React.ReactNode }) {
  return (
    <div>
      <Group gap="xs" mb={4} align="baseline">
        <Title order={3} size="h6">
          {title}
        </Title>
        {hint && (
          <Text fz="xs" c="dimmed">
            {hint}
          </Text>
        )}
      </Group>
      {children}
    </div>
  )
}
