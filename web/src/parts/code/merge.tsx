import { MergeView, unifiedMergeView } from "@codemirror/merge"
import { EditorState, type Extension } from "@codemirror/state"
import { EditorView, lineNumbers } from "@codemirror/view"
import { Group, Text, useComputedColorScheme } from "@mantine/core"
import { useElementSize } from "@mantine/hooks"
import { useEffect, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import type { DifferenceProps } from "../difference"
import classes from "./merge.module.css"
import { grammar, placeholders } from "./languages"
import { look } from "./look"
import { nonce } from "./nonce"
import { usePhrases } from "./phrases"

const narrow = 720

/** Merge is the loaded half of Difference. */
export default function Merge({ before, after, language = "plain", beforeLabel, afterLabel, inline }: DifferenceProps) {
  const { t } = useTranslation("code")
  const { ref, width } = useElementSize()
  const box = useRef<HTMLDivElement>(null)
  const [words, setWords] = useState<Extension | null>(null)
  const phrases = usePhrases()
  const dark = useComputedColorScheme("light") === "dark"
  const below = inline ?? (width > 0 && width < narrow)
  useEffect(() => {
    let gone = false
    void grammar(language).then((g) => !gone && setWords([g]))
    return () => {
      gone = true
    }
  }, [language])
  useEffect(() => {
    if (!words || before === after || width === 0) return
    const common = (label: string): Extension => [
      EditorView.cspNonce.of(nonce()),
      lineNumbers(),
      EditorView.lineWrapping,
      EditorState.readOnly.of(true),
      EditorView.editable.of(false),
      EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true", tabindex: "0" }),
      EditorView.darkTheme.of(dark),
      look,
      placeholders,
      words,
      phrases,
    ]
    const collapse = { margin: 3, minSize: 6 }
    const view = below
      ? new EditorView({ parent: box.current!, state: EditorState.create({ doc: after, extensions: [common(`${beforeLabel} → ${afterLabel}`), unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: collapse })] }) })
      : new MergeView({ parent: box.current!, a: { doc: before, extensions: common(beforeLabel) }, b: { doc: after, extensions: common(afterLabel) }, collapseUnchanged: collapse, gutter: true })
    return () => view.destroy()
  }, [before, after, words, phrases, dark, below, beforeLabel, afterLabel, width === 0])
  return (
    <div ref={ref} className={classes.difference}>
      <Group className={classes.head} gap={0} wrap="nowrap">
        <Text fz="sm" className={classes.label} data-sort="before">
          <span aria-hidden>− </span>
          {beforeLabel}
        </Text>
        <Text fz="sm" className={classes.label} data-sort="after">
          <span aria-hidden>+ </span>
          {afterLabel}
        </Text>
      </Group>
      {before === after ? (
        <Text p="md" c="dimmed">
          {t("same")}
        </Text>
      ) : (
        <div ref={box} className={classes.body} />
      )}
    </div>
  )
}
