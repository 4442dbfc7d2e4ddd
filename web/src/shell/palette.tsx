import { Group, Modal, ScrollArea, Text, TextInput, UnstyledButton } from "@mantine/core"
import { useDebouncedValue } from "@mantine/hooks"
import { useQuery } from "@tanstack/react-query"
import { type KeyboardEvent, useState } from "react"
import { useTranslation } from "react-i18next"
import { useNavigate } from "react-router"
import { call, client } from "@/api/client"
import { language } from "@/words"
import classes from "./palette.module.css"

type Hit = { to: string; name: string; sort: string }

// Of one sort no more than these are listed.
const few = 100

const places = ["home", "workflows", "executions", "inbox", "agents", "settings", "docs"] as const

/** Palette finds workflows, runs, places, kinds of nodes and headings of documents by name or id, with the keyboard alone. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("shell")
  const go = useNavigate()
  const [text, setText] = useState("")
  const [at, setAt] = useState(0)
  const [words] = useDebouncedValue(text.trim().toLowerCase(), 120)
  const { data: workflows } = useQuery({
    queryKey: ["workflows", "palette"],
    queryFn: ({ signal }) => call(client.GET("/api/v1/workflows", { params: { query: { page_size: 100 } }, signal })),
  })
  const { data: execution } = useQuery({
    queryKey: ["execution", "palette", words],
    enabled: /^[\w-]{8,}$/.test(words),
    retry: false,
    queryFn: ({ signal }) => call(client.GET("/api/v1/executions/{id}", { params: { path: { id: text.trim() } }, signal })),
  })
  // Documents and kinds are looked at when somebody types.
  const { data: documents } = useQuery({ queryKey: ["docs", "outlines"], enabled: words !== "", staleTime: Infinity, queryFn: () => import("@/docs/outlines").then((m) => m.outlines(language())) })
  const { data: kinds } = useQuery({ queryKey: ["node-kinds"], enabled: words !== "", staleTime: Infinity, queryFn: ({ signal }) => call(client.GET("/api/v1/node-kinds", { signal })) })
  const among = (list: Hit[]) => list.filter((h) => h.name.toLowerCase().includes(words) || h.to.toLowerCase().includes(words)).slice(0, few)
  const hits: Hit[] = [
    ...(execution ? [{ to: `/executions/${encodeURIComponent(text.trim())}`, name: text.trim(), sort: t("palette.execution") }] : []),
    ...among(places.map((p) => ({ to: p === "home" ? "/" : `/${p}`, name: t(`place.${p}`), sort: t("palette.place") }))),
    ...among((workflows?.workflows ?? []).map((w) => ({ to: `/workflows/${encodeURIComponent(w.id)}`, name: w.name || w.id, sort: t("palette.workflow") }))),
    ...among((words && kinds?.node_kinds ? kinds.node_kinds : []).map((k) => ({ to: `/docs/kinds/${k.name}`, name: k.title[language()], sort: t("palette.kind") }))),
    ...among((words && documents ? documents : []).map((d) => ({ ...d, sort: t("palette.document") }))),
  ]
  const open = (h: Hit | undefined) => {
    if (!h) return
    onClose()
    void go(h.to)
  }
  const keys = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown") setAt((n) => Math.min(n + 1, hits.length - 1))
    else if (e.key === "ArrowUp") setAt((n) => Math.max(n - 1, 0))
    else if (e.key === "Enter") open(hits[at])
    else return
    e.preventDefault()
  }
  return (
    <Modal opened onClose={onClose} withCloseButton={false} title={t("palette.title")} padding="xs" yOffset="12vh" size="lg">
      <TextInput
        data-autofocus
        value={text}
        placeholder={t("palette.placeholder")}
        aria-label={t("palette.placeholder")}
        onChange={(e) => {
          setText(e.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={keys}
        role="combobox"
        aria-expanded
        aria-controls="palette-hits"
        aria-activedescendant={hits[at] ? `hit-${at}` : undefined}
      />
      <ScrollArea.Autosize mah="50vh" mt="xs">
        <div role="listbox" id="palette-hits" aria-label={t("palette.title")}>
          {hits.map((h, i) => (
            <UnstyledButton key={h.to} id={`hit-${i}`} role="option" aria-selected={i === at} tabIndex={-1} className={i === at ? `${classes.hit} ${classes.chosen}` : classes.hit} onClick={() => open(h)} onMouseMove={() => setAt(i)}>
              <Group justify="space-between" wrap="nowrap">
                <Text truncate>{h.name}</Text>
                <Text c="dimmed" fz="xs">
                  {h.sort}
                </Text>
              </Group>
            </UnstyledButton>
          ))}
        </div>
        {hits.length === 0 && (
          <Text c="dimmed" p="xs">
            {t("palette.nothing")}
          </Text>
        )}
      </ScrollArea.Autosize>
    </Modal>
  )
}
