import { ActionIcon, Button, Text, TextInput, Tooltip } from "@mantine/core"
import { IconChevronRight, IconCopy, IconFold, IconRoute, IconSearch, IconTextPlus, IconArrowsMaximize, IconChevronDown, IconChevronUp } from "@tabler/icons-react"
import { useQueryClient } from "@tanstack/react-query"
import { useVirtualizer } from "@tanstack/react-virtual"
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useId, useMemo, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { call, client } from "@/api/client"
import { useNotice } from "@/shell/notices"
import { carryField, type Field, insertField } from "./field"
import { plain } from "./plain"
import { keyOf, type Path, pathText, type Row, rowsOf, search, searchLimit, sizeText, wayTo } from "./data_rows"
import classes from "./data.module.css"

export { type Path, pathText } from "./data_rows"

type Props = {
  value: unknown
  /** The execution that large values are read from: {"$blob": hash, "size": bytes}. Without it they are only named. */
  execution?: string
  /** Called when somebody picks a value, to show where it came from. */
  onPick?: (path: Path, value: unknown) => void
  /** The path that is marked as picked. */
  picked?: Path
  /** What the tree is of, for screen readers. */
  label?: string
  /** Height of the tree at most, in pixels; it is smaller when it has less to show. */
  height?: number
  /** How many levels are open at first. */
  depth?: number
  /** How a setting reads a value; such a value can be dragged there, or inserted by its button or the key i. */
  fieldOf?: (path: Path) => Field | undefined
  /** Stands before the search, such as a title. */
  title?: ReactNode
}

const rowHeight = 24
const cut = 400

/**
 * Data shows a JSON value as a tree: fold, search, copy a value or its path. Only the lines in view are drawn, so 5 MB do not stop the page, and
 * everything is text, whatever it holds.
 */
