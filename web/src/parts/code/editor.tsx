import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, completionStatus, type CompletionSource } from "@codemirror/autocomplete"
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands"
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from "@codemirror/language"
import { lintGutter, setDiagnostics } from "@codemirror/lint"
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search"
import { Annotation, Compartment, EditorState, type Extension } from "@codemirror/state"
import { drawSelection, dropCursor, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers as numbers, placeholder as hint, tooltips } from "@codemirror/view"
import { useComputedColorScheme } from "@mantine/core"
import { type CSSProperties, type KeyboardEvent, useEffect, useLayoutEffect, useRef } from "react"
import { useTranslation } from "react-i18next"
import type { CodeLanguage, CodeProps } from "../code"
import { carriedField, leaves, putField, writesIn } from "../field"
import { smallestChange } from "./change"
import classes from "./code.module.css"
import { grammar, placeholders } from "./languages"
import { look } from "./look"
import { nonce } from "./nonce"
import { usePhrases } from "./phrases"
import { toDiagnostics } from "./problems"

// What was set from outside is not told again to who set it.
const outside = Annotation.define<boolean>()

const prose = new Set<CodeLanguage>(["markdown", "plain"])
const lineHeight = 20

const oneLine = EditorState.transactionFilter.of((tr) => {
  if (!tr.docChanged || tr.newDoc.lines <= Math.max(1, tr.startState.doc.lines)) return tr
  // Enter adds no line; what is pasted becomes one.
  let pasted = ""
  tr.changes.iterChanges((_a, _b, _c, _d, text) => (pasted += text.toString()))
  if (pasted.trim() === "") return []
  return [tr, { changes: { from: 0, to: tr.newDoc.length, insert: tr.newDoc.toString().replace(/\s*\n\s*/g, " ") }, sequential: true }]
})

// What the editor has dealt with is not for the page: letters, Delete, Ctrl Z, and Escape at the list of suggestions. Ctrl K and the like go on to the page.
function forEditor(e: KeyboardEvent): boolean {
  if (e.key === "Tab") return false
  if (e.defaultPrevented) return true
  if (e.ctrlKey || e.metaKey) return /^[acvxyz]$/i.test(e.key)
  return e.key !== "Escape"
}

