import { EditorState } from "@codemirror/state"
import { useMemo } from "react"
import { useTranslation } from "react-i18next"

/** usePhrases translates what the editor itself says. */
export function usePhrases() {
  const { t } = useTranslation("code")
  return useMemo(
    () =>
      EditorState.phrases.of({
        Find: t("phrases.find"),
        Replace: t("phrases.replaceWith"),
        next: t("phrases.next"),
        previous: t("phrases.previous"),
        all: t("phrases.all"),
        "match case": t("phrases.matchCase"),
        regexp: t("phrases.regexp"),
        "by word": t("phrases.byWord"),
        replace: t("phrases.replace"),
        "replace all": t("phrases.replaceAll"),
        close: t("phrases.close"),
        "current match": t("phrases.currentMatch"),
        "on line": t("phrases.onLine"),
        "replaced $ matches": t("phrases.replacedMatches"),
        "replaced match on line $": t("phrases.replacedMatch"),
        "Go to line": t("phrases.goToLine"),
        go: t("phrases.go"),
        Completions: t("phrases.completions"),
        Diagnostics: t("phrases.diagnostics"),
        "No diagnostics": t("phrases.noDiagnostics"),
        "folded code": t("phrases.folded"),
        unfold: t("phrases.unfold"),
        "Fold line": t("phrases.foldLine"),
        "Unfold line": t("phrases.unfoldLine"),
        "$ unchanged lines": t("phrases.unchanged"),
        "Selection deleted": t("phrases.deleted"),
        "Control character": t("phrases.control"),
      }),
    [t],
  )
}