export function Data({ value, execution, onPick, picked, label, height = 420, depth = 2, fieldOf, title }: Props) {
  const { t } = useTranslation("data")
  const queries = useQueryClient()
  const say = useNotice()
  const id = useId()
  const [touched, setTouched] = useState<ReadonlyMap<string, boolean>>(new Map())
  const [level, setLevel] = useState(depth)
  const [read, setRead] = useState<ReadonlyMap<string, unknown>>(new Map())
  const [reading, setReading] = useState<ReadonlyMap<string, string | true>>(new Map())
  const [at, setAt] = useState(0)
  const rows = useMemo(() => rowsOf(value, { depth: level, touched }, read), [value, level, touched, read])
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => rowHeight, overscan: 12 })
  const found = useSearch(value, read)
  const hit = found.hits[found.at]
  const hitKey = hit && keyOf(hit)

  const fold = useCallback((keys: string[], open: boolean) => {
    setTouched((now) => {
      const next = new Map(now)
      for (const key of keys) next.set(key, open)
      return next
    })
  }, [])

  // A hit is unfolded, then scrolled to.
  useEffect(() => {
    if (hit) fold(wayTo(value, hit, read), true)
  }, [hit, value, read, fold])
  useEffect(() => {
    if (!hitKey) return
    const index = rows.findIndex((r) => r.key === hitKey)
    if (index < 0) return
    setAt(index)
    virtual.scrollToIndex(index, { align: "center" })
  }, [hitKey, rows, virtual])

  const fetchLarge = async (hash: string) => {
    if (!execution) return
    setReading((now) => new Map(now).set(hash, true))
    try {
      const got = await queries.fetchQuery({
        queryKey: ["executions", execution, "values", hash],
        staleTime: Infinity,
        retry: false,
        queryFn: ({ signal }) => call(client.GET("/api/v1/executions/{id}/values/{hash}", { params: { path: { id: execution, hash } }, signal })),
      })
      setRead((now) => new Map(now).set(hash, got))
      setReading((now) => new Map([...now].filter(([h]) => h !== hash)))
    } catch (error) {
      setReading((now) => new Map(now).set(hash, error instanceof Error ? error.message : String(error)))
    }
  }
  const copy = (text: string, what: string) =>
    void navigator.clipboard.writeText(text).then(
      () => say(t("copied", { what })),
      () => say(t("notCopied"), { tone: "bad" }),
    )
  const insert = (row: Row) => {
    const field = row.range ? undefined : fieldOf?.(row.path)
    if (field && !insertField(field)) say(t("noPlace"), { tone: "bad" })
  }
  const act = (row: Row) => {
    if (row.children) fold([row.key], !row.open)
    else if (row.large?.hash) void fetchLarge(row.large.hash)
    if (!row.range) onPick?.(row.path, row.value)
  }
  const move = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to))
    setAt(next)
    virtual.scrollToIndex(next)
  }
  const keys = (e: KeyboardEvent) => {
    const row = rows[at]
    if (!row || e.target !== e.currentTarget) return
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 200) / rowHeight) - 1)
    if (e.key === "ArrowDown") move(at + 1)
    else if (e.key === "ArrowUp") move(at - 1)
    else if (e.key === "PageDown") move(at + page)
    else if (e.key === "PageUp") move(at - page)
    else if (e.key === "Home") move(0)
    else if (e.key === "End") move(rows.length - 1)
    else if (e.key === "ArrowRight") {
      if (row.children && !row.open) fold([row.key], true)
      else if (row.open) move(at + 1)
    } else if (e.key === "ArrowLeft") {
      if (row.open) fold([row.key], false)
      else move(rows.findLastIndex((r, i) => i < at && r.level < row.level))
    } else if (e.key === "Enter" || e.key === " ") act(row)
    else if (e.key === "i" && fieldOf && !e.metaKey && !e.ctrlKey) insert(row)
    else if (e.key === "c" && (e.metaKey || e.ctrlKey) && !getSelection()?.toString()) copy(textOf(row), pathText(row.path) || t("top"))
    else return
    e.preventDefault()
  }

  const chosen = rows[at]
  const long = chosen && !chosen.range && typeof chosen.value === "string" && (chosen.value.length > 60 || chosen.value.includes("\n")) ? chosen.value : undefined
  if (value === undefined)
    return (
      <Text c="dimmed" fz="sm">
        {t("nothing")}
      </Text>
    )
  return (
    <div className={classes.frame}>
      <div className={classes.tools}>
        {title}
        <TextInput
          size="xs"
          className={classes.search}
          leftSection={<IconSearch size={14} />}
          placeholder={t("search")}
          aria-label={t("search")}
          value={found.text}
          onChange={(e) => found.setText(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key === "Enter") found.go(e.shiftKey ? -1 : 1)
          }}
        />
        {found.text && (
          <>
            <span className={classes.found} role="status">
              {found.hits.length === 0 ? (found.busy ? "…" : t("foundNothing")) : found.hits.length >= searchLimit ? t("foundMany", { at: found.at + 1, count: found.hits.length }) : t("found", { at: found.at + 1, count: found.hits.length })}
            </span>
            <Small label={t("previous")} onClick={() => found.go(-1)} icon={<IconChevronUp size={14} />} />
            <Small label={t("next")} onClick={() => found.go(1)} icon={<IconChevronDown size={14} />} />
          </>
        )}
        <Small
          label={t("openAll")}
          icon={<IconArrowsMaximize size={14} />}
          onClick={() => {
            setTouched(new Map())
            setLevel((n) => n + 2)
          }}
        />
        <Small
          label={t("closeAll")}
          icon={<IconFold size={14} />}
          onClick={() => {
            setTouched(new Map())
            setLevel(1)
            move(0)
          }}
        />
        <Small label={t("copyAll")} icon={<IconCopy size={14} />} onClick={() => copy(JSON.stringify(value, null, 2), t("top"))} />
      </div>
      <div
        ref={box}
        className={classes.tree}
        style={{ height: Math.min(height, rows.length * rowHeight + 2) }}
        role="tree"
        aria-label={label ?? t("label")}
        tabIndex={0}
        aria-activedescendant={chosen ? `${id}-${at}` : undefined}
        onKeyDown={keys}
      >
        <div className={classes.inner} role="presentation" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index]!
            const marked = picked && !row.range && keyOf(picked) === row.key
            return (
              <div
                key={row.key}
                id={`${id}-${item.index}`}
                role="treeitem"
                aria-level={row.level + 1}
                aria-posinset={row.position}
                aria-setsize={row.siblings}
                aria-expanded={row.children ? row.open : undefined}
                aria-selected={item.index === at}
                className={`${classes.row} ${marked ? classes.picked : ""} ${row.key === hitKey ? classes.hit : ""}`}
                style={{ transform: `translateY(${item.start}px)`, paddingLeft: 4 + row.level * 14 }}
                draggable={!!fieldOf && !row.range}
                onDragStart={(e) => {
                  const field = fieldOf?.(row.path)
                  if (field) carryField(e.dataTransfer, field)
                }}
                onClick={() => {
                  setAt(item.index)
                  act(row)
                }}
              >
                <span className={`${classes.fold} ${row.open ? classes.open : ""}`}>{row.children ? <IconChevronRight size={13} /> : null}</span>
                <Name row={row} />
                <Value row={row} reading={row.large?.hash ? reading.get(row.large.hash) : undefined} canRead={!!execution} />
                {!row.range && (
                  <span className={classes.acts}>
                    {fieldOf && <Small label={t("insert")} icon={<IconTextPlus size={13} />} quiet onClick={() => insert(row)} />}
                    <Small label={t("copyValue")} icon={<IconCopy size={13} />} quiet onClick={() => copy(textOf(row), pathText(row.path) || t("top"))} />
                    {row.path.length > 0 && <Small label={t("copyPath")} icon={<IconRoute size={13} />} quiet onClick={() => copy(pathText(row.path), pathText(row.path))} />}
                  </span>
                )}
              </div>
            )
          })}
        </div>
      </div>
      {long !== undefined && <Whole key={chosen!.key} text={long} label={t("whole", { path: pathText(chosen!.path) || t("top") })} />}
    </div>
  )
}

