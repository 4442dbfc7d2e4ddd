import { Button, SegmentedControl, Text, Title } from "@mantine/core"
import { useHotkeys } from "@mantine/hooks"
import { IconAlertTriangle, IconCircleCheck, IconClock, IconForbid2, IconForms, IconHelpCircle, IconListCheck, IconStars, IconUserQuestion } from "@tabler/icons-react"
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { useRef } from "react"
import { useTranslation } from "react-i18next"
import { Link, useSearchParams } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { Countdown } from "@/parts/question/countdown"
import { visible } from "@/parts/question/value"
import { Empty, Shown } from "@/parts/states"
import { When } from "@/parts/when"
import { language } from "@/words"
import { queryOf, type Show, shows } from "./shows"
import classes from "./inbox.module.css"

const size = 50

type Item = Schemas["Interaction"]

const icons = { approval: IconUserQuestion, input: IconForms, selection: IconListCheck, review: IconStars }
const ends = { completed: IconCircleCheck, timeout: IconClock, cancelled: IconForbid2, error: IconHelpCircle }

/** InboxList lists questions: by priority and age while they wait. j and k go through them, Enter opens one. */
export function InboxList({ show, page, open }: { show: Show; page: number; open?: string }) {
  const { t } = useTranslation("inbox")
  const [, setSearch] = useSearchParams()
  const box = useRef<HTMLDivElement>(null)
  const lang = language()
  const query = useQuery({
    queryKey: ["interactions", "list", show, page, lang],
    queryFn: ({ signal }) => call(client.GET("/api/v1/interactions", { params: { query: { ...queryOf(show), page, page_size: size, language: lang } }, signal })),
    placeholderData: keepPreviousData,
  })
  const go = (by: number) => {
    const links = [...(box.current?.querySelectorAll<HTMLAnchorElement>("a[data-question]") ?? [])]
    const focused = links.indexOf(document.activeElement as HTMLAnchorElement)
    const from = focused >= 0 ? focused : links.findIndex((l) => l.dataset.question === open)
    links[Math.min(links.length - 1, Math.max(0, from + by))]?.focus()
  }
  useHotkeys([
    ["j", () => go(1)],
    ["k", () => go(-1)],
  ])
  const choose = (next: Show) => setSearch(next === "mine" ? {} : { show: next })
  return (
    <section className={classes.list} aria-label={t("title")} ref={box}>
      <header className={classes.head}>
        <Title order={open ? 2 : 1} size="h3">
          {t("title")}
        </Title>
        <SegmentedControl size="xs" fullWidth value={show} onChange={(v) => choose(v as Show)} data={shows.map((s) => ({ value: s, label: t(`show.${s}`) }))} aria-label={t("show.label")} />
      </header>
      <Shown query={query} what={t("readingList")}>
        {({ interactions, total_count }) => (
          <>
            {(interactions ?? []).length === 0 && (
              <Empty title={t(`empty.${show}`)}>
                <Text fz="sm">{t(`empty.${show}Text`)}</Text>
                {show === "mine" && (
                  <Button size="xs" variant="default" onClick={() => choose("all")}>
                    {t("empty.others")}
                  </Button>
                )}
              </Empty>
            )}
            <ul className={classes.rows}>
              {(interactions ?? []).map((q) => (
                <Row key={q.id} question={q} open={q.id === open} />
              ))}
            </ul>
            {total_count > size && <Turn page={page} total={total_count} onPage={(n) => setSearch((now) => ({ ...Object.fromEntries(now), page: String(n) }))} />}
          </>
        )}
      </Shown>
      <Text fz="xs" c="dimmed" p="sm" className={classes.keys}>
        {t("keys")}
      </Text>
    </section>
  )
}

function Turn({ page, total, onPage }: { page: number; total: number; onPage: (n: number) => void }) {
  const { t } = useTranslation("inbox")
  return (
    <div className={classes.turn}>
      <Button size="xs" variant="default" disabled={page <= 1} onClick={() => onPage(page - 1)}>
        {t("earlier")}
      </Button>
      <Text fz="xs" c="dimmed">
        {t("range", { first: (page - 1) * size + 1, last: Math.min(total, page * size), total })}
      </Text>
      <Button size="xs" variant="default" disabled={page * size >= total} onClick={() => onPage(page + 1)}>
        {t("later")}
      </Button>
    </div>
  )
}

function Row({ question: q, open }: { question: Item; open: boolean }) {
  const { t } = useTranslation("inbox")
  const [search] = useSearchParams()
  const data = (q.request_data ?? {}) as { title?: string; description?: string; risk?: string }
  const pending = q.status === "pending"
  const Icon = pending ? (icons[q.interaction_type as keyof typeof icons] ?? IconUserQuestion) : ends[q.status as keyof typeof ends]
  const query = search.toString()
  return (
    <li>
      <Link to={{ pathname: `/inbox/${encodeURIComponent(q.id)}`, search: query && "?" + query }} className={classes.row} data-question={q.id} aria-current={open ? "page" : undefined}>
        <Icon size={18} stroke={1.6} aria-hidden className={pending ? classes.waits : classes.ended} />
        <span className={classes.what}>
          <span className={classes.title}>{visible(q.title || data.title || data.description || q.workflow_name)}</span>
          <span className={classes.from}>
            {visible(q.workflow_name)} · {pending ? <When at={q.created_at} /> : <>{t(`status.${q.status}`)} · <When at={q.updated_at} /></>}
          </span>
          {pending && (data.risk === "high" || data.risk === "medium" || q.timeout_at) && (
            <span className={classes.marks}>
              {(data.risk === "high" || data.risk === "medium") && (
                <span className={data.risk === "high" ? classes.high : classes.medium}>
                  <IconAlertTriangle size={13} aria-hidden /> {t(`risk.${data.risk}`)}
                </span>
              )}
              {q.timeout_at ? <Countdown until={q.timeout_at} /> : null}
            </span>
          )}
        </span>
      </Link>
    </li>
  )
}
