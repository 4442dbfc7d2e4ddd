import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { call, client, type Schemas } from "@/api/client"
import { language } from "@/words"
import { parse } from "./exact"
import type { Question } from "./types"

/** useQuestion reads a question with its form, in the language of the page. */
export function useQuestion(id: string) {
  const lang = language()
  return useQuery({
    queryKey: ["interactions", "one", id, lang],
    queryFn: async ({ signal }) => {
      const params = { path: { id }, query: { language: lang } }
      // As text: what is approved is shown with all digits of its numbers.
      const text = await call(client.GET("/api/v1/interactions/{id}", { params, parseAs: "text", signal }))
      return parse<Question>(text)
    },
  })
}

/** How a question is answered: by one who is asked, or by an admin in their place, who has to say why. */
export type Sending = { answer: unknown; reason?: string }

/** useAnswer sends an answer, with the hash of what was looked at. */
export function useAnswer(q: Question) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ answer, reason }: Sending): Promise<Schemas["Interaction"]> => {
      const params = { path: { id: q.id } }
      const seen = q.arguments_hash ? { arguments_hash: q.arguments_hash } : {}
      return reason === undefined
        ? call(client.POST("/api/v1/interactions/{id}/respond", { params, body: { response_data: answer, ...seen } }))
        : call(client.POST("/api/v1/interactions/{id}/override", { params, body: { response_data: answer, reason, ...seen } }))
    },
    onSettled: () => void queries.invalidateQueries({ queryKey: ["interactions"] }),
  })
}
