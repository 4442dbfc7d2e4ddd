import { HighlightStyle, syntaxHighlighting } from "@codemirror/language"
import type { Extension } from "@codemirror/state"
import { EditorView } from "@codemirror/view"
import { tags } from "@lezer/highlight"

// Colours have enough contrast on both grounds. They are chosen by the page's scheme, so nothing has to be swapped when it changes.
const colors = {
  keyword: "light-dark(#7032b3, #d0a6ff)",
  string: "light-dark(#23702f, #8ce99a)",
  number: "light-dark(#1864ab, #74c0fc)",
  name: "light-dark(#0b5f74, #66d9e8)",
  comment: "light-dark(#5c6470, #a6adb8)",
  wrong: "light-dark(#c22f2f, #ff8787)",
}

const highlight = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword], color: colors.keyword },
  { tag: [tags.string, tags.special(tags.string), tags.regexp, tags.character], color: colors.string },
  { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.self], color: colors.number },
  { tag: [tags.propertyName, tags.definition(tags.propertyName), tags.labelName, tags.typeName, tags.className, tags.function(tags.variableName), tags.standard(tags.name)], color: colors.name },
  { tag: [tags.comment, tags.meta, tags.processingInstruction], color: colors.comment, fontStyle: "italic" },
  { tag: [tags.heading, tags.strong], fontWeight: "600" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: [tags.link, tags.url], color: colors.number },
  { tag: tags.monospace, color: colors.name },
  { tag: tags.invalid, color: colors.wrong },
])

const theme = EditorView.theme({
  "&": { fontSize: "13px", color: "var(--mantine-color-text)", backgroundColor: "transparent" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mantine-font-family-monospace)", lineHeight: "20px", minHeight: "var(--code-min, 0)", maxHeight: "var(--code-max, none)" },
  ".cm-content": { padding: "5px 0", caretColor: "var(--mantine-color-text)" },
  ".cm-line": { padding: "0 10px" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--mantine-color-text)" },
  ".cm-placeholder": { color: "var(--mantine-color-placeholder)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, .cm-content ::selection": {
    backgroundColor: "light-dark(#cfdcff, #34447d)",
  },
  ".cm-activeLine": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine": { backgroundColor: "light-dark(rgba(0,0,0,.035), rgba(255,255,255,.04))" },
  ".cm-gutters": { backgroundColor: "transparent", color: "light-dark(#667080, #98a0ac)", border: "none", paddingLeft: "4px" },
  ".cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLineGutter": { color: "var(--mantine-color-text)" },
  ".cm-foldPlaceholder": { backgroundColor: "light-dark(#eef0f3, #3a3d44)", border: "none", color: "inherit", padding: "0 4px" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "light-dark(#d9e5ff, #3b4a7a)", outline: "none" },
  ".cm-nonmatchingBracket, &.cm-focused .cm-nonmatchingBracket": { backgroundColor: "transparent", color: colors.wrong },
  ".cm-searchMatch": { backgroundColor: "light-dark(#ffe8a3, #5c4b12)" },
  ".cm-searchMatch-selected": { backgroundColor: "light-dark(#ffd043, #8a6d0f)" },
  ".cm-tooltip": {
    backgroundColor: "var(--mantine-color-body)",
    color: "var(--mantine-color-text)",
    border: "1px solid var(--mantine-color-default-border)",
    borderRadius: "6px",
    boxShadow: "0 6px 20px rgba(0,0,0,.18)",
    overflow: "hidden",
    zIndex: "400",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mantine-font-family-monospace)", maxHeight: "16em", maxWidth: "min(640px, 92vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px", display: "flex", gap: "12px", alignItems: "baseline" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--mantine-primary-color-filled)", color: "var(--mantine-primary-color-contrast, #fff)" },
  ".cm-completionLabel": { flex: "none", maxWidth: "60%", overflow: "hidden", textOverflow: "ellipsis" },
  ".cm-completionDetail": { fontStyle: "normal", marginLeft: "auto", color: "light-dark(#5c6470, #a6adb8)", overflow: "hidden", textOverflow: "ellipsis" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-tooltip.cm-completionInfo": { padding: "8px 10px", maxWidth: "360px", whiteSpace: "pre-wrap", fontSize: "12px" },
  ".cm-diagnostic": { padding: "6px 10px", whiteSpace: "pre-wrap", maxWidth: "min(560px, 90vw)", borderLeftWidth: "3px" },
  ".cm-panels": { backgroundColor: "light-dark(#f6f7f9, #25282e)", color: "inherit", borderColor: "var(--mantine-color-default-border)" },
  ".cm-textfield": { backgroundColor: "var(--mantine-color-body)", color: "inherit", border: "1px solid var(--mantine-color-default-border)", borderRadius: "4px" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--mantine-color-default)", color: "inherit", border: "1px solid var(--mantine-color-default-border)", borderRadius: "4px" },
  ".cm-placeholder-mark": { color: "light-dark(#9a3412, #ffc078)", backgroundColor: "light-dark(#fff1e0, #43301a)", borderRadius: "3px" },
  ".cm-placeholder-mark *": { color: "inherit" },
  ".cm-changedLine": { backgroundColor: "light-dark(#e9f7ec, #1c3524)" },
  ".cm-deletedChunk, .cm-deletedLine": { backgroundColor: "light-dark(#fdecec, #402124)" },
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "light-dark(#fdecec, #402124)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "light-dark(#fbdada, #5e262b)" },
  "&.cm-merge-b .cm-changedText, .cm-changedText": { background: "light-dark(#cdf0d5, #1e4629)" },
  ".cm-collapsedLines": { background: "light-dark(#eef0f3, #2b2f36)", color: "light-dark(#4a525e, #b4bac4)", padding: "4px 12px" },
})

/** look is how every editor of the page looks, light and dark. */
export const look: Extension = [theme, syntaxHighlighting(highlight)]
