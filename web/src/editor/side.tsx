import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import classes from "./editor.module.css"

/** Side is a column at the right of the canvas whose width can be changed, and is remembered in this browser. */
export function Side({ name, label, width: usual, children }: { name: string; label: string; width: number; children: ReactNode }) {
  const { t } = useTranslation("editor")
  const [width, setWidth] = useState(() => Number(localStorage.getItem(`tandem.width.${name}`)) || usual)
  const box = useRef<HTMLElement>(null)
  const keep = (next: number) => {
    const w = Math.round(Math.min(Math.max(next, 260), innerWidth * 0.85))
    setWidth(w)
    localStorage.setItem(`tandem.width.${name}`, String(w))
  }
  const drag = (e: PointerEvent<HTMLDivElement>) => {
    if (!e.currentTarget.hasPointerCapture(e.pointerId)) return
    keep(box.current!.getBoundingClientRect().right - e.clientX)
  }
  const keys = (e: KeyboardEvent) => {
    if (e.key === "ArrowLeft") keep(width + 40)
    else if (e.key === "ArrowRight") keep(width - 40)
    else return
    e.preventDefault()
  }
  return (
    <aside ref={box} className={classes.side} style={{ width }} aria-label={label} data-narrow={width < 620 || undefined}>
      <div
        className={classes.sash}
        role="separator"
        tabIndex={0}
        aria-orientation="vertical"
        aria-label={t("width")}
        aria-valuenow={width}
        aria-valuemin={260}
        aria-valuemax={2000}
        onPointerDown={(e) => e.currentTarget.setPointerCapture(e.pointerId)}
        onPointerMove={drag}
        onKeyDown={keys}
      />
      {children}
    </aside>
  )
}
