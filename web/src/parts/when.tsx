import { useEffect, useState } from "react"
import { language } from "@/words"

const steps: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000_000],
  ["month", 2_592_000_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
]

/** ago says a time as people do: 5 minutes ago, in 2 days. */
export function ago(time: number, now = Date.now()): string {
  const format = new Intl.RelativeTimeFormat(language() === "zh" ? "zh-CN" : "en", { numeric: "auto" })
  const delta = time - now
  for (const [unit, ms] of steps) if (Math.abs(delta) >= ms) return format.format(Math.trunc(delta / ms), unit)
  return format.format(0, "second")
}

/** exact says a time to the second, in the reader's zone. */
export function exact(time: number): string {
  return new Intl.DateTimeFormat(language() === "zh" ? "zh-CN" : "en", { dateStyle: "medium", timeStyle: "medium" }).format(time)
}

/** lasted says how long something took: 340 ms, 2.4 s, 3 min 5 s, 2 h 4 min. */
export function lasted(ms: number): string {
  const zh = language() === "zh"
  if (ms < 1_000) return `${Math.round(ms)} ${zh ? "毫秒" : "ms"}`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} ${zh ? "秒" : "s"}`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} ${zh ? "分" : "min"} ${Math.floor((ms % 60_000) / 1_000)} ${zh ? "秒" : "s"}`
  return `${Math.floor(ms / 3_600_000)} ${zh ? "小时" : "h"} ${Math.floor((ms % 3_600_000) / 60_000)} ${zh ? "分" : "min"}`
}

/** When shows a time relative to now, kept up to date, with the exact one on hover. */
export function When({ at }: { at: number | undefined }) {
  const [, tick] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 10_000)
    return () => clearInterval(timer)
  }, [])
  if (!at) return null
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)}>
      {ago(at)}
    </time>
  )
}
