import { Badge, Button, Group, Select, Text, TextInput } from "@mantine/core"
import { useDebouncedCallback } from "@mantine/hooks"
import { IconDownload } from "@tabler/icons-react"
import { useInfiniteQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, Failure, type Schemas } from "@/api/client"
import { useSearch } from "@/api/search"
import { valuesOf } from "@/api/values"
import { Empty, Shown } from "@/parts/states"
import { When } from "@/parts/when"
import { Row, Rows } from "./rows"
import { Topic, useMay } from "./topic"
import classes from "./settings.module.css"

const outcomes = valuesOf<Schemas["AuditEntry"]["outcome"]>({ done: 1, refused: 1 })
const filters = ["user_id", "action", "object", "object_id"] as const
const size = 50

// Dates of the address are days in the reader's zone; the API takes Unix milliseconds.
const beginOf = (day: string) => new Date(`${day}T00:00:00`).getTime()
const endOf = (day: string) => new Date(`${day}T23:59:59.999`).getTime()

/** Audit shows who did what, when and by which means, and hands all of it out as a file. */
export default function Audit() {
  const { t } = useTranslation("settings")
  const { get, set } = useSearch()
  const may = useMay("audit")
  const outcome = outcomes.find((o) => o === get("outcome"))
  const wanted = {
    ...Object.fromEntries(filters.filter((f) => get(f)).map((f) => [f, get(f)])),
    ...(outcome ? { outcome } : {}),
    ...(get("since") ? { since: beginOf(get("since")) } : {}),
    ...(get("until") ? { until: endOf(get("until")) } : {}),
  }
  const query = useInfiniteQuery({
    queryKey: ["audit", wanted],
    queryFn: ({ signal, pageParam }) => call(client.GET("/api/v1/audit", { params: { query: { ...wanted, page_size: size, ...(pageParam ? { before: pageParam } : {}) } }, signal })),
    initialPageParam: 0,
    getNextPageParam: (last) => last.next_before,
    enabled: may?.read,
  })
  const save = useAct(
    async () => {
      const url = new URL("/api/v1/audit/export", location.origin)
      for (const [k, v] of Object.entries(wanted)) url.searchParams.set(k, String(v))
      const answer = await fetch(url)
      if (!answer.ok) throw new Failure(answer.status, "", await answer.text())
      const { download } = await import("@/workflows/export")
      download("audit.jsonl", await answer.text(), "application/jsonl")
    },
    { stale: ["audit"] },
  )
  return (
    <Topic
      name="audit"
      actions={
        <Button size="xs" variant="default" leftSection={<IconDownload size={16} />} loading={save.isPending} onClick={() => save.mutate()}>
          {t("audit.export")}
        </Button>
      }
    >
      <Group gap="sm" role="search">
        {filters.map((f) => (
          <Filter key={f} name={f} />
        ))}
        <Select aria-label={t("audit.filter.outcome")} placeholder={t("audit.filter.outcome")} w={150} value={outcome ?? null} onChange={(o) => set({ outcome: o })} data={outcomes.map((o) => ({ value: o, label: t(`audit.${o}`) }))} clearable clearButtonProps={{ "aria-label": t("places:form.clear") }} />
        <TextInput type="date" aria-label={t("audit.filter.since")} value={get("since")} onChange={(e) => set({ since: e.currentTarget.value })} />
        <TextInput type="date" aria-label={t("audit.filter.until")} value={get("until")} onChange={(e) => set({ until: e.currentTarget.value })} />
      </Group>
      <Shown query={query}>
        {({ pages }) => {
          const entries = pages.flatMap((p) => p.entries ?? [])
          if (entries.length === 0) return <Empty title={t("audit.none")} />
          return (
            <>
              <Rows label={t("audit.title")} head={[t("audit.when"), t("audit.who"), t("audit.what"), t("audit.on"), t("audit.detail"), t("audit.from")]} width={900}>
                {entries.map((e) => (
                  <Row key={e.seq} cells={[<When key="w" at={e.time} />, <Who key="u" entry={e} />, <What key="a" entry={e} />, e.object_id ?? "–", <Detail key="d" detail={e.detail} />, <span key="f" className={classes.short}>{e.address ?? "–"}</span>]} />
                ))}
              </Rows>
              {query.hasNextPage && (
                <Button variant="default" w="fit-content" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                  {t("audit.more")}
                </Button>
              )}
            </>
          )
        }}
      </Shown>
    </Topic>
  )
}

function Filter({ name }: { name: (typeof filters)[number] }) {
  const { t } = useTranslation("settings")
  const { get, set } = useSearch()
  const [text, setText] = useState(get(name))
  const find = useDebouncedCallback((v: string) => set({ [name]: v }, { replace: true }), 300)
  return (
    <TextInput
      w={160}
      aria-label={t(`audit.filter.${name}`)}
      placeholder={t(`audit.filter.${name}`)}
      value={text}
      onChange={(e) => {
        setText(e.currentTarget.value)
        find(e.currentTarget.value.trim())
      }}
    />
  )
}

function Who({ entry: e }: { entry: Schemas["AuditEntry"] }) {
  const { t } = useTranslation("settings")
  return (
    <>
      {e.user_id || t("audit.nobody")}
      {e.means?.kind && (
        <Text fz="xs" c="dimmed">
          {t(`audit.means.${e.means.kind}`)}
          {e.means.token_made_by && e.means.token_made_by !== e.user_id ? ` · ${t("audit.tokenOf", { user: e.means.token_made_by })}` : ""}
        </Text>
      )}
    </>
  )
}

function What({ entry: e }: { entry: Schemas["AuditEntry"] }) {
  const { t } = useTranslation("settings")
  return (
    <Group gap={6} wrap="nowrap">
      <code className={classes.short}>{e.action}</code>
      {e.outcome === "refused" && (
        <Badge color="red" variant="light" tt="none">
          {t("audit.refused")}
        </Badge>
      )}
    </Group>
  )
}

function Detail({ detail }: { detail: unknown }) {
  if (detail === undefined || detail === null) return <>–</>
  const text = JSON.stringify(detail)
  return (
    <Text fz="xs" ff="monospace" lineClamp={2} title={text} maw={420}>
      {text}
    </Text>
  )
}
