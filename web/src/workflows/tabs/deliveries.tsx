import { Anchor, Badge, Button, Drawer, Group, Select, Stack, Table, Text, Title } from "@mantine/core"
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useRole } from "@/api/me"
import { useSearch } from "@/api/search"
import { valuesOf } from "@/api/values"
import { Data } from "@/parts/data"
import { Pages } from "@/parts/pages"
import { Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { When } from "@/parts/when"

const size = 20
const colors: Record<Schemas["Delivery"]["decision"], string> = { started: "green", accepted: "blue", ignored: "gray", refused: "red", failed: "red" }
const decisions = valuesOf(colors)

/** Deliveries is the history of a workflow's triggers: what has come, what was decided, and the way to start it once more. */
export function Deliveries({ workflow }: { workflow: string }) {
  const { t } = useTranslation("workflows")
  const { get, page, set } = useSearch()
  const mayOperate = useRole("editor", "operator")
  const [replaying, setReplaying] = useState<Schemas["Delivery"]>()
  const decision = decisions.find((d) => d === get("decision"))
  const query = useQuery({
    queryKey: ["triggers", "deliveries", workflow, decision ?? "", page],
    queryFn: ({ signal }) => call(client.GET("/api/v1/deliveries", { params: { query: { workflow_id: workflow, page, page_size: size, ...(decision ? { decision: [decision] } : {}) } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  })
  const opened = get("delivery")
  return (
    <Stack gap="sm" component="section" aria-label={t("deliveries.title")}>
      <Group justify="space-between">
        <Title order={2} size="h5">
          {t("deliveries.title")}
        </Title>
        <Select
          aria-label={t("deliveries.filter")}
          placeholder={t("deliveries.any")}
          size="xs"
          value={decision ?? null}
          onChange={(d) => set({ decision: d, page: null })}
          data={decisions.map((d) => ({ value: d, label: t(`deliveries.${d}`) }))}
          clearable
          clearButtonProps={{ "aria-label": t("clear") }}
        />
      </Group>
      <Shown query={query}>
        {({ deliveries, total_count }) =>
          total_count === 0 ? (
            <Text c="dimmed">{t("deliveries.none")}</Text>
          ) : (
            <>
              <Table.ScrollContainer minWidth={620} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": t("deliveries.title") } }}>
                <Table verticalSpacing={6} highlightOnHover>
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>{t("deliveries.when")}</Table.Th>
                      <Table.Th>{t("deliveries.trigger")}</Table.Th>
                      <Table.Th>{t("deliveries.decision")}</Table.Th>
                      <Table.Th>{t("deliveries.run")}</Table.Th>
                      <Table.Th>{t("revisions.do")}</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {(deliveries ?? []).map((d) => (
                      <Table.Tr key={d.id}>
                        <Table.Td>
                          <When at={d.received_at} />
                        </Table.Td>
                        <Table.Td>{d.node_id}</Table.Td>
                        <Table.Td maw={360}>
                          <Badge color={colors[d.decision]} variant="light" tt="none">
                            {t(`deliveries.${d.decision}`)}
                          </Badge>
                          {d.reason && (
                            <Text fz="sm" c="dimmed">
                              {d.reason}
                            </Text>
                          )}
                        </Table.Td>
                        <Table.Td>
                          {d.execution_id && (
                            <Anchor component={Link} to={`/executions/${encodeURIComponent(d.execution_id)}`} fz="sm">
                              {t("deliveries.open")}
                            </Anchor>
                          )}
                        </Table.Td>
                        <Table.Td>
                          {mayOperate && (
                            <Group gap="xs">
                              <Button size="compact-xs" variant="default" onClick={() => set({ delivery: d.id })}>
                                {t("deliveries.look")}
                              </Button>
                              <Button size="compact-xs" variant="default" onClick={() => setReplaying(d)}>
                                {t("deliveries.replay")}
                              </Button>
                            </Group>
                          )}
                        </Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </Table.ScrollContainer>
              <Pages page={page} size={size} total={total_count} onPage={(n) => set({ page: n === 1 ? null : n })} />
            </>
          )
        }
      </Shown>
      {replaying && <Replay delivery={replaying} onClose={() => setReplaying(undefined)} />}
      {opened && mayOperate && <Brought id={opened} onClose={() => set({ delivery: null })} />}
    </Stack>
  )
}

function Replay({ delivery: d, onClose }: { delivery: Schemas["Delivery"]; onClose: () => void }) {
  const { t } = useTranslation("workflows")
  const [key] = useState(() => crypto.randomUUID())
  const replay = useAct(() => call(client.POST("/api/v1/deliveries/{id}/replay", { params: { path: { id: d.id }, header: { "Idempotency-Key": key } } })), { stale: ["triggers", "executions"], done: t("replay.done"), quiet: true })
  return (
    <Sure title={t("replay.title")} verb={t("replay.verb")} act={() => replay.mutateAsync()} onClose={onClose}>
      <Text>{t("replay.text")}</Text>
    </Sure>
  )
}

function Brought({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation("workflows")
  const query = useQuery({ queryKey: ["triggers", "delivery", id], queryFn: ({ signal }) => call(client.GET("/api/v1/deliveries/{id}", { params: { path: { id } }, signal })) })
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title={t("deliveries.brought")} closeButtonProps={{ "aria-label": t("places:close") }}>
      <Shown query={query}>{(d) => <Data value={d} label={t("deliveries.brought")} depth={3} height={640} />}</Shown>
    </Drawer>
  )
}
