import { Group, Select, TextInput } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { call, client } from "@/api/client"
import { useMe, useRole } from "@/api/me"
import { useAddress } from "./addresses"

/** The ranges of time that are named, in milliseconds. A link with one of them means the last hour of whoever opens it. */
export const ranges = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000, month: 30 * 86_400_000 } as const
export type Range = keyof typeof ranges

/** timeOf reads from the address when executions were started: since=day, or from and to in Unix milliseconds. */
export function timeOf(params: URLSearchParams, now = Date.now()): { started_after?: number; started_before?: number } {
  const since = params.get("since") ?? ""
  if (since in ranges) return { started_after: now - ranges[since as Range] }
  const number = (name: string) => {
    const n = Number(params.get(name))
    return params.get(name) && Number.isFinite(n) && n >= 0 ? Math.trunc(n) : undefined
  }
  const [after, before] = [number("from"), number("to")]
  return { ...(after !== undefined ? { started_after: after } : {}), ...(before !== undefined ? { started_before: before } : {}) }
}

/** WorkflowFilter chooses the workflow. */
export function WorkflowFilter() {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const value = params.get("workflow") ?? ""
  const { data } = useQuery({
    queryKey: ["workflows", "names"],
    staleTime: 60_000,
    queryFn: ({ signal }) => call(client.GET("/api/v1/workflows", { params: { query: { page_size: 500 } }, signal })),
  })
  const names = (data?.workflows ?? []).map((w) => ({ value: w.id, label: w.name || w.id }))
  if (value && !names.some((n) => n.value === value)) names.push({ value, label: value })
  return <Select size="xs" w={170} searchable clearable placeholder={t("filter.workflow")} aria-label={t("filter.workflow")} data={names} value={value || null} onChange={(v) => change({ workflow: v ?? undefined, page: undefined })} limit={100} />
}

/** UserFilter chooses who started the executions: me, somebody who is in the list, or, for admins, any user. */
export function UserFilter({ seen }: { seen: readonly string[] }) {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const { data: me } = useMe()
  const admin = useRole()
  const { data } = useQuery({ queryKey: ["users", "names"], enabled: admin, staleTime: 60_000, queryFn: ({ signal }) => call(client.GET("/api/v1/users", { signal })) })
  const value = params.get("user") ?? ""
  const others = new Set([...(data?.users ?? []).map((u) => u.id), ...seen, ...(value && value !== "me" ? [value] : [])])
  if (me) others.delete(me.id)
  const options = [{ value: "me", label: t("filter.me") }, ...[...others].filter(Boolean).map((id) => ({ value: id, label: id }))]
  return <Select size="xs" w={140} searchable clearable placeholder={t("filter.anyone")} aria-label={t("filter.user")} data={options} value={value === me?.id ? "me" : value || null} onChange={(v) => change({ user: v ?? undefined, page: undefined })} limit={100} />
}

// local is a time as the browser's field for times writes it, in the reader's zone.
function local(ms: string | null): string {
  const n = Number(ms)
  if (!ms || !Number.isFinite(n)) return ""
  const d = new Date(n)
  return new Date(n - d.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** TimeFilter chooses when executions were started: a named range up to now, or two times. */
export function TimeFilter() {
  const { t } = useTranslation("executions")
  const [params, change] = useAddress()
  const since = params.get("since")
  const own = params.has("from") || params.has("to")
  const value = own ? "own" : since && since in ranges ? since : null
  const options = [...(Object.keys(ranges) as Range[]).map((r) => ({ value: r as string, label: t(`filter.since.${r}`) })), { value: "own", label: t("filter.since.own") }]
  const set = (name: "from" | "to") => (text: string) => {
    const ms = new Date(text).getTime()
    change({ [name]: text && Number.isFinite(ms) ? String(ms) : undefined, since: undefined, page: undefined })
  }
  return (
    <Group gap={6}>
      <Select
        size="xs"
        w={140}
        clearable
        placeholder={t("filter.anyTime")}
        aria-label={t("filter.time")}
        data={options}
        value={value}
        onChange={(v) => change({ since: v && v !== "own" ? v : undefined, from: v === "own" ? String(Date.now() - ranges.day) : undefined, to: undefined, page: undefined })}
      />
      {own && (
        <>
          <TextInput size="xs" type="datetime-local" aria-label={t("filter.from")} value={local(params.get("from"))} onChange={(e) => set("from")(e.currentTarget.value)} />
          <TextInput size="xs" type="datetime-local" aria-label={t("filter.to")} value={local(params.get("to"))} onChange={(e) => set("to")(e.currentTarget.value)} />
        </>
      )}
    </Group>
  )
}
