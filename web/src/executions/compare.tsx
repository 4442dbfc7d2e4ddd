import { Anchor, Button, Group, Modal, Stack, Text, TextInput, Title } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { Data } from "@/parts/data"
import { plain } from "@/parts/plain"
import { StateMark } from "@/parts/state"
import { Shown } from "@/parts/states"
import { lasted, When } from "@/parts/when"
import { useAddress } from "./addresses"
import { nodeState } from "./run"
import { useExecution } from "./use_run"
import classes from "./compare.module.css"

type Execution = Schemas["Execution"]
type Node = Schemas["NodeExecution"]

/** Pair is one node in two executions. */
export type Pair = { node: string; name: string; left?: Node; right?: Node; same: boolean }

/** pairsOf puts the nodes of two executions beside each other, in the order in which they began, and says which came out the same. */
export function pairsOf(left: Pick<Execution, "execution_sequence" | "node_executions">, right: Pick<Execution, "execution_sequence" | "node_executions">): Pair[] {
  const order = [...new Set([...(left.execution_sequence ?? []), ...(right.execution_sequence ?? []), ...Object.keys(left.node_executions), ...Object.keys(right.node_executions)])]
  return order.map((node) => {
    const [l, r] = [left.node_executions[node], right.node_executions[node]]
    const came = (n: Node | undefined) => JSON.stringify([n?.status, n?.output_data, n?.error?.error_code, n?.error?.error_message])
    return { node, name: l?.node_name || r?.node_name || node, left: l, right: r, same: came(l) === came(r) }
  })
}

/** Compare shows two executions side by side: which nodes took another way or brought something else. */
export function Compare({ left, other }: { left: Execution; other: string }) {
  const { t } = useTranslation("executions")
  const [, change] = useAddress()
  const query = useExecution(other)
  return (
    <div className={classes.page}>
      <Group justify="space-between" p="sm">
        <Title order={2} size="h5">
          {t("compare.title")}
        </Title>
        <Button size="compact-sm" variant="default" onClick={() => change({ compare: undefined, step: undefined })}>
          {t("compare.close")}
        </Button>
      </Group>
      <Shown query={query} what={t("loading.one")}>
        {(right) => <Sides left={left} right={right} />}
      </Shown>
    </div>
  )
}

function Sides({ left, right }: { left: Execution; right: Execution }) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const chosen = params.get("step")
  const pairs = pairsOf(left, right)
  const different = pairs.filter((p) => !p.same).length
  return (
    <>
      <Text px="sm" fz="sm" role="status">
        {different === 0 ? t("compare.same") : t("compare.different", { count: different })}
        {left.workflow_id !== right.workflow_id ? ` · ${t("compare.workflows")}` : left.revision !== right.revision ? ` · ${t("compare.revisions", { left: left.revision, right: right.revision })}` : ""}
      </Text>
      <div className={classes.scroll} tabIndex={0} role="region" aria-label={t("compare.title")}>
        <table className={classes.table}>
          <thead>
            <tr>
              <th scope="col">{t("compare.node")}</th>
              <th scope="col">
                <Side e={left} />
              </th>
              <th scope="col">
                <Side e={right} link />
              </th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <th scope="row">{t("data.started")}</th>
              <td>
                <Data value={left.trigger_info.trigger_data} execution={left.execution_id} label={t("data.started")} height={160} depth={1} />
              </td>
              <td>
                <Data value={right.trigger_info.trigger_data} execution={right.execution_id} label={t("data.started")} height={160} depth={1} />
              </td>
            </tr>
            {pairs.map((p) => (
              <tr key={p.node} className={p.same ? undefined : classes.differs}>
                <th scope="row">
                  <Anchor component="button" type="button" fz="sm" aria-expanded={chosen === p.node} onClick={() => change({ step: chosen === p.node ? undefined : p.node })}>
                    <bdi>{plain(p.name)}</bdi>
                  </Anchor>
                  <Text fz="xs" c="dimmed">
                    {p.same ? t("compare.equal") : t("compare.differs")}
                  </Text>
                </th>
                <td>
                  <Half n={p.left} open={chosen === p.node} execution={left.execution_id} />
                </td>
                <td>
                  <Half n={p.right} open={chosen === p.node} execution={right.execution_id} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

function Side({ e, link }: { e: Execution; link?: boolean }) {
  const { t } = useTranslation("executions")
  return (
    <Group gap={8}>
      <StateMark status={e.status} />
      <When at={e.start_time ?? e.created_at} />
      {e.duration_ms !== undefined && <span>{lasted(e.duration_ms)}</span>}
      {link && (
        <Anchor component={Link} to={`/executions/${encodeURIComponent(e.execution_id)}`} fz="sm">
          {t("compare.open")}
        </Anchor>
      )}
    </Group>
  )
}

function Half({ n, open, execution }: { n: Node | undefined; open: boolean; execution: string }) {
  const { t } = useTranslation("executions")
  if (!n) return <Text c="dimmed">{t("compare.absent")}</Text>
  return (
    <>
      <Group gap={8}>
        <StateMark status={nodeState(n.status)} />
        {n.duration_ms !== undefined && <Text fz="xs">{lasted(n.duration_ms)}</Text>}
        {(n.activation_count ?? 1) > 1 && <Text fz="xs">{t("compare.visits", { count: n.activation_count })}</Text>}
      </Group>
      {n.error && <Text fz="xs">{plain(n.error.error_message)}</Text>}
      {open && <Data value={n.output_data} execution={execution} label={t("step.output")} height={300} depth={3} />}
    </>
  )
}

/** CompareDialog asks which execution to compare with: one of the same workflow, or any by its id. */
export function CompareDialog({ e, onChoose, onClose }: { e: Execution; onChoose: (id: string) => void; onClose: () => void }) {
  const { t } = useTranslation("executions")
  const [text, setText] = useState("")
  const query = useQuery({
    queryKey: ["executions", "list", 1, e.workflow_id, "compare"],
    queryFn: ({ signal }) => call(client.GET("/api/v1/executions", { params: { query: { workflow_id: e.workflow_id, page_size: 20 } }, signal })),
  })
  return (
    <Modal opened onClose={onClose} title={t("compare.choose")} closeButtonProps={{ "aria-label": t("act.close") }}>
      <Stack gap="sm">
        <form
          onSubmit={(ev) => {
            ev.preventDefault()
            if (text.trim()) onChoose(text.trim())
          }}
        >
          <TextInput label={t("compare.id")} value={text} onChange={(ev) => setText(ev.currentTarget.value)} data-autofocus />
        </form>
        <Shown query={query}>
          {(data) => {
            const others = (data.executions ?? []).filter((o) => o.execution_id !== e.execution_id)
            return (
              <Stack gap={4}>
                {others.length === 0 && <Text c="dimmed">{t("compare.none")}</Text>}
                {others.map((o) => (
                  <Button key={o.execution_id} variant="default" justify="flex-start" onClick={() => onChoose(o.execution_id)}>
                    <Group gap={8}>
                      <StateMark status={o.status} />
                      <When at={o.start_time ?? o.created_at} />
                      {o.duration_ms !== undefined && <span>{lasted(o.duration_ms)}</span>}
                    </Group>
                  </Button>
                ))}
              </Stack>
            )
          }}
        </Shown>
      </Stack>
    </Modal>
  )
}
