import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { useNotice } from "@/shell/notices"
import { Failure } from "./client"

type Options<T> = {
  /** The first parts of the keys of what is asked again afterwards. */
  stale: string[]
  /** What is told when it is done. */
  done?: string | ((result: T) => string)
  /** The caller shows a failure itself. */
  quiet?: boolean
  then?: (result: T) => void
}

/** useAct does one thing through the API, asks again for what it has changed, and tells how it went. */
export function useAct<A = void, T = unknown>(act: (args: A) => Promise<T>, { stale, done, quiet, then }: Options<T>) {
  const queries = useQueryClient()
  const say = useNotice()
  const { t } = useTranslation("places")
  return useMutation<T, unknown, A>({
    mutationFn: act,
    onSuccess: async (result) => {
      const text = typeof done === "function" ? done(result) : done
      if (text) say(text)
      then?.(result)
      await Promise.all(stale.map((key) => queries.invalidateQueries({ queryKey: [key] })))
    },
    onError: (error) => {
      if (quiet) return
      const away = error instanceof Failure && error.away
      say(t(away ? "shell:failed.away" : "shell:failed.title"), { tone: "bad", detail: away ? t("notDone") : error instanceof Error ? error.message : String(error) })
    },
  })
}
