import { useQuery } from "@tanstack/react-query"
import { call, client, type Schemas } from "@/api/client"
import { language } from "@/words"

export type Example = Schemas["Example"]

/** useExamples lists the workflows that come with the program. */
export function useExamples() {
  return useQuery({ queryKey: ["examples"], queryFn: ({ signal }) => call(client.GET("/api/v1/examples", { signal })), staleTime: Infinity })
}

/** byHand says whether an example can be run at once; the others have a trigger and are deployed. */
export const byHand = (e: Example) => !(e.needs ?? []).includes("deploy")

/** beginExample keeps the workflow if it is not there yet and, if it is run by hand, starts it. It returns the address to look at then. */
export async function beginExample(e: Example): Promise<string> {
  const { workflow, inputs, inputs_zh } = await call(client.POST("/api/v1/examples/{name}", { params: { path: { name: e.name } } }))
  const id = encodeURIComponent(workflow.id)
  if (!byHand(e)) return `/workflows/${id}?tab=triggers`
  const started = await call(client.POST("/api/v1/workflows/{id}/execute", { params: { path: { id: workflow.id }, header: { "Idempotency-Key": crypto.randomUUID() } }, body: { inputs: (language() === "zh" && inputs_zh) || inputs || {}, language: language() } }))
  return `/executions/${encodeURIComponent(started.execution_id)}`
}
