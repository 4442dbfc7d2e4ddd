import { Alert } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { valuesOf } from "@/api/values"
import { useFieldWords } from "./field_words"
import type { Value } from "./record"
import { RecordForm } from "./record_form"

type Server = Schemas["MCPServer"]
const transports = valuesOf<Server["transport"]>({ http: 1, stdio: 1, sse: 1 })

/** ServerForm registers a tool server or changes one. Nothing is started by that. */
export function ServerForm({ start, isNew, onClose }: { start: Partial<Server>; isNew?: boolean; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const field = useFieldWords("tools")
  const credentials = useQuery({ queryKey: ["credentials"], queryFn: ({ signal }) => call(client.GET("/api/v1/credentials", { signal })) })
  const save = useAct(
    (value: Value) => {
      const { created_time: _, updated_time: __, activated: ___, ...body } = value as Server
      return isNew ? call(client.POST("/api/v1/mcp/servers", { body })) : call(client.PUT("/api/v1/mcp/servers/{id}", { params: { path: { id: start.id ?? "" } }, body }))
    },
    { stale: ["tools"], quiet: true, done: (s) => t("saved", { name: s.id }), then: onClose },
  )
  const process = (v: Value) => v.transport === "stdio"
  const network = (v: Value) => v.transport !== "stdio"
  const logins = (credentials.data?.credentials ?? []).filter((c) => c.type === "mcp_oauth")
  return (
    <RecordForm
      start={start as Value}
      verb={t("save")}
      onCancel={onClose}
      onSave={(value) => save.mutateAsync(value)}
      fields={[
        field("id", { kind: "text", disabled: !isNew, placeholder: "files" }),
        field("name", { kind: "text" }),
        field("description", { kind: "long" }),
        field("transport", { kind: "choice", required: true, options: transports.map((x) => ({ value: x, label: t(`tools.transport.${x}`) })) }),
        field("url", { kind: "text", required: true, placeholder: "https://mcp.example.com/mcp", when: network }),
        field("headers", { kind: "json", when: network }),
        field("credential_id", { kind: "choice", options: logins.map((c) => ({ value: c.id, label: c.name })), when: network }),
        field("command", { kind: "text", required: true, placeholder: "npx", when: process }),
        field("args", { kind: "list", when: process }),
        field("dir", { kind: "text", when: process, more: true }),
        field("env", { kind: "json", when: process }),
        field("timeout_seconds", { kind: "number", placeholder: "60", more: true }),
        field("idle_seconds", { kind: "number", placeholder: "300", more: true }),
        field("disabled", { kind: "switch", more: true }),
      ]}
    >
      {(v) => process(v) && <Alert color="yellow">{t("tools.processWarning")}</Alert>}
    </RecordForm>
  )
}