const textOf = (row: Row) => (typeof row.value === "string" ? row.value : JSON.stringify(row.value, null, 2))

function Small({ label, icon, onClick, quiet }: { label: string; icon: ReactNode; onClick: () => void; quiet?: boolean }) {
  return (
    <Tooltip label={label} openDelay={300}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size={quiet ? 20 : 26}
        aria-label={label}
        tabIndex={quiet ? -1 : undefined}
        onClick={(e) => {
          e.stopPropagation()
          onClick()
        }}
      >
        {icon}
      </ActionIcon>
    </Tooltip>
  )
}

// Name is the name of a field, the position in a list, or a range of them.
function Name({ row }: { row: Row }) {
  const name = row.path[row.path.length - 1]
  if (row.range) return <span className={`${classes.name} ${classes.index}`}>{`${row.range.from} … ${row.range.to - 1}`}</span>
  if (name === undefined) return null
  return (
    <span className={typeof name === "number" ? `${classes.name} ${classes.index}` : classes.name} title={String(name)}>
      <bdi>{typeof name === "string" ? plain(name) : name}</bdi>
      {": "}
    </span>
  )
}

function Value({ row, reading, canRead }: { row: Row; reading?: string | true; canRead: boolean }) {
  const { t } = useTranslation("data")
  const v = row.value
  if (row.large) {
    const size = sizeText(row.large.size)
    const text = reading === true ? t("reading", { size }) : reading ? t("notRead", { why: reading }) : row.large.hash && canRead ? t("read", { size }) : t("omitted", { size })
    return <span className={`${classes.value} ${classes.count}`}>{text}</span>
  }
  if (row.range) return <span className={classes.value} />
  if (Array.isArray(v)) return <span className={`${classes.value} ${classes.count}`}>{`[ ${t("items", { count: v.length })} ]`}</span>
  if (typeof v === "object" && v !== null) return <span className={`${classes.value} ${classes.count}`}>{`{ ${t("fields", { count: row.children ?? 0 })} }`}</span>
  const kind = typeof v === "string" ? classes.string : typeof v === "number" ? classes.number : classes.word
  const text = typeof v === "string" ? plain(JSON.stringify(v.length > cut ? v.slice(0, cut) + "…" : v)) : String(v)
  return (
    <span className={`${classes.value} ${kind}`}>
      <bdi>{text}</bdi>
    </span>
  )
}

const firstPart = 20_000

// Whole is a long text as it is, in parts: a text of megabytes is not laid out at once.
function Whole({ text, label }: { text: string; label: string }) {
  const { t } = useTranslation("data")
  const [upTo, setUpTo] = useState(firstPart)
  return (
    <div className={classes.whole} role="region" aria-label={label} tabIndex={0}>
      {plain(text.slice(0, upTo))}
      {text.length > upTo && (
        <Button variant="subtle" size="compact-xs" onClick={() => setUpTo((n) => n + 10 * firstPart)}>
          {t("more", { count: text.length - upTo })}
        </Button>
      )}
    </div>
  )
}

// useSearch keeps the text that is searched for, its hits, and which of them is looked at.
function useSearch(value: unknown, read: ReadonlyMap<string, unknown>) {
  const [text, setText] = useState("")
  const [hits, setHits] = useState<Path[]>([])
  const [at, setAt] = useState(0)
  const [busy, setBusy] = useState(false)
  useEffect(() => {
    const stop = new AbortController()
    setAt(0)
    if (text.trim() === "") {
      setHits([])
      return
    }
    setBusy(true)
    const timer = setTimeout(() => {
      void search(value, text.trim(), read, stop.signal).then((got) => {
        if (stop.signal.aborted) return
        setHits(got)
        setBusy(false)
      })
    }, 150)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [text, value, read])
  const go = (step: number) => setAt((n) => (hits.length ? (n + step + hits.length) % hits.length : 0))
  return { text, setText, hits, at, go, busy }
}
