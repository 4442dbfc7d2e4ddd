import { QueryClient } from "@tanstack/react-query"
import { Failure } from "./client"

/** queries keeps what the server has said. What did not work because the server was away is asked again by itself; what was refused is not. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (count, error) => error instanceof Failure && error.away && count < 60,
      retryDelay: (count) => Math.min(500 * 2 ** count, 5_000),
      networkMode: "always",
    },
    mutations: { retry: false, networkMode: "always" },
  },
})
