import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { useAct } from "@/api/act"
import { call, client, Failure, type Schemas } from "@/api/client"
import { useRole } from "@/api/me"
import { valuesOf } from "@/api/values"
import { language } from "@/words"
import { useFieldWords } from "./field_words"
import type { Value } from "./record"
import { RecordForm } from "./record_form"

type Profile = Schemas["Profile"]
type Provider = Schemas["ProfileProvider"]

const efforts = valuesOf<NonNullable<Schemas["ProfileParameters"]["reasoning_effort"]>>({ low: 1, medium: 1, high: 1 })
const units = { day: ["cost", "tokens", "time_zone"], workflow: ["cost", "tokens"], execution: ["cost", "tokens"] } as const satisfies Record<Schemas["ProfileBudget"]["per"], unknown>
const limits = valuesOf(units).map((per) => ({ per, units: units[per] }))

// A profile has its budgets as a list, at most one per day, workflow and run; the form has them by name.
function formOf({ budget, ...rest }: Partial<Profile>): Value {
  const limit = Object.fromEntries((budget ?? []).map(({ per, ...b }) => [per, b]))
  return Object.keys(limit).length > 0 ? { ...rest, limit } : rest
}

function profileOf({ limit, ...rest }: Value): Profile {
  const { created_time: _, updated_time: __, ...profile } = rest as Profile
  const budget = Object.entries((limit ?? {}) as Record<string, object>).map(([per, b]) => ({ per, ...b })) as Schemas["ProfileBudget"][]
  return budget.length > 0 ? { ...profile, budget } : profile
}

// What the server says of the list is said of the field, so that it is shown there.
function atField(error: unknown, budget: Schemas["ProfileBudget"][]): unknown {
  if (!(error instanceof Failure) || !error.problem?.errors) return error
  const errors = error.problem.errors.map((e) => ({ ...e, path: e.path.replace(/^budget\[(\d+)\]/, (_, i: string) => `limit.${budget[Number(i)]?.per ?? ""}`) }))
  return new Failure(error.status, error.code, error.message, { ...error.problem, errors })
}

/** ProfileForm makes or changes a profile of a model. The providers are those that the server has. */
export function ProfileForm({ start, all, providers, isNew, readOnly, onClose }: { start: Partial<Profile>; all: Profile[]; providers: Provider[]; isNew?: boolean; readOnly?: boolean; onClose: () => void }) {
  const { t } = useTranslation("settings")
  const field = useFieldWords("profiles")
  const mayCredentials = useRole("editor")
  const credentials = useQuery({ queryKey: ["credentials"], queryFn: ({ signal }) => call(client.GET("/api/v1/credentials", { signal })), enabled: mayCredentials })
  const save = useAct(
    (value: Value) => {
      const body = profileOf(value)
      const sent = isNew ? call(client.POST("/api/v1/llm/profiles", { body })) : call(client.PUT("/api/v1/llm/profiles/{id}", { params: { path: { id: start.id ?? "" } }, body }))
      return sent.catch((error: unknown) => {
        throw atField(error, body.budget ?? [])
      })
    },
    { stale: ["profiles", "budgets"], quiet: true, done: (p) => t("saved", { name: p.id }), then: onClose },
  )
  const real = (v: Value) => !providers.some((p) => p.scripted && p.name === v.provider)
  const fit = (credentials.data?.credentials ?? []).filter((c) => providers.some((p) => !p.scripted && p.name === c.type))
  const others = all.filter((p) => p.id !== start.id).map((p) => ({ value: p.id ?? "", label: p.name || p.id || "" }))
  return (
    <RecordForm
      start={formOf(start)}
      verb={t("save")}
      readOnly={readOnly}
      onCancel={onClose}
      onSave={(value) => save.mutateAsync(value)}
      fields={[
        field("id", { kind: "text", disabled: !isNew, placeholder: "main" }),
        field("name", { kind: "text" }),
        field("provider", { kind: "choice", required: true, options: providers.map((p) => ({ value: p.name, label: p.label[language()] })) }),
        field("model", { kind: "text", required: true, placeholder: "gpt-4.1-mini", when: real }),
        field("credential_id", { kind: "choice", options: fit.map((c) => ({ value: c.id, label: `${c.name} (${c.type})` })), when: real }),
        field("base_url", { kind: "text", placeholder: "https://…", when: real }),
        field("script", { kind: "json", when: (v) => !real(v) }),
        field("price.input", { kind: "number" }),
        field("price.output", { kind: "number" }),
        field("price.cached", { kind: "number", more: true }),
        ...limits.flatMap(({ per, units }) => units.map((unit) => field(`limit.${per}.${unit}`, { kind: unit === "time_zone" ? "text" : "number", placeholder: unit === "time_zone" ? "UTC" : t("limits.unlimited"), more: per !== "day" || unit === "time_zone" }))),
        field("parameters.temperature", { kind: "number", when: real, more: true }),
        field("parameters.max_tokens", { kind: "number", when: real, more: true }),
        field("parameters.reasoning_effort", { kind: "choice", options: efforts.map((e) => ({ value: e, label: t(`profiles.effort.${e}`) })), when: real, more: true }),
        field("fallback_profiles", { kind: "choices", options: others, more: true }),
        field("embedding_model", { kind: "text", more: true }),
      ]}
    />
  )
}
