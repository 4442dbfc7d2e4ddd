import { Autocomplete, Text } from "@mantine/core"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useForm } from "../context"
import { useNames } from "../names"
import { isWrong } from "../problems"
import { hasPlaceholder } from "../schema"
import type { EditorProps } from "./types"

/** NameEditor names a record of the workspace: one that is there, or a text, since what is missing may be made later. */
export function NameEditor({ schema, name, value, onChange, describedBy, id, label, problems }: EditorProps) {
  const { t } = useTranslation("kindform")
  const { kind, completions, readOnly } = useForm()
  const sort = /(^|_)credential_id$/.test(name) ? "credential" : (schema["x-names"] ?? "")
  const names = useNames(sort)
  const fitting = name === "credential_id" ? kind.needs?.credential : undefined
  const all = (names.data ?? []).filter((n) => (sort === "credential" ? !fitting?.length || fitting.includes(n.type ?? "") : sort === "template" ? !n.type || n.type === kind.name : true))
  const text = typeof value === "string" ? value : ""
  // Who opens the list of a name that is written already wants to see the others.
  const [searching, setSearching] = useState(false)
  const typing = hasPlaceholder(text)
  const data = [...new Set([...all.map((n) => n.value), ...(typing ? completions.filter((c) => c.in !== "expression").map((c) => `{{${c.path}}}`) : [])])]
  const chosen = all.find((n) => n.value === text)
  const hint = chosen?.title && chosen.title !== text ? chosen.title : undefined
  return (
    <>
      <Autocomplete
        id={id}
        size="sm"
        aria-label={label}
        aria-describedby={describedBy}
        error={isWrong(problems)}
        readOnly={readOnly}
        value={text}
        onChange={(next) => {
          setSearching(true)
          onChange(next === "" ? undefined : next)
        }}
        onFocus={() => setSearching(false)}
        filter={searching ? undefined : ({ options }) => options}
        data={data}
        limit={50}
        maxDropdownHeight={280}
        placeholder={schema.default === undefined ? t(`pick.${sort}`, { defaultValue: t("pick.any") }) : String(schema.default)}
        renderOption={({ option }) => {
          const n = all.find((x) => x.value === option.value)
          return (
            <div>
              <Text fz="sm">{option.value}</Text>
              {(n?.title || n?.hint) && (
                <Text fz="xs" c="dimmed" lineClamp={1}>
                  {[n.title !== n.value ? n.title : undefined, n.hint].filter(Boolean).join(" · ")}
                </Text>
              )}
            </div>
          )
        }}
      />
      {hint && (
        <Text fz="xs" c="dimmed">
          {hint}
        </Text>
      )}
      {names.data && all.length === 0 && text === "" && !readOnly && (
        <Text fz="xs" c="dimmed">
          {sort === "credential" && fitting?.length ? t("noCredential", { types: fitting.join(", ") }) : t("noneYet")}
        </Text>
      )}
    </>
  )
}
