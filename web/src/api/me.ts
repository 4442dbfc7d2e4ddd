import { useQuery } from "@tanstack/react-query"
import { call, client } from "./client"

/** useMe is who is logged in. */
export function useMe() {
  return useQuery({ queryKey: ["me"], queryFn: ({ signal }) => call(client.GET("/api/v1/users/me", { signal })), staleTime: 60_000 })
}

/** useRole says whether the user has one of the roles; an admin has each. Buttons that would be refused are not shown. */
export function useRole(...roles: string[]): boolean {
  const { data } = useMe()
  return !!data && (data.roles ?? []).some((r) => r === "admin" || roles.includes(r))
}
