import { Paper, Text, TextInput } from "@mantine/core"
import { useClickOutside } from "@mantine/hooks"
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import type { Schemas } from "@/api/client"
import type { Point } from "@/graph/definition"
import { familyColor, familyOf, iconOf } from "@/graph/family"
import type { Kinds } from "@/graph/keys"
import { language } from "@/words"
import { findKinds } from "./find_kinds"
import classes from "./editor.module.css"

type Props = {
  kinds: Kinds
  /** Where it opens, in the window. */
  at: Point
  /** Which kinds may stand here. */
  only?: (kind: Schemas["NodeKind"]) => boolean
  onPick: (kind: string) => void
  onClose: () => void
}

/** KindPalette offers what can be added, found by what it is called, does or shows, in both languages, with the keyboard alone. */
export function KindPalette({ kinds, at, only, onPick, onClose }: Props) {
  const { t } = useTranslation("editor")
  const [words, setWords] = useState("")
  const [place, setPlace] = useState(0)
  const hits = useMemo(() => findKinds(kinds, words, only), [kinds, words, only])
  const box = useClickOutside<HTMLDivElement>(onClose)
  const chosen = useRef<HTMLDivElement>(null)
  useEffect(() => chosen.current?.scrollIntoView({ block: "nearest" }), [place])
  const keys = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown") setPlace((n) => Math.min(n + 1, hits.length - 1))
    else if (e.key === "ArrowUp") setPlace((n) => Math.max(n - 1, 0))
    else if (e.key === "Enter") {
      if (hits[place]) onPick(hits[place].name)
    } else if (e.key === "Escape") onClose()
    else return
    e.preventDefault()
    e.stopPropagation()
  }
  const tongue = language()
  const left = Math.max(8, Math.min(at.x, innerWidth - 376))
  const top = Math.max(8, Math.min(at.y, innerHeight - 400))
  return (
    <Paper ref={box} className={classes.palette} shadow="lg" withBorder style={{ left, top }} role="dialog" aria-label={t("palette.title")}>
      <TextInput
        value={words}
        autoFocus
        m={8}
        placeholder={t("palette.placeholder")}
        aria-label={t("palette.placeholder")}
        role="combobox"
        aria-expanded
        aria-controls="kind-hits"
        aria-activedescendant={hits[place] ? `kind-${place}` : undefined}
        onChange={(e) => {
          setWords(e.currentTarget.value)
          setPlace(0)
        }}
        onKeyDown={keys}
      />
      <div role="listbox" id="kind-hits" aria-label={t("palette.title")} className={classes.hits} tabIndex={-1}>
        {hits.map((k, i) => {
          const Icon = iconOf(k.name)
          const heads = !words && familyOf(k.name) !== (hits[i - 1] && familyOf(hits[i - 1]!.name))
          return (
            <div key={k.name} role="presentation">
              {heads && (
                <div className={classes.family} role="presentation">
                  {t(`family.${familyOf(k.name)}`)}
                </div>
              )}
              <div
                id={`kind-${i}`}
                role="option"
                aria-selected={i === place}
                ref={i === place ? chosen : undefined}
                className={i === place ? `${classes.hit} ${classes.hitChosen}` : classes.hit}
                onClick={() => onPick(k.name)}
                onMouseMove={() => setPlace(i)}
              >
                <span className={classes.hitIcon} style={{ color: familyColor(k.name) }}>
                  <Icon size={18} stroke={1.7} aria-hidden />
                </span>
                <span className={classes.hitTexts}>
                  <span className={classes.hitName}>{k.title[tongue]}</span>
                  <span className={classes.hitText}>{k.description[tongue]}</span>
                </span>
              </div>
            </div>
          )
        })}
        {hits.length === 0 && (
          <Text c="dimmed" p="sm" fz="sm">
            {t("palette.nothing")}
          </Text>
        )}
      </div>
    </Paper>
  )
}
