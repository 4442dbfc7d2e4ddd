import { Anchor, Breadcrumbs, Button, Group, Menu, Text, Title } from "@mantine/core"
import { IconArrowsDiff, IconDots, IconPlayerPause, IconPlayerPlay, IconSnowflake, IconTrash, IconX } from "@tabler/icons-react"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import type { Schemas } from "@/api/client"
import { plain } from "@/parts/plain"
import { StateMark } from "@/parts/state"
import { lasted, When } from "@/parts/when"
import type { Act } from "./allowed"
import { ForkEdits } from "./fork"
import type { Run } from "./run"
import { Says } from "./says"
import classes from "./one.module.css"

type Props = { e: Schemas["Execution"]; run: Run; acts: Act[]; onAct: (act: Act) => void; onCompare: () => void }

const path = (id: string) => `/executions/${encodeURIComponent(id)}`

/** Head answers first: what is its state and since when, where did it come from, what can I do now. */
export function Head({ e, run, acts, onAct, onCompare }: Props) {
  const { t } = useTranslation("executions")
  const [edits, setEdits] = useState(true)
  const tokens = e.metrics.total_tokens
  return (
    <header className={classes.head}>
      <div className={classes.line}>
        <Breadcrumbs separatorMargin={6}>
          <Anchor component={Link} to="/executions" fz="sm">
            {t("title")}
          </Anchor>
          <Title order={1} size="h4" className={classes.title}>
            {plain(e.workflow_name || e.workflow_id)}
          </Title>
        </Breadcrumbs>
        <StateMark status={e.status} size={18} />
        <Group gap={6} ml="auto">
          {acts.includes("pause") && (
            <Button size="compact-sm" variant="default" leftSection={<IconPlayerPause size={14} />} onClick={() => onAct("pause")}>
              {t("act.pause.verb")}
            </Button>
          )}
          {acts.includes("resume") && (
            <Button size="compact-sm" leftSection={<IconPlayerPlay size={14} />} onClick={() => onAct("resume")}>
              {t("act.resume.verb")}
            </Button>
          )}
          {acts.includes("cancel") && (
            <Button size="compact-sm" variant="default" leftSection={<IconX size={14} />} onClick={() => onAct("cancel")}>
              {t("act.cancel.verb")}
            </Button>
          )}
          {acts.includes("freeze") && (
            <Button size="compact-sm" variant="default" leftSection={<IconSnowflake size={14} />} onClick={() => onAct("freeze")}>
              {t("act.freeze.verb")}
            </Button>
          )}
          <Menu position="bottom-end" withinPortal>
            <Menu.Target>
              <Button size="compact-sm" variant="subtle" aria-label={t("more")}>
                <IconDots size={16} />
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Item leftSection={<IconArrowsDiff size={14} />} onClick={onCompare}>
                {t("compare.verb")}
              </Menu.Item>
              {acts.includes("delete") && (
                <Menu.Item color="red" leftSection={<IconTrash size={14} />} onClick={() => onAct("delete")}>
                  {t("act.delete.verb")}
                </Menu.Item>
              )}
            </Menu.Dropdown>
          </Menu>
        </Group>
      </div>
      <Says e={e} run={run} />
      {e.error && <pre className={classes.message}>{plain(e.error.error_message)}</pre>}
      <div className={`${classes.line} ${classes.facts}`}>
        <span>
          {t("head.started")} <When at={e.start_time ?? e.created_at} /> {e.trigger_info.user_id && t("head.by", { who: e.trigger_info.user_id })}
          {e.trigger_info.trigger_type !== "MANUAL" && ` · ${t(`trigger.${e.trigger_info.trigger_type}`, { defaultValue: e.trigger_info.trigger_type })}`}
        </span>
        {e.duration_ms !== undefined && e.status !== "SUCCESS" && <span>{t("head.took", { time: lasted(e.duration_ms) })}</span>}
        {e.metrics.waited_ms > 0 && <span>{t("head.waited", { time: lasted(e.metrics.waited_ms) })}</span>}
        {e.metrics.retries > 0 && <span>{t("head.retries", { count: e.metrics.retries })}</span>}
        {tokens > 0 && <span>{t("cost.tokens", { count: tokens })}</span>}
        {e.metrics.cost > 0 && <span>{t("cost.credits", { cost: Number(e.metrics.cost.toFixed(6)) })}</span>}
        <Anchor component={Link} to={`/workflows/${encodeURIComponent(e.workflow_id)}?revision=${e.revision}`} fz="xs">
          {t("head.revision", { n: e.revision })}
        </Anchor>
        {e.parent_execution_id && (
          <Anchor component={Link} to={path(e.parent_execution_id)} fz="xs">
            {t("head.parent")}
          </Anchor>
        )}
        {e.task?.agent_id && (
          <Anchor component={Link} to={`/agents/${encodeURIComponent(e.task.agent_id)}/tasks/${encodeURIComponent(e.execution_id)}`} fz="xs">
            {t("head.task")}
          </Anchor>
        )}
        <Text span fz="xs" ff="monospace" c="dimmed">
          {e.execution_id}
        </Text>
      </div>
      {e.error && (
        <Text fz="xs" c="dimmed">
          {t("step.code", { code: e.error.error_code })} · {e.error.is_retryable ? t("step.retryable") : t("step.notRetryable")} · {t("head.kept")}
        </Text>
      )}
      {e.test && (
        <Text fz="sm">
          {e.test.node ? t("head.testNode", { by: e.test.by, node: e.test.node }) : e.test.from ? t("head.testFrom", { by: e.test.by, node: e.test.from }) : t("head.test", { by: e.test.by })}
          {(e.test.pinned ?? []).length > 0 && ` · ${t("head.pinned", { nodes: (e.test.pinned ?? []).join(", ") })}`}
        </Text>
      )}
      {e.fork && (
        <div>
          <Group gap={8}>
            <Text fz="sm">
              {t("head.fork", { by: e.fork.by ?? "", node: e.fork.node_id || e.fork.activation_id })} <When at={e.fork.time} />
              {e.fork.reason && ` · ${e.fork.reason}`}
            </Text>
            <Anchor component={Link} to={path(e.fork.execution_id)} fz="sm">
              {t("head.source")}
            </Anchor>
            <Anchor component={Link} to={`${path(e.execution_id)}?compare=${encodeURIComponent(e.fork.execution_id)}`} fz="sm">
              {t("head.compareSource")}
            </Anchor>
            {(e.fork.edits ?? []).length > 0 && (
              <Button size="compact-xs" variant="subtle" aria-expanded={edits} onClick={() => setEdits(!edits)}>
                {t("head.edits", { count: (e.fork.edits ?? []).length })}
              </Button>
            )}
          </Group>
          {edits && (e.fork.edits ?? []).length > 0 && <ForkEdits fork={e.fork} />}
        </div>
      )}
    </header>
  )
}
