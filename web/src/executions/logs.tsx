import { Anchor, Button, Select, Switch, Text } from "@mantine/core"
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react"
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useVirtualizer } from "@tanstack/react-virtual"
import { useEffect, useMemo, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { useLocation } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { valuesOf } from "@/api/values"
import { plain } from "@/parts/plain"
import { Empty, Shown } from "@/parts/states"
import { language } from "@/words"
import { useAddress } from "./addresses"
import page from "./one.module.css"
import classes from "./logs.module.css"

type Entry = Schemas["LogEntry"]
type Row = { group: string; name: string; lines: number; first: number } | Entry

const part = 1_000
const levels = valuesOf<Entry["level"]>({ DEBUG: 1, INFO: 1, WARN: 1, ERROR: 1 })
type Level = "" | Entry["level"]

const clock = (time: number) => new Intl.DateTimeFormat(language() === "zh" ? "zh-CN" : "en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(time)

/** rowsOf puts lines that follow each other and are of one activation under a heading that folds. */
function rowsOf(lines: readonly Entry[], folded: ReadonlySet<string>): Row[] {
  const rows: Row[] = []
  let head: Extract<Row, { group: string }> | undefined
  let of: string | undefined
  for (const line of lines) {
    const owner = line.activation_id ?? ""
    if (of !== owner || !head) {
      of = owner
      head = { group: `${owner}@${line.id}`, name: [line.activation_id ?? line.node_id, line.inner_step].filter(Boolean).join(" · "), lines: 0, first: line.id }
      rows.push(head)
    }
    head.lines++
    if (!folded.has(head.group)) rows.push(line)
  }
  return rows
}

type Read = { lines: Entry[]; dropped: number; more: boolean }
const noLines: Entry[] = []

// useLines reads the lines, each look going on behind the last line that was read: whenever the stream of the run tells something, when it was opened, since
// lines may have been written before that, and once more when the run has ended.
function useLines(id: string, level: Level, node: string, live: boolean, version: number, connected: boolean) {
  const queries = useQueryClient()
  const key = ["executions", id, "logs", level, node]
  const query = useQuery<Read>({
    queryKey: key,
    staleTime: Infinity,
    refetchInterval: (q) => (q.state.data?.more ? 20 : false),
    queryFn: async ({ signal }): Promise<Read> => {
      const known = queries.getQueryData<Read>(key)
      const after = known?.lines.at(-1)?.id
      const got = await call(client.GET("/api/v1/executions/{id}/logs", { params: { path: { id }, query: { limit: part, ...(after ? { after } : {}), ...(level ? { level } : {}), ...(node ? { node_id: node } : {}) } }, signal }))
      const fresh = got.lines ?? []
      if (known && fresh.length === 0) return { ...known, dropped: got.dropped ?? known.dropped, more: false }
      return { lines: [...(known?.lines ?? []), ...fresh], dropped: got.dropped ?? 0, more: fresh.length >= part }
    },
  })
  const { refetch } = query
  const was = useRef({ live, connected })
  useEffect(() => {
    if ((was.current.live && !live) || (!was.current.connected && connected)) void refetch()
    was.current = { live, connected }
  }, [live, connected, refetch])
  // The stream tells more often than anybody reads lines.
  const told = useRef(version)
  const soon = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => {
    if (told.current === version) return
    told.current = version
    soon.current ??= setTimeout(() => {
      soon.current = undefined
      void refetch()
    }, 300)
  }, [version, refetch])
  useEffect(() => () => clearTimeout(soon.current), [])
  return query
}

/** Logs shows the lines that nodes wrote, as they come. Each line has an address: ?tab=logs&line=17. */
export function Logs({ id, live, version, connected }: { id: string; live: boolean; version: number; connected: boolean }) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const level = (params.get("level") ?? "") as Level
  const node = params.get("node") ?? ""
  const [end, setEnd] = useState(true)
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set())
  const query = useLines(id, level, node, live, version, connected)
  const lines = query.data?.lines ?? noLines
  const dropped = query.data?.dropped ?? 0
  return (
    <div className={page.main} style={{ height: "100%" }}>
      <div className={page.tools}>
        <Select size="xs" w={150} clearable placeholder={t("logs.level")} aria-label={t("logs.level")} data={levels.map((l) => ({ value: l, label: t(`logs.levels.${l}`) }))} value={level || null} onChange={(v) => change({ level: v ?? undefined })} />
        {node && (
          <Button size="compact-xs" variant="default" onClick={() => change({ node: undefined })}>
            {t("logs.allNodes", { node })}
          </Button>
        )}
        <Switch size="xs" label={t("logs.end")} checked={end} onChange={(e) => setEnd(e.currentTarget.checked)} />
        <span className={page.count} role="status">
          {t("logs.count", { count: lines.length })}
          {dropped > 0 && ` · ${t("logs.dropped", { count: dropped })}`}
        </span>
      </div>
      <Shown query={query} what={t("loading.logs")}>
        {() =>
          lines.length === 0 ? (
            <Empty title={level || node ? t("logs.none") : t("logs.empty")}>
              <Text c="dimmed">{live ? t("logs.emptyLive") : t("logs.emptyText")}</Text>
            </Empty>
          ) : (
            <Lines
              lines={lines}
              folded={folded}
              end={end && live}
              onFold={(group) =>
                setFolded((now) => {
                  const next = new Set(now)
                  if (!next.delete(group)) next.add(group)
                  return next
                })
              }
            />
          )
        }
      </Shown>
    </div>
  )
}

