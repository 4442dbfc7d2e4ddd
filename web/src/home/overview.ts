import { useQuery } from "@tanstack/react-query"
import { call, client, type Schemas } from "@/api/client"
import type { paths } from "@/api/schema"
import { valuesOf } from "@/api/values"

export type Range = NonNullable<NonNullable<paths["/api/v1/statistics"]["get"]["parameters"]["query"]>["range"]>
export const ranges = valuesOf<Range>({ hour: 1, day: 1, week: 1 })
export type Bucket = Schemas["OverviewBucket"]
export type Cause = Schemas["FailureGroup"]

/** useOverview is how all runs went; it is asked again every few seconds while somebody looks. */
export function useOverview(range: Range) {
  return useQuery({
    queryKey: ["executions", "overview", range],
    queryFn: ({ signal }) => call(client.GET("/api/v1/statistics", { params: { query: { range } }, signal })),
    refetchInterval: 5_000,
    placeholderData: (before) => before,
  })
}

/** countOf adds the counts of some statuses; without any it is all executions. */
export function countOf(counts: Record<string, number>, ...statuses: string[]): number {
  return Object.entries(counts).reduce((sum, [status, n]) => (statuses.length === 0 || statuses.includes(status) ? sum + n : sum), 0)
}
