import { SimpleGrid, Table, Text, VisuallyHidden } from "@mantine/core"
import { useTranslation } from "react-i18next"
import { lasted } from "@/parts/when"
import { language } from "@/words"
import { Card } from "./card"
import type { Bucket, Range } from "./overview"
import classes from "./home.module.css"

const width = 600
const height = 100

function clock(time: number, range: Range): string {
  return new Intl.DateTimeFormat(language() === "zh" ? "zh-CN" : "en", range === "week" ? { weekday: "short", hour: "2-digit", minute: "2-digit" } : { hour: "2-digit", minute: "2-digit" }).format(time)
}

/** Plots shows how many runs began and how long they took, over the range. The figures are also there as a table, for who does not see it. */
export function Plots({ buckets, range }: { buckets: Bucket[]; range: Range }) {
  const { t } = useTranslation("home")
  const step = width / Math.max(1, buckets.length)
  const most = Math.max(1, ...buckets.map((b) => b.started))
  const longest = Math.max(1, ...buckets.map((b) => b.p95_ms ?? 0))
  const started = buckets.reduce((sum, b) => sum + b.started, 0)
  const timed = buckets.some((b) => b.p50_ms !== undefined)
  const tip = (b: Bucket) =>
    [clock(b.start, range), t("plots.started", { count: b.started }), b.failed > 0 ? t("plots.failed", { count: b.failed }) : "", b.p50_ms === undefined ? "" : t("plots.took", { half: lasted(b.p50_ms), most: lasted(b.p95_ms ?? b.p50_ms) })].filter(Boolean).join(" · ")
  const hits = buckets.map((b, i) => (
    <rect key={b.start} className={classes.hit} x={i * step} y={0} width={step} height={height}>
      <title>{tip(b)}</title>
    </rect>
  ))
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md" w="100%">
      <Card title={t("plots.throughput")} aside={<Legend items={[["started", "#1c7ed6"], ["broken", "#e03131"]]} />}>
        {started === 0 ? (
          <Text c="dimmed">{t("plots.nothing")}</Text>
        ) : (
          <div>
            <Text fz="xs" c="dimmed">
              {t("plots.atMost", { count: most })}
            </Text>
            <svg className={classes.plot} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden>
              <line className={classes.grid} x1={0} x2={width} y1={0.5} y2={0.5} />
              <line className={classes.grid} x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} />
              {buckets.map((b, i) => (
                <g key={b.start}>
                  <rect className={classes.started} x={i * step + 1} width={step - 2} y={height - (b.started / most) * height} height={(b.started / most) * height} />
                  <rect className={classes.broken} x={i * step + 1} width={step - 2} y={height - (b.failed / most) * height} height={(b.failed / most) * height} />
                </g>
              ))}
              {hits}
            </svg>
            <Axis buckets={buckets} range={range} />
          </div>
        )}
      </Card>
      <Card title={t("plots.latency")} aside={<Legend items={[["p50", "#2f9e44"], ["p95", "#e8910c"]]} />}>
        {!timed ? (
          <Text c="dimmed">{t("plots.nothingEnded")}</Text>
        ) : (
          <div>
            <Text fz="xs" c="dimmed">
              {t("plots.longest", { time: lasted(longest) })}
            </Text>
            <svg className={classes.plot} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden>
              <line className={classes.grid} x1={0} x2={width} y1={0.5} y2={0.5} />
              <line className={classes.grid} x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} />
              <Curve buckets={buckets} step={step} of="p95_ms" top={longest} line={classes.p95!} dot={classes.dot95!} />
              <Curve buckets={buckets} step={step} of="p50_ms" top={longest} line={classes.p50!} dot={classes.dot50!} />
              {hits}
            </svg>
            <Axis buckets={buckets} range={range} />
          </div>
        )}
      </Card>
      {started > 0 && (
        <VisuallyHidden>
          <Table>
            <caption>{t("plots.table")}</caption>
            <tbody>
              {buckets
                .filter((b) => b.started > 0)
                .map((b) => (
                  <tr key={b.start}>
                    <td>{tip(b)}</td>
                  </tr>
                ))}
            </tbody>
          </Table>
        </VisuallyHidden>
      )}
    </SimpleGrid>
  )
}

// Curve draws what the buckets have, with a gap where nothing ended.
function Curve({ buckets, step, of, top, line, dot }: { buckets: Bucket[]; step: number; of: "p50_ms" | "p95_ms"; top: number; line: string; dot: string }) {
  let path = ""
  let open = false
  const dots: { x: number; y: number }[] = []
  buckets.forEach((b, i) => {
    const value = b[of]
    if (value === undefined) {
      open = false
      return
    }
    const x = (i + 0.5) * step
    const y = 2 + (height - 4) * (1 - value / top)
    path += `${open ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`
    open = true
    dots.push({ x, y })
  })
  return (
    <>
      <path className={line} d={path} />
      {dots.map((d) => (
        <rect key={d.x} className={dot} x={d.x - 3} y={d.y - 1.5} width={6} height={3} />
      ))}
    </>
  )
}

function Axis({ buckets, range }: { buckets: Bucket[]; range: Range }) {
  const { t } = useTranslation("home")
  return (
    <div className={classes.axis}>
      <span>{clock(buckets[0]!.start, range)}</span>
      <span>{clock(buckets[Math.floor(buckets.length / 2)]!.start, range)}</span>
      <span>{t("plots.now")}</span>
    </div>
  )
}

function Legend({ items }: { items: ["started" | "broken" | "p50" | "p95", string][] }) {
  const { t } = useTranslation("home")
  return (
    <span>
      {items.map(([name, color]) => (
        <span key={name} className={classes.legend} style={{ marginInlineStart: 12 }}>
          <span className={classes.swatch} style={{ color }} />
          {t(`plots.legend.${name}`)}
        </span>
      ))}
    </span>
  )
}
