import type { EditorView } from "@codemirror/view"

/** Field is a value that a setting can read, as it is written there. A setting that takes neither of the two is left alone. */
export type Field = {
  /** In a text: {{start.outputs.name}}. */
  placeholder?: string
  /** In an expression: input.name. */
  expression?: string
}

const type = "application/x-tandem-field"

/** carryField lets a field be dragged. Where only a text can be dropped, the placeholder is dropped. */
export function carryField(data: DataTransfer, field: Field) {
  data.setData(type, JSON.stringify(field))
  data.setData("text/plain", field.placeholder ?? field.expression ?? "")
  data.effectAllowed = "copy"
}

/** carriedField is the field that is dropped, if it is one. */
export function carriedField(data: DataTransfer | null): Field | undefined {
  const said = data?.getData(type)
  return said ? (JSON.parse(said) as Field) : undefined
}

// The setting that was written in last.
let target: { view: EditorView; expression: boolean } | undefined

export function writesIn(view: EditorView, expression: boolean) {
  target = { view, expression }
}

export function leaves(view: EditorView) {
  if (target?.view === view) target = undefined
}

/** putField writes a field into a setting, at a place or in place of what is selected there. It says whether the setting takes such a field. */
export function putField(view: EditorView, expression: boolean, field: Field, at?: number): boolean {
  const text = expression ? field.expression : field.placeholder
  if (text === undefined || view.state.readOnly) return false
  const { from, to } = at === undefined ? view.state.selection.main : { from: at, to: at }
  view.dispatch({ changes: { from, to, insert: text }, selection: { anchor: from + text.length }, userEvent: "input.drop", scrollIntoView: true })
  view.focus()
  return true
}

/** insertField writes a field into the setting that was written in last. */
export function insertField(field: Field): boolean {
  return !!target?.view.dom.isConnected && putField(target.view, target.expression, field)
}