/** Editor is the loaded half of Code. */
export default function Editor(props: CodeProps) {
  const { value, language = "plain", label, describedBy, id, invalid, readOnly = false, placeholder, problems, single = false, fill = false, autoFocus } = props
  const { t } = useTranslation("code")
  const box = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView | null>(null)
  const now = useRef(props)
  now.current = props
  const dark = useComputedColorScheme("light") === "dark"
  const phrases = usePhrases()
  const parts = useRef({ grammar: new Compartment(), look: new Compartment(), access: new Compartment(), shape: new Compartment() })

  const indents = !single && !prose.has(language)
  const showNumbers = props.lineNumbers ?? (!single && indents && language !== "expression")
  const wrap = props.wrap ?? (single || !indents)
  const minLines = single ? 1 : (props.minLines ?? 3)
  const maxLines = props.maxLines ?? (single ? 6 : 20)

  const access = (): Extension => [
    EditorState.readOnly.of(readOnly),
    EditorView.editable.of(!readOnly),
    EditorView.contentAttributes.of((v): Record<string, string> => ({
      "aria-label": label,
      "aria-multiline": single ? "false" : "true",
      // A part that scrolls must be reachable by the keyboard, and says so.
      tabindex: "0",
      ...(readOnly ? { "aria-readonly": "true" } : {}),
      ...(id ? { id } : {}),
      ...(describedBy ? { "aria-describedby": describedBy } : {}),
      ...(invalid ? { "aria-invalid": "true" } : {}),
      ...(indents && !readOnly ? { "aria-description": t("leave") } : {}),
      // Escape closes the list of suggestions, and not what the editor stands in.
      "data-mantine-stop-propagation": completionStatus(v.state) === "active" ? "true" : "false",
    })),
    placeholder ? hint(placeholder) : [],
    phrases,
  ]
  const shape = (): Extension => [
    showNumbers ? [numbers(), highlightActiveLineGutter(), foldGutter(), highlightActiveLine(), lintGutter()] : [],
    wrap ? EditorView.lineWrapping : [],
    single ? oneLine : [],
    indents ? keymap.of([indentWithTab]) : [],
  ]

  useLayoutEffect(() => {
    const complete: CompletionSource = (context) => now.current.complete?.(context) ?? null
    const v = new EditorView({
      parent: box.current!,
      state: EditorState.create({
        doc: now.current.value,
        extensions: [
          EditorView.cspNonce.of(nonce()),
          history(),
          drawSelection(),
          dropCursor(),
          indentOnInput(),
          indentUnit.of(now.current.language === "python" ? "    " : "  "),
          bracketMatching(),
          closeBrackets(),
          highlightSelectionMatches(),
          search({ top: true }),
          // Who suggests knows what is nearest; of what fits equally well the order stays.
          autocompletion({ override: [complete], icons: false, maxRenderedOptions: 80, compareCompletions: () => 0 }),
          tooltips({ parent: document.body }),
          placeholders,
          keymap.of([
            { key: "Mod-s", run: () => (now.current.onSave ? (now.current.onSave(), true) : false) },
            ...closeBracketsKeymap,
            ...completionKeymap,
            ...defaultKeymap,
            ...searchKeymap,
            ...historyKeymap,
            ...foldKeymap,
          ]),
          EditorView.updateListener.of((u) => {
            if (u.docChanged && !u.transactions.every((tr) => tr.annotation(outside) || !tr.docChanged)) now.current.onChange?.(u.state.doc.toString())
            if ((u.selectionSet || u.docChanged) && now.current.onCursor) now.current.onCursor(u.state.selection.main.head)
          }),
          EditorView.domEventHandlers({
            blur: () => void now.current.onBlur?.(),
            focus: (_, view) => {
              if (now.current.takesFields) writesIn(view, now.current.language === "expression")
            },
            drop: (e, view) => {
              const field = carriedField(e.dataTransfer)
              if (!field || !now.current.takesFields) return false
              e.preventDefault()
              putField(view, now.current.language === "expression", field, view.posAtCoords({ x: e.clientX, y: e.clientY }) ?? view.state.doc.length)
              return true
            },
          }),
          parts.current.grammar.of([]),
          parts.current.look.of([look, EditorView.darkTheme.of(dark)]),
          parts.current.access.of(access()),
          parts.current.shape.of(shape()),
        ],
      }),
    })
    view.current = v
    const handle = now.current.handle
    if (handle)
      handle.current = {
        focus: () => v.focus(),
        show: (line, column = 1) => {
          const at = v.state.doc.line(Math.max(1, Math.min(line, v.state.doc.lines)))
          const pos = Math.min(at.from + Math.max(0, column - 1), at.to)
          v.dispatch({ selection: { anchor: pos }, effects: EditorView.scrollIntoView(pos, { y: "center" }) })
          v.focus()
        },
      }
    if (autoFocus) v.focus()
    return () => {
      if (handle) handle.current = null
      view.current = null
      leaves(v)
      v.destroy()
    }
    // The editor is made once; the effects below tell it what changes.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [])

  useEffect(() => {
    let gone = false
    void grammar(language).then((g) => {
      if (!gone) view.current?.dispatch({ effects: parts.current.grammar.reconfigure(g) })
    })
    return () => {
      gone = true
    }
  }, [language])

  useEffect(() => {
    const v = view.current
    if (!v) return
    const change = smallestChange(v.state.doc.toString(), value)
    if (change) v.dispatch({ changes: change, annotations: outside.of(true) })
  }, [value])

  useEffect(() => view.current?.dispatch({ effects: parts.current.look.reconfigure([look, EditorView.darkTheme.of(dark)]) }), [dark])
  useEffect(() => view.current?.dispatch({ effects: parts.current.access.reconfigure(access()) }), [readOnly, label, id, describedBy, invalid, placeholder, phrases, single, indents, t])
  useEffect(() => view.current?.dispatch({ effects: parts.current.shape.reconfigure(shape()) }), [showNumbers, wrap, single, indents])
  useEffect(() => {
    const v = view.current
    if (v) v.dispatch(setDiagnostics(v.state, toDiagnostics(v.state.doc, problems ?? [])))
  }, [problems])

  const names = [classes.box, fill && classes.fill, invalid && classes.invalid, readOnly && classes.readOnly].filter(Boolean).join(" ")
  return (
    <div
      className={names}
      style={fill ? undefined : ({ "--code-min": `${minLines * lineHeight + 10}px`, "--code-max": `${maxLines * lineHeight + 10}px` } as CSSProperties)}
      onKeyDown={(e) => {
        if (forEditor(e)) e.stopPropagation()
      }}
    >
      <div ref={box} />
    </div>
  )
}