function Lines({ lines, folded, end, onFold }: { lines: readonly Entry[]; folded: ReadonlySet<string>; end: boolean; onFold: (group: string) => void }) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const here = useLocation()
  const chosen = Number(params.get("line") ?? 0)
  const rows = useMemo(() => rowsOf(lines, folded), [lines, folded])
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: (i) => ("group" in rows[i]! ? 26 : 22), overscan: 20, getItemKey: (i) => ("group" in rows[i]! ? (rows[i] as { group: string }).group : (rows[i] as Entry).id) })
  const came = useRef(false)
  useEffect(() => {
    if (came.current || !chosen) return
    const i = rows.findIndex((r) => !("group" in r) && r.id === chosen)
    if (i < 0) return
    came.current = true
    virtual.scrollToIndex(i, { align: "center" })
  }, [chosen, rows, virtual])
  useEffect(() => {
    if (end && !chosen) virtual.scrollToIndex(rows.length - 1)
  }, [rows.length, end, chosen, virtual])
  const address = (line: number) => {
    const next = new URLSearchParams(here.search)
    next.set("line", String(line))
    return `?${next}`
  }
  return (
    <div ref={box} className={page.scroll} role="log" aria-label={t("tab.logs")} tabIndex={0}>
      <div className={page.virtual} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index]!
          const place = { transform: `translateY(${item.start}px)` }
          if ("group" in row)
            return (
              <button key={item.key} type="button" ref={virtual.measureElement} data-index={item.index} className={classes.group} style={place} aria-expanded={!folded.has(row.group)} onClick={() => onFold(row.group)}>
                {folded.has(row.group) ? <IconChevronRight size={14} /> : <IconChevronDown size={14} />}
                <bdi>{row.name || t("logs.run")}</bdi>
                <Text span fz="xs" c="dimmed">
                  {t("logs.count", { count: row.lines })}
                </Text>
              </button>
            )
          return (
            <div key={item.key} ref={virtual.measureElement} data-index={item.index} className={`${classes.line} ${row.id === chosen ? classes.chosen : ""}`} style={place}>
              <Anchor
                className={classes.number}
                href={address(row.id)}
                fz="xs"
                aria-label={t("logs.address", { n: row.id })}
                onClick={(e) => {
                  e.preventDefault()
                  change({ line: String(row.id) })
                }}
              >
                {row.id}
              </Anchor>
              <time className={classes.time} dateTime={new Date(row.timestamp).toISOString()}>
                {clock(row.timestamp)}
              </time>
              <span className={classes[row.level]}>{row.level}</span>
              <span className={classes.message}>
                {plain(row.message)}
                {row.context !== undefined && row.context !== null && Object.keys(row.context as object).length > 0 && <Text span c="dimmed" fz="xs" ff="monospace">{` ${plain(JSON.stringify(row.context))}`}</Text>}
              </span>
            </div>
          )
        })}
      </div>
    </div>
  )
}
