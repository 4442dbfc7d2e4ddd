import { Button, Chip, Group, Pagination, SegmentedControl, Text, Title } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useMemo } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { ended, type Status } from "@/api/status"
import { valuesOf } from "@/api/values"
import { plain } from "@/parts/plain"
import { StateMark } from "@/parts/state"
import { Empty, Shown } from "@/parts/states"
import { lasted, When } from "@/parts/when"
import { useAddress } from "./addresses"
import { Causes } from "./causes"
import { TimeFilter, timeOf, UserFilter, WorkflowFilter } from "./list_filters"
import { markFor, turned } from "./turning"
import classes from "./list.module.css"

const pageSize = 50

// What people look for, and the statuses that each stands for.
type Group = "running" | "person" | "paused" | "failed" | "succeeded" | "cancelled"
const groupNames = valuesOf<Group>({ running: 1, person: 1, paused: 1, failed: 1, succeeded: 1, cancelled: 1 })
const groupOf: Record<Status, Group> = {
  RUNNING: "running",
  PENDING: "running",
  NEW: "running",
  WAITING: "running",
  WAITING_FOR_HUMAN: "person",
  PAUSED: "paused",
  ERROR: "failed",
  TIMEOUT: "failed",
  SUCCESS: "succeeded",
  CANCELED: "cancelled",
}
const groups = Object.fromEntries(groupNames.map((g) => [g, valuesOf(groupOf).filter((s) => groupOf[s] === g)])) as Record<Group, Status[]>

/** The list of executions: by state and workflow, a page at a time, everything in the address. */
export function Component() {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const page = Math.max(1, Number(params.get("page")) || 1)
  const mark = params.get("mark")
  const workflow = params.get("workflow") ?? ""
  // `status` may name a group of this page or a status of the API.
  const chosen = params.getAll("status")
  const statuses = useMemo(() => [...new Set(chosen.flatMap((s) => (s in groups ? [...groups[s as Group]] : [s])))], [chosen.join(" ")]) // eslint-disable-line
  const causes = params.get("view") === "causes"
  const user = params.get("user") ?? ""
  const time = ["since", "from", "to"].map((name) => params.get(name) ?? "")
  const list = useQuery<Schemas["Executions"]>({
    queryKey: ["executions", "list", page, mark, workflow, statuses, user, time],
    enabled: !causes,
    placeholderData: (before) => before,
    refetchInterval: 5_000,
    queryFn: ({ signal }) => {
      const narrowed = { ...(workflow ? { workflow_id: workflow } : {}), ...(statuses.length ? { status: statuses } : {}), ...(user ? { user_id: user } : {}), ...timeOf(params) }
      return turned(page, mark, (asked) => call(client.GET("/api/v1/executions", { params: { query: { ...asked, page_size: pageSize, ...narrowed } }, signal })))
    },
  })
  const turn = (next: number, pages: number) =>
    change({ page: next === 1 ? undefined : String(next), mark: markFor(list.isPlaceholderData ? [] : list.data?.executions, page, next, pages) }, { replace: false })
  const filtered = statuses.length > 0 || workflow !== "" || user !== "" || time.some(Boolean)
  return (
    <div className={classes.page}>
      <div className={classes.top}>
        <Title order={1} size="h4">
          {t("title")}
        </Title>
        <SegmentedControl
          size="xs"
          aria-label={t("view.label")}
          value={causes ? "causes" : "list"}
          onChange={(v) => change({ view: v === "causes" ? v : undefined, page: undefined }, { replace: false })}
          data={[
            { value: "list", label: t("view.list") },
            { value: "causes", label: t("view.causes") },
          ]}
        />
        {!causes && (
          <Chip.Group
            multiple
            value={groupNames.filter((g) => chosen.includes(g) || groups[g].every((s) => chosen.includes(s)) || (groups[g] as readonly string[]).some((s) => chosen.includes(s)))}
            onChange={(next) => change({ status: next, page: undefined })}
          >
            <div className={classes.chips} role="group" aria-label={t("filter.state")}>
              {groupNames.map((g) => (
                <Chip key={g} value={g} size="xs" variant="light">
                  {t(`group.${g}`)}
                </Chip>
              ))}
            </div>
          </Chip.Group>
        )}
        <WorkflowFilter />
        {!causes && <UserFilter seen={(list.data?.executions ?? []).flatMap((e) => e.user_id ?? [])} />}
        {!causes && <TimeFilter />}
        {filtered && !causes && (
          <Button size="compact-xs" variant="subtle" onClick={() => change({ status: undefined, workflow: undefined, user: undefined, since: undefined, from: undefined, to: undefined, page: undefined })}>
            {t("filter.clear")}
          </Button>
        )}
      </div>
      {causes ? (
        <Causes workflow={workflow} />
      ) : (
        <Shown query={list} what={t("loading.list")}>
          {(data) => <Rows data={data} page={page} filtered={filtered} onPage={turn} />}
        </Shown>
      )}
    </div>
  )
}

