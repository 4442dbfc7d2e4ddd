import { MultiSelect, TagsInput } from "@mantine/core"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { useForm } from "../context"
import { useNames } from "../names"
import { isWrong } from "../problems"
import { asSchema, hasPlaceholder, offered, typesOf } from "../schema"
import { Known } from "./known"
import type { EditorProps } from "./types"

/** TagsEditor edits a list of short values: texts, numbers, names of records, or some of a few. */
export function TagsEditor({ schema, value, onChange, describedBy, id, label, problems }: EditorProps) {
  const { t } = useTranslation("kindform")
  const { completions, readOnly } = useForm()
  const names = useNames(schema["x-names"])
  const [search, setSearch] = useState("")
  const items = asSchema(schema.items)
  const before: unknown[] = value === undefined || value === null ? [] : Array.isArray(value) ? value : [value]
  const shown = before.map(String)
  const numbers = typesOf(items).length > 0 && typesOf(items).every((x) => x === "integer" || x === "number")
  const change = (next: string[]) => {
    const kept = [...before]
    const list = next.map((text) => {
      // A value that was there keeps its type.
      const at = kept.findIndex((k) => String(k) === text)
      if (at >= 0) return kept.splice(at, 1)[0]
      return numbers && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
    })
    // One text is one text where a text is allowed too: a placeholder may stand for all of the list.
    if (list.length === 1 && !Array.isArray(value) && (typesOf(schema).length === 0 || typesOf(schema).includes("string"))) return onChange(list[0])
    onChange(list.length === 0 ? undefined : list)
  }
  const common = { id, size: "sm" as const, "aria-label": label, "aria-describedby": describedBy, error: isWrong(problems), readOnly, value: shown, onChange: change }
  if (items.enum && shown.every((v) => items.enum!.includes(v))) {
    // The order in which they were chosen is that of the list.
    return <MultiSelect {...common} data={offered({ ...items, "x-older-values": schema["x-older-values"] }).concat(shown.filter((v) => (schema["x-older-values"] ?? []).includes(v)))} placeholder={shown.length ? undefined : t("chooseSome")} />
  }
  const known = names.data?.map((n) => n.value) ?? []
  const paths = hasPlaceholder(search) ? completions.filter((c) => c.in !== "expression").map((c) => `{{${c.path}}}`) : []
  return (
    <>
      <TagsInput
        {...common}
        data={[...new Set([...known, ...paths])].filter((v) => !shown.includes(v))}
        searchValue={search}
        onSearchChange={setSearch}
        splitChars={[]}
        allowDuplicates
        acceptValueOnBlur
        maxDropdownHeight={280}
        placeholder={shown.length || readOnly ? undefined : t("addWithEnter")}
      />
      <Known text={shown.join("\n")} />
    </>
  )
}
