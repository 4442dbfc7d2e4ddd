import { Select, Stack, Switch, TextInput } from "@mantine/core"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, type Schemas } from "@/api/client"
import { Sure } from "@/parts/sure"
import { language } from "@/words"
import type { Value } from "./record"
import { type Field, RecordForm } from "./record_form"

// What an authorization writes; nobody enters it.
const written = ["pending", "expires", "client_expires"]

// fieldOf makes the field of a form of a field of a credential's type.
function fieldOf(f: Schemas["CredentialField"]): Field {
  const same = { name: `data.${f.name}`, label: f.title[language()] || f.name, required: f.required, placeholder: f.default, more: f.name === "base_url" && !f.required }
  if (f.choices?.length) return { ...same, kind: "choice", options: f.choices.map((c) => ({ value: c, label: c })) }
  switch (f.format) {
    case "texts":
      return { ...same, kind: "list" }
    case "port":
      return { ...same, kind: "number" }
    case "document":
    case "objects":
    case "auth":
      return { ...same, kind: "json" }
  }
  return { ...same, kind: f.secret ? "secret" : "text" }
}

/** CredentialForm makes a credential of a type, or gives one another name or other data. Data that is there is never read back: it stays, or is replaced as a whole. */
export function CredentialForm({ types, credential, name = "", onClose }: { types: Schemas["CredentialType"][]; credential?: Schemas["Credential"]; name?: string; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const [type, setType] = useState(credential?.type ?? "")
  const [anew, setAnew] = useState(!credential)
  const [forced, setForced] = useState<Value>()
  const chosen = types.find((x) => x.name === type)
  const keep = async (value: Value, force: boolean) => {
    const body = { name: String(value.name ?? ""), type, ...(anew ? { data: value.data ?? {} } : {}) }
    return credential ? call(client.PUT("/api/v1/credentials/{id}", { params: { path: { id: credential.id }, query: force ? { force } : {} }, body })) : call(client.POST("/api/v1/credentials", { body }))
  }
  const save = useAct(({ value, force }: { value: Value; force: boolean }) => keep(value, force), { stale: ["credentials"], quiet: true, done: (c) => t("saved", { name: c.name }), then: onClose })
  const renamed = (value: Value) => credential !== undefined && value.name !== credential.name
  return (
    <Stack gap="sm">
      <Select
        label={t("credentials.field.type")}
        withAsterisk
        data={types.map((x) => ({ value: x.name, label: x.title[language()] }))}
        value={type || null}
        onChange={(v) => setType(v ?? "")}
        searchable
        disabled={credential !== undefined}
        nothingFoundMessage={t("places:form.nothing")}
      />
      {credential && <Switch label={t("credentials.anew")} description={t("credentials.anewHelp")} checked={anew} onChange={(e) => setAnew(e.currentTarget.checked)} />}
      {!chosen && !credential ? (
        <TextInput label={t("credentials.field.name")} disabled defaultValue={name} description={t("credentials.chooseFirst")} />
      ) : (
        <RecordForm
          key={`${type} ${anew}`}
          start={{ name: credential?.name ?? name }}
          verb={t("save")}
          onCancel={onClose}
          onSave={(value) => (renamed(value) ? Promise.resolve(setForced(value)) : save.mutateAsync({ value, force: false }))}
          fields={[{ name: "name", kind: "text", label: t("credentials.field.name"), help: t("credentials.help.name"), required: true }, ...(anew ? (chosen?.fields ?? []).filter((f) => !written.includes(f.name)).map(fieldOf) : [])]}
        />
      )}
      {forced && (
        <Sure title={t("credentials.renameTitle")} verb={t("credentials.rename")} forceVerb={t("credentials.renameAnyway")} act={(force) => save.mutateAsync({ value: forced, force })} onClose={() => setForced(undefined)}>
          {t("credentials.renameText")}
        </Sure>
      )}
    </Stack>
  )
}
