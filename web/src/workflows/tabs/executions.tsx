import { Anchor, Group, Select, Table, Text } from "@mantine/core"
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client } from "@/api/client"
import { useSearch } from "@/api/search"
import type { Status } from "@/api/status"
import { valuesOf } from "@/api/values"
import { markFor, turned } from "@/executions/turning"
import { Pages } from "@/parts/pages"
import { StateMark, stateOf } from "@/parts/state"
import { Empty, Shown } from "@/parts/states"
import { lasted, When } from "@/parts/when"

const size = 20
// The states that people look for; a new execution is in its first state for a moment only.
const offered: Record<Status, boolean> = { RUNNING: true, WAITING_FOR_HUMAN: true, WAITING: true, PAUSED: true, PENDING: true, SUCCESS: true, ERROR: true, TIMEOUT: true, CANCELED: true, NEW: false }
const statuses: string[] = valuesOf(offered).filter((s) => offered[s])

/** Executions lists the runs of one workflow, the newest first. */
export default function Executions({ id }: { id: string }) {
  const { t } = useTranslation("workflows")
  const { get, page, set } = useSearch()
  const status = statuses.includes(get("status")) ? get("status") : ""
  const mark = get("mark")
  const query = useQuery({
    queryKey: ["executions", "of", id, status, page, mark],
    queryFn: ({ signal }) =>
      turned(page, mark, (asked) => call(client.GET("/api/v1/executions", { params: { query: { workflow_id: id, ...asked, page_size: size, ...(status ? { status: [status] } : {}) } }, signal }))),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  })
  const turn = (next: number) =>
    set({ page: next === 1 ? null : next, mark: markFor(query.isPlaceholderData ? [] : query.data?.executions, page, next, Math.ceil((query.data?.total_count ?? 0) / size)) })
  return (
    <div style={{ padding: "var(--mantine-spacing-md)" }}>
      <Group justify="space-between" pb="sm">
        <Select aria-label={t("runs.status")} placeholder={t("runs.any")} w={220} value={status || null} onChange={(s) => set({ status: s, page: null, mark: null })} data={statuses.map((s) => ({ value: s, label: t(`shell:state.${stateOf(s)}`) }))} clearable clearButtonProps={{ "aria-label": t("clear") }} />
        <Anchor component={Link} to={`/executions?workflow=${encodeURIComponent(id)}`} fz="sm">
          {t("runs.all")}
        </Anchor>
      </Group>
      <Shown query={query}>
        {({ executions, total_count }) =>
          total_count === 0 ? (
            <Empty title={status ? t("runs.noneSuch") : t("runs.none")}>
              {!status && (
                <>
                  <Text c="dimmed">{t("runs.noneText")}</Text>
                  <Anchor component={Link} to="?" fz="sm">
                    {t("runs.go")}
                  </Anchor>
                </>
              )}
            </Empty>
          ) : (
            <>
              <Table.ScrollContainer minWidth={620} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": t("runs.label") } }}>
                <Table verticalSpacing={6} highlightOnHover>
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>{t("runs.state")}</Table.Th>
                      <Table.Th>{t("runs.started")}</Table.Th>
                      <Table.Th>{t("runs.took")}</Table.Th>
                      <Table.Th>{t("runs.by")}</Table.Th>
                      <Table.Th>{t("runs.revision")}</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {(executions ?? []).map((e) => (
                      <Table.Tr key={e.execution_id}>
                        <Table.Td maw={420}>
                          <Anchor component={Link} to={`/executions/${encodeURIComponent(e.execution_id)}`} underline="hover" c="inherit">
                            <StateMark status={e.status} />
                          </Anchor>
                          {e.error_summary && (
                            <Text fz="sm" c="dimmed" truncate title={e.error_summary}>
                              {e.error_summary}
                            </Text>
                          )}
                        </Table.Td>
                        <Table.Td>
                          <When at={e.start_time ?? e.created_at} />
                        </Table.Td>
                        <Table.Td>{e.duration_ms === undefined ? "–" : lasted(e.duration_ms)}</Table.Td>
                        <Table.Td>{e.user_id || t("runs.trigger", { kind: e.trigger_type })}</Table.Td>
                        <Table.Td>{e.revision}</Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </Table.ScrollContainer>
              <Pages page={page} size={size} total={total_count} onPage={turn} />
            </>
          )
        }
      </Shown>
    </div>
  )
}
