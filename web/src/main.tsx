import "@mantine/core/styles.css"
import "./style.css"
import { QueryClientProvider } from "@tanstack/react-query"
import { MantineProvider } from "@mantine/core"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { RouterProvider } from "react-router/dom"
import { queries } from "./api/queries"
import { router } from "./routes"
import { Notices } from "./shell/notices"
import { theme } from "./shell/theme"
import { prepareWords } from "./words"

// The server makes a new one for each page; styles that the libraries add by script carry it.
const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ""

await prepareWords()
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={queries}>
        <Notices>
          <RouterProvider router={router} />
        </Notices>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
