import { useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { call, client, Failure } from "@/api/client"
import { createWorkflow, putWorkflow } from "@/api/definition"
import { useNotice } from "@/shell/notices"
import { sourceOf } from "./source"
import type { Doc } from "./use_document"

/** Theirs is what somebody else has saved in the meantime. */
export type Theirs = { text: string; revision: number; by: string; at: number }

/** readNewest reads the newest revision with its text. */
export async function readNewest(id: string, signal?: AbortSignal) {
  return call(client.GET("/api/v1/workflows/{id}", { params: { path: { id }, query: { include: ["source"] } }, signal }))
}

type Options = { id: string; doc: Doc; onCreated: (id: string) => void; onRefused: () => void }

/**
 * useSave keeps the text as a new revision. `save` says under which id it is on the server then, or undefined if it is not: because of problems, because somebody
 * else has saved, or because the server is away. The draft stays in all these cases.
 */
export function useSave({ id, doc, onCreated, onRefused }: Options) {
  const { t } = useTranslation("editor")
  const say = useNotice()
  const queries = useQueryClient()
  const [busy, setBusy] = useState(false)
  const [theirs, setTheirs] = useState<Theirs>()

  const showTheirs = async () => {
    const w = await readNewest(id)
    setTheirs({ text: sourceOf(w), revision: w.metadata.revision, by: w.metadata.updated_by || w.metadata.created_by, at: w.metadata.updated_time })
  }
  const save = async (over?: number): Promise<string | undefined> => {
    const { text, broken } = doc.history.now
    if (broken) {
      say(t("save.broken"), { tone: "bad", detail: t("save.brokenText", { line: broken.line, message: broken.message }) })
      return undefined
    }
    setBusy(true)
    try {
      const saved = id === "" ? await createWorkflow(text) : await putWorkflow(id, text, over ?? doc.base.revision)
      const base = { text, revision: saved.workflow.revision }
      setTheirs(undefined)
      doc.rebase(base)
      say(t("save.done", { revision: saved.workflow.revision }), saved.waiting_on_older ? { detail: t("save.older", { count: saved.waiting_on_older }) } : undefined)
      if (id === "") {
        doc.handOver(saved.workflow.id, base)
        onCreated(saved.workflow.id)
      }
      void queries.invalidateQueries({ queryKey: ["workflows"] })
      return saved.workflow.id
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (error.status === 409 && id !== "") {
        try {
          await showTheirs()
        } catch (again) {
          say(t("save.failed"), { tone: "bad", detail: again instanceof Error ? again.message : String(again) })
        }
      } else if (error.away) say(t("save.away"), { tone: "bad", detail: t("save.kept") })
      else {
        say(t(error.status === 422 ? "save.refused" : "save.failed"), { tone: "bad", detail: `${error.status === 422 ? t("save.mend") : error.message} ${t("save.kept")}` })
        if (error.status === 422) onRefused()
      }
      return undefined
    } finally {
      setBusy(false)
    }
  }
  return { save, busy, theirs, showTheirs, closeTheirs: () => setTheirs(undefined) }
}
