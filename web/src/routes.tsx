import { createBrowserRouter } from "react-router"
import { Loading } from "./parts/states"
import { Frame } from "./shell/frame"
import { Lost, Wrong } from "./shell/wrong"

// Each area is loaded when somebody goes there. Its module exports Component.
export const router = createBrowserRouter([
  {
    element: <Frame />,
    errorElement: <Wrong />,
    hydrateFallbackElement: <Loading />,
    children: [
      {
        errorElement: <Wrong />,
        children: [
          { index: true, lazy: () => import("./home") },
          { path: "workflows", lazy: () => import("./workflows") },
          { path: "workflows/:id", lazy: () => import("./workflows/one") },
          { path: "executions", lazy: () => import("./executions") },
          { path: "executions/:id", lazy: () => import("./executions/one") },
          { path: "inbox", lazy: () => import("./inbox") },
          { path: "inbox/:id", lazy: () => import("./inbox") },
          { path: "agents", lazy: () => import("./agents") },
          { path: "agents/:id", lazy: () => import("./agents/one") },
          { path: "agents/:id/tasks/:task", lazy: () => import("./agents/one") },
          { path: "docs", lazy: () => import("./docs") },
          { path: "docs/kinds", lazy: () => import("./docs/kinds") },
          { path: "docs/kinds/:kind", lazy: () => import("./docs/kind") },
          { path: "docs/*", lazy: () => import("./docs/one") },
          { path: "settings/*", lazy: () => import("./settings") },
          { path: "*", element: <Lost /> },
        ],
      },
    ],
  },
])
