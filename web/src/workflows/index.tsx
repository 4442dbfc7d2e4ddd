import { Anchor, Badge, Button, Group, Portal, Select, Table, TagsInput, Text, TextInput, VisuallyHidden } from "@mantine/core"
import { useDebouncedCallback } from "@mantine/hooks"
import { IconFileImport, IconPlus, IconSearch, IconTemplate } from "@tabler/icons-react"
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { useRole } from "@/api/me"
import { useSearch } from "@/api/search"
import { valuesOf } from "@/api/values"
import { Page } from "@/parts/page"
import { Pages } from "@/parts/pages"
import { Empty, Shown } from "@/parts/states"
import { lasted, When } from "@/parts/when"
import { ImportWorkflow } from "./import"
import classes from "./import.module.css"
import { WorkflowMenu } from "./menu"
import { DeploymentMark } from "./status"
import { Strip, useLastRuns } from "./strip"
import { Templates } from "./templates"
import { useDropped } from "./use_dropped"

type Status = Schemas["WorkflowMetadata"]["deployment_status"]
const statuses = valuesOf<Status>({ draft: 1, pending: 1, deployed: 1, failed: 1, undeployed: 1 })
const size = 20

/** The list of workflows: whether each is deployed, how its last runs went, and what can be done with it. */
export function Component() {
  const { t } = useTranslation("workflows")
  const { get, page, set } = useSearch()
  const mayWrite = useRole("editor")
  const [words, setWords] = useState(get("q"))
  const [importing, setImporting] = useState<File[]>()
  const [choosing, setChoosing] = useState(false)
  const over = useDropped(mayWrite, setImporting)
  const find = useDebouncedCallback((q: string) => set({ q, page: null }, { replace: true }), 200)
  const tags = get("tags") ? get("tags").split(",") : []
  const status = statuses.find((s) => s === get("status"))
  const q = get("q")
  const query = useQuery({
    queryKey: ["workflows", "list", q, tags.join(), status ?? "", page],
    queryFn: ({ signal }) => call(client.GET("/api/v1/workflows", { params: { query: { page, page_size: size, ...(q ? { q } : {}), ...(tags.length ? { tags } : {}), ...(status ? { deployment_status: status } : {}) } }, signal })),
    placeholderData: keepPreviousData,
  })
  const filtered = q !== "" || tags.length > 0 || status !== undefined
  return (
    <Page
      title={t("title")}
      actions={
        mayWrite && (
          <>
            <Button variant="default" size="xs" leftSection={<IconFileImport size={16} />} onClick={() => setImporting([])}>
              {t("import.open")}
            </Button>
            <Button variant="default" size="xs" leftSection={<IconTemplate size={16} />} onClick={() => setChoosing(true)}>
              {t("templates.open")}
            </Button>
            <Button size="xs" leftSection={<IconPlus size={16} />} component={Link} to="/workflows/new?blank">
              {t("new")}
            </Button>
          </>
        )
      }
    >
      <Group gap="sm" align="flex-end" role="search">
        <TextInput
          aria-label={t("find")}
          placeholder={t("find")}
          leftSection={<IconSearch size={16} />}
          w={{ base: "100%", sm: 260 }}
          value={words}
          onChange={(e) => {
            setWords(e.currentTarget.value)
            find(e.currentTarget.value.trim())
          }}
        />
        <TagsInput aria-label={t("tags")} placeholder={tags.length ? "" : t("tags")} w={{ base: "100%", sm: 220 }} value={tags} onChange={(next) => set({ tags: next.join(","), page: null })} clearable clearButtonProps={{ "aria-label": t("clear") }} />
        <Select
          aria-label={t("status.label")}
          placeholder={t("status.any")}
          w={{ base: "100%", sm: 200 }}
          value={status ?? null}
          onChange={(next) => set({ status: next, page: null })}
          data={statuses.map((s) => ({ value: s, label: t(`status.${s}`) }))}
          clearable
          clearButtonProps={{ "aria-label": t("clear") }}
        />
      </Group>
      <Shown query={query}>
        {({ workflows, total_count }) =>
          total_count === 0 ? (
            filtered ? (
              <Empty title={t("empty.filtered")}>
                <Button
                  size="xs"
                  variant="default"
                  onClick={() => {
                    setWords("")
                    set({ q: null, tags: null, status: null, page: null })
                  }}
                >
                  {t("empty.all")}
                </Button>
              </Empty>
            ) : (
              <Empty title={t("empty.title")}>
                <Text c="dimmed">{mayWrite ? t("empty.text") : t("empty.mayNot")}</Text>
                <Anchor component={Link} to="/">
                  {t("empty.examples")}
                </Anchor>
              </Empty>
            )
          ) : (
            <>
              <List workflows={workflows ?? []} onTag={(tag) => set({ tags: [...new Set([...tags, tag])].join(","), page: null })} />
              <Pages page={page} size={size} total={total_count} onPage={(n) => set({ page: n === 1 ? null : n })} />
            </>
          )
        }
      </Shown>
      {choosing && <Templates onClose={() => setChoosing(false)} />}
      {importing && <ImportWorkflow dropped={importing} onClose={() => setImporting(undefined)} />}
      {over && (
        <Portal>
          <Text className={classes.over} fw={600} role="status">
            {t("import.letGo")}
          </Text>
        </Portal>
      )}
    </Page>
  )
}

function List({ workflows, onTag }: { workflows: Schemas["WorkflowMetadata"][]; onTag: (tag: string) => void }) {
  const { t } = useTranslation("workflows")
  const runs = useLastRuns(workflows.map((w) => w.id))
  return (
    <Table.ScrollContainer minWidth={820} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": t("title") } }}>
      <Table verticalSpacing={6} highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t("column.name")}</Table.Th>
            <Table.Th>{t("column.status")}</Table.Th>
            <Table.Th>{t("column.last")}</Table.Th>
            <Table.Th ta="right">{t("column.runs")}</Table.Th>
            <Table.Th ta="right">{t("column.took")}</Table.Th>
            <Table.Th>{t("column.saved")}</Table.Th>
            <Table.Th>
              <VisuallyHidden>{t("column.actions")}</VisuallyHidden>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {workflows.map((w) => (
            <Table.Tr key={w.id}>
              <Table.Td maw={380}>
                <Group gap={6}>
                  <Anchor component={Link} to={`/workflows/${encodeURIComponent(w.id)}`} fw={600}>
                    {w.name || w.id}
                  </Anchor>
                  {(w.tags ?? []).map((tag) => (
                    <Badge key={tag} component="button" type="button" size="sm" variant="default" tt="none" onClick={() => onTag(tag)} aria-label={t("onlyTag", { tag })} style={{ cursor: "pointer" }}>
                      {tag}
                    </Badge>
                  ))}
                </Group>
                {w.description && (
                  <Text fz="sm" c="dimmed" truncate title={w.description}>
                    {w.description}
                  </Text>
                )}
              </Table.Td>
              <Table.Td>
                <DeploymentMark workflow={w} />
              </Table.Td>
              <Table.Td>
                {runs && <Strip runs={runs[w.id] ?? []} />}
              </Table.Td>
              <Table.Td ta="right">{w.statistics.total_runs.toLocaleString()}</Table.Td>
              <Table.Td ta="right">{w.statistics.total_runs > 0 ? lasted(w.statistics.average_duration_ms) : "–"}</Table.Td>
              <Table.Td>
                <When at={w.updated_time} />
              </Table.Td>
              <Table.Td>
                <WorkflowMenu workflow={w} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}