function Rows({ data, page, filtered, onPage }: { data: Schemas["Executions"]; page: number; filtered: boolean; onPage: (page: number, pages: number) => void }) {
  const { t } = useTranslation("executions")
  const list = data.executions ?? []
  const pages = Math.max(1, Math.ceil(data.total_count / pageSize))
  if (list.length === 0)
    return (
      <Empty title={filtered ? t("empty.filtered") : page > 1 ? t("empty.page") : t("empty.title")}>
        <Text c="dimmed">{filtered ? t("empty.filteredText") : t("empty.text")}</Text>
        {page > 1 ? (
          <Button size="xs" variant="default" onClick={() => onPage(1, pages)}>
            {t("empty.first")}
          </Button>
        ) : (
          !filtered && (
            <Button size="xs" component={Link} to="/workflows">
              {t("empty.go")}
            </Button>
          )
        )}
      </Empty>
    )
  return (
    <>
      <div className={classes.rows} tabIndex={0} role="region" aria-label={t("title")}>
        <table className={classes.table}>
          <thead>
            <tr>
              <th scope="col">{t("column.state")}</th>
              <th scope="col">{t("column.workflow")}</th>
              <th scope="col">{t("column.started")}</th>
              <th scope="col">{t("column.took")}</th>
              <th scope="col">{t("column.who")}</th>
              <th scope="col">{t("column.error")}</th>
            </tr>
          </thead>
          <tbody>
            {list.map((e) => (
              <tr key={e.execution_id}>
                <td>
                  <StateMark status={e.status} />
                </td>
                <td>
                  <Link className={classes.link} to={`/executions/${encodeURIComponent(e.execution_id)}`} title={e.execution_id}>
                    <bdi>{plain(e.workflow_name || e.workflow_id)}</bdi>
                  </Link>
                </td>
                <td>
                  <When at={e.start_time ?? e.created_at} />
                </td>
                <td>{e.duration_ms !== undefined && ended(e.status) ? lasted(e.duration_ms) : ""}</td>
                <td className={classes.dim}>
                  <bdi>{e.user_id}</bdi>
                  {e.trigger_type !== "MANUAL" && ` · ${t(`trigger.${e.trigger_type}`, { defaultValue: e.trigger_type })}`}
                </td>
                <td className={`${classes.error} ${classes.wide}`} title={e.error_summary && plain(e.error_summary)}>
                  {e.error_summary && plain(e.error_summary)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Group className={classes.foot}>
        <Text fz="sm" c="dimmed">
          {t("list.count", { count: data.total_count, shown: data.total_count.toLocaleString() })}
        </Text>
        {pages > 1 && (
          <Pagination
            size="sm"
            total={pages}
            value={Math.min(page, pages)}
            onChange={(n) => onPage(n, pages)}
            siblings={1}
            getControlProps={(control) => ({ "aria-label": t(`page.${control}`) })}
            getItemProps={(n) => ({ "aria-label": t("page.number", { n }) })}
          />
        )}
      </Group>
    </>
  )
}
