import { useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import { exact } from "../when"
import classes from "./question.module.css"

const pad = (n: number) => String(n).padStart(2, "0")

/** useNow is the time, kept up to date: by the second when something is near, else by the minute. */
export function useNow(until: number | undefined): number {
  const [now, setNow] = useState(Date.now)
  const near = until !== undefined && until - now < 3_600_000
  useEffect(() => {
    if (until === undefined) return
    const timer = setInterval(() => setNow(Date.now()), near ? 1_000 : 20_000)
    return () => clearInterval(timer)
  }, [until, near])
  return now
}

/** Countdown says how much time is left until a moment, to the second in the last hour. */
export function Countdown({ until }: { until: number }) {
  const { t } = useTranslation("question")
  const left = Math.max(0, Math.ceil((until - useNow(until)) / 1_000))
  const hours = Math.floor(left / 3_600)
  const text =
    left === 0
      ? t("left.over")
      : hours >= 48
        ? t("left.days", { count: Math.floor(hours / 24) })
        : hours >= 1
          ? t("left.hours", { hours, minutes: Math.floor((left % 3_600) / 60) })
          : t("left.minutes", { time: `${Math.floor(left / 60)}:${pad(left % 60)}` })
  return (
    <time role="timer" dateTime={new Date(until).toISOString()} title={exact(until)} className={`${classes.timer} ${left < 300 ? classes.soon : ""}`}>
      {text}
    </time>
  )
}
