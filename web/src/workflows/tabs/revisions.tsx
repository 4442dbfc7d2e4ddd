import { Badge, Button, Group, SegmentedControl, Select, Stack, Table, Text } from "@mantine/core"
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { lazy, Suspense, useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { putWorkflow } from "@/api/definition"
import { useRole } from "@/api/me"
import { useSearch } from "@/api/search"
import { Difference } from "@/parts/difference"
import { Pages } from "@/parts/pages"
import { Loading, Shown } from "@/parts/states"
import { Sure } from "@/parts/sure"
import { When } from "@/parts/when"
import { readDefinition } from "../export"

const size = 20

// Both revisions are read once, and shown as texts or on the canvas.
async function readRevision(id: string, revision: number, signal?: AbortSignal): Promise<{ text: string; file: Record<string, unknown> }> {
  const [definition, { fileOf, yamlOf }] = await Promise.all([readDefinition(id, revision, signal), import("../definition")])
  return { text: yamlOf(definition), file: fileOf(definition) }
}

const CanvasDifference = lazy(() => import("../canvas_difference"))

/** Revisions lists what was saved and by whom, shows how two revisions differ, and brings an old one back as a new one. */
export default function Revisions({ id }: { id: string }) {
  const { t } = useTranslation("workflows")
  const { get, page, set } = useSearch()
  const mayWrite = useRole("editor")
  const [restoring, setRestoring] = useState<number>()
  const workflow = useQuery({ queryKey: ["workflows", id, "newest"], queryFn: ({ signal }) => readDefinition(id, undefined, signal) })
  const list = useQuery({
    queryKey: ["workflows", id, "revisions", page],
    queryFn: ({ signal }) => call(client.GET("/api/v1/workflows/{id}/revisions", { params: { path: { id }, query: { page, page_size: size } }, signal })),
    placeholderData: keepPreviousData,
  })
  const from = Number(get("from")) || 0
  const to = Number(get("to")) || 0
  return (
    <Shown query={workflow}>
      {({ metadata }) => (
        <Shown query={list}>
          {({ revisions, total_count }) => (
            <Stack gap="md" p="md">
              {from > 0 && to > 0 && <Compare id={id} from={from} to={to} newest={metadata.revision} onChange={set} />}
              <Table.ScrollContainer minWidth={560} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": t("revisions.label") } }}>
                <Table verticalSpacing={6} highlightOnHover>
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>{t("revisions.number")}</Table.Th>
                      <Table.Th>{t("revisions.saved")}</Table.Th>
                      <Table.Th>{t("revisions.by")}</Table.Th>
                      <Table.Th>{t("revisions.do")}</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {(revisions ?? []).map((r) => (
                      <Table.Tr key={r.revision}>
                        <Table.Td>
                          <Group gap={6} wrap="nowrap">
                            <Text span fw={600}>
                              {r.revision}
                            </Text>
                            {r.revision === metadata.revision && <Badge variant="default" tt="none">{t("revisions.newest")}</Badge>}
                            {r.revision === metadata.deployed_revision && (
                              <Badge color="green" variant="light" tt="none">
                                {t("revisions.deployed")}
                              </Badge>
                            )}
                          </Group>
                        </Table.Td>
                        <Table.Td>
                          <When at={r.created_time} />
                        </Table.Td>
                        <Table.Td>
                          <Saver revision={r} />
                        </Table.Td>
                        <Table.Td>
                          <Group gap="xs">
                            {r.revision > 1 && (
                              <Button size="compact-xs" variant="default" onClick={() => set({ from: r.revision - 1, to: r.revision, change: null })} aria-label={t("revisions.changesOf", { revision: r.revision })}>
                                {t("revisions.changes")}
                              </Button>
                            )}
                            {r.revision !== metadata.revision && (
                              <Button size="compact-xs" variant="default" onClick={() => set({ from: r.revision, to: metadata.revision, change: null })} aria-label={t("revisions.againstNewestOf", { revision: r.revision })}>
                                {t("revisions.againstNewest")}
                              </Button>
                            )}
                            {mayWrite && r.revision !== metadata.revision && (
                              <Button size="compact-xs" variant="default" onClick={() => setRestoring(r.revision)} aria-label={t("revisions.restoreOf", { revision: r.revision })}>
                                {t("revisions.restore")}
                              </Button>
                            )}
                          </Group>
                        </Table.Td>
                      </Table.Tr>
                    ))}
                  </Table.Tbody>
                </Table>
              </Table.ScrollContainer>
              <Pages page={page} size={size} total={total_count} onPage={(n) => set({ page: n === 1 ? null : n })} />
              {restoring !== undefined && <Restore id={id} revision={restoring} newest={metadata.revision} onClose={() => setRestoring(undefined)} />}
            </Stack>
          )}
        </Shown>
      )}
    </Shown>
  )
}

function Saver({ revision: r }: { revision: Schemas["Revision"] }) {
  const { t } = useTranslation("workflows")
  return (
    <>
      {r.created_by}
      {r.token_made_by && (
        <Text span c="dimmed" fz="sm">
          {" "}
          {t("revisions.tokenOf", { user: r.token_made_by })}
        </Text>
      )}
    </>
  )
}

function Compare({ id, from, to, newest, onChange }: { id: string; from: number; to: number; newest: number; onChange: (c: Record<string, string | number | null>) => void }) {
  const { t } = useTranslation("workflows")
  const numbers = Array.from({ length: Math.min(newest, 500) }, (_, i) => String(newest - i))
  const both = useQuery({
    queryKey: ["workflows", id, "difference", from, to],
    queryFn: ({ signal }) => Promise.all([readRevision(id, from, signal), readRevision(id, to, signal)]),
    staleTime: Infinity,
  })
  const { get } = useSearch()
  const canvas = get("as") === "canvas"
  return (
    <Stack gap="xs" component="section" aria-label={t("compare.label")}>
      <Group gap="sm" align="flex-end">
        <Select label={t("compare.from")} w={130} data={numbers} value={String(from)} onChange={(v) => v && onChange({ from: v })} allowDeselect={false} searchable />
        <Select label={t("compare.to")} w={130} data={numbers} value={String(to)} onChange={(v) => v && onChange({ to: v })} allowDeselect={false} searchable />
        <SegmentedControl
          aria-label={t("compare.how")}
          value={canvas ? "canvas" : "text"}
          onChange={(v) => onChange({ as: v === "canvas" ? v : null, change: null })}
          data={[
            { value: "text", label: t("compare.asText") },
            { value: "canvas", label: t("compare.onCanvas") },
          ]}
        />
        <Button variant="default" onClick={() => onChange({ from: null, to: null, as: null, change: null })}>
          {t("compare.close")}
        </Button>
      </Group>
      <Shown query={both}>
        {([before, after]) =>
          before.text === after.text ? (
            <Text c="dimmed">{t("compare.same")}</Text>
          ) : canvas ? (
            <Suspense fallback={<Loading />}>
              <CanvasDifference before={before.file} after={after.file} picked={get("change")} onPick={(change) => onChange({ change })} />
            </Suspense>
          ) : (
            <Difference before={before.text} after={after.text} language="yaml" beforeLabel={t("compare.revision", { revision: from })} afterLabel={t("compare.revision", { revision: to })} />
          )
        }
      </Shown>
    </Stack>
  )
}

function Restore({ id, revision, newest, onClose }: { id: string; revision: number; newest: number; onClose: () => void }) {
  const { t } = useTranslation("workflows")
  const restore = useAct(async () => putWorkflow(id, (await readRevision(id, revision)).text, newest), {
    stale: ["workflows"],
    done: (saved) => t("restore.done", { revision, now: saved.workflow.revision }),
    quiet: true,
  })
  return (
    <Sure title={t("restore.title", { revision })} verb={t("restore.verb")} act={() => restore.mutateAsync()} onClose={onClose}>
      <Text>{t("restore.text", { revision, next: newest + 1 })}</Text>
    </Sure>
  )
}
