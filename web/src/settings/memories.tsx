import { Button, Drawer, Group, Paper, Stack, Text } from "@mantine/core"
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { useSearch } from "@/api/search"
import { Data } from "@/parts/data"
import { Pages } from "@/parts/pages"
import { Empty, Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { When } from "@/parts/when"
import { Row, Rows } from "./rows"
import { Topic } from "./topic"

type Memory = Schemas["Memory"]
const size = 20

/** Memories shows what is remembered, and forgets single records or all of it. */
export default function Memories() {
  const { t } = useTranslation("settings")
  const { get, page, set } = useSearch()
  const [forgetting, setForgetting] = useState<Memory>()
  const query = useQuery({ queryKey: ["memories", "list", page], queryFn: ({ signal }) => call(client.GET("/api/v1/memory", { params: { query: { page, page_size: size } }, signal })), placeholderData: keepPreviousData })
  const opened = get("memory")
  return (
    <Topic name="memories">
      <Shown query={query}>
        {({ memories, total_count }) =>
          total_count === 0 ? (
            <Empty title={t("memories.none")}>
              <Text c="dimmed">{t("memories.how")}</Text>
            </Empty>
          ) : (
            <>
              <Rows label={t("memories.title")} head={[t("memories.kind"), t("memories.of"), t("memories.whose"), t("memories.records"), t("memories.changed"), t("do")]}>
                {(memories ?? []).map((m) => (
                  <Row
                    key={m.id}
                    cells={[
                      m.kind,
                      [m.workflow_id, m.node_id, m.session_id && t("memories.session", { id: m.session_id }), m.part].filter(Boolean).join(" · "),
                      m.user_id,
                      `${m.records.toLocaleString()} · ${t("memories.bytes", { n: m.bytes.toLocaleString() })}`,
                      <When key="w" at={m.updated_time} />,
                      <Group key="a" gap="xs" wrap="nowrap">
                        <Button size="compact-xs" variant="default" onClick={() => set({ memory: m.id, records: null })}>
                          {t("look")}
                        </Button>
                        <Button size="compact-xs" variant="default" onClick={() => setForgetting(m)}>
                          {t("memories.forget")}
                        </Button>
                      </Group>,
                    ]}
                  />
                ))}
              </Rows>
              <Pages page={page} size={size} total={total_count} onPage={(n) => set({ page: n === 1 ? null : n })} />
            </>
          )
        }
      </Shown>
      {opened && <Records id={opened} onClose={() => set({ memory: null, records: null })} />}
      {forgetting && <Forget memory={forgetting} onClose={() => setForgetting(undefined)} />}
    </Topic>
  )
}

function Records({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const { get, set } = useSearch()
  const page = Math.max(1, Number(get("records")) || 1)
  const query = useQuery({ queryKey: ["memories", id, "records", page], queryFn: ({ signal }) => call(client.GET("/api/v1/memory/{id}/records", { params: { path: { id }, query: { page, page_size: size } }, signal })), placeholderData: keepPreviousData })
  const forget = useAct((r: Schemas["MemoryRecord"]) => call(client.DELETE("/api/v1/memory/{id}/records/{sort}/{record}", { params: { path: { id, sort: r.sort, record: r.id } } })), { stale: ["memories"], done: t("memories.forgotten") })
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title={t("memories.kept")} closeButtonProps={{ "aria-label": t("places:close") }}>
      <Shown query={query}>
        {({ records, total_count }) => (
          <Stack gap="sm">
            {total_count === 0 && <Text c="dimmed">{t("memories.empty")}</Text>}
            {(records ?? []).map((r) => (
              <Paper key={`${r.sort} ${r.id}`} withBorder p="xs">
                <Group justify="space-between" pb={4}>
                  <Text fz="sm" c="dimmed">
                    {r.sort} · <When at={r.time ?? r.created_time} />
                  </Text>
                  <Button size="compact-xs" variant="default" loading={forget.isPending && forget.variables === r} onClick={() => forget.mutate(r)}>
                    {t("memories.forgetOne")}
                  </Button>
                </Group>
                <Data value={r.body} label={r.sort} depth={2} height={260} />
              </Paper>
            ))}
            <Pages page={page} size={size} total={total_count} onPage={(n) => set({ records: n === 1 ? null : n })} />
          </Stack>
        )}
      </Shown>
    </Drawer>
  )
}

function Forget({ memory: m, onClose }: { memory: Memory; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const forget = useAct(() => call(client.DELETE("/api/v1/memory/{id}", { params: { path: { id: m.id } } })), { stale: ["memories"], done: t("memories.allForgotten"), quiet: true })
  return (
    <Sure title={t("memories.forgetTitle")} verb={t("memories.forget")} danger act={() => forget.mutateAsync()} onClose={onClose}>
      <Text>{t("memories.forgetText", { count: m.records })}</Text>
    </Sure>
  )
}
