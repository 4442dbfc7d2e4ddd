import { ActionIcon, Button, Group, Stack, Text, TextInput } from "@mantine/core"
import { IconPlus, IconTrash } from "@tabler/icons-react"
import { useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { useForm } from "../context"
import { type Placed, within } from "../problems"
import { isObject } from "../schema"
import { withRows } from "../values"
import classes from "../kindform.module.css"
import { DataEditor } from "./data"

type Row = { row: number; key: string; value: unknown }
type Props = { value: unknown; onChange: (value: unknown) => void; label: string; describedBy?: string; id: string; problems: Placed[]; keyWord?: string; valueWord?: string; addWord?: string; fixedKeys?: boolean }

/**
 * MapEditor edits an object whose keys are free: a line per key, in their order. A line that has no key or no value yet is not handed on; while a key is there twice, nothing is.
 */
export function MapEditor({ value, onChange, label, describedBy, id, problems, keyWord, valueWord, addWord, fixedKeys = false }: Props) {
  const { t } = useTranslation("kindform")
  const { readOnly } = useForm()
  const next = useRef(0)
  const make = (v: unknown): Row[] => Object.entries(isObject(v) ? v : {}).map(([key, x]) => ({ row: next.current++, key, value: x }))
  const [rows, setRows] = useState(() => make(value))
  const [told, setTold] = useState(value)
  const [added, setAdded] = useState(-1)
  if (told !== value) {
    setTold(value)
    if (JSON.stringify(told) !== JSON.stringify(value)) setRows(merged(rows, value, make))
  }
  const change = (list: Row[]) => {
    setRows(list)
    const object = withRows(list.filter((r) => r.key !== "" && r.value !== undefined))
    if (!object) return
    const out = Object.keys(object).length === 0 ? undefined : object
    setTold(out)
    onChange(out)
  }
  const add = () => {
    setAdded(next.current)
    setRows([...rows, { row: next.current++, key: "", value: undefined }])
  }
  const twice = (r: Row) => r.key !== "" && rows.some((other) => other !== r && other.key === r.key)
  return (
    <Stack gap={6} role="group" aria-label={label} aria-describedby={describedBy} id={id}>
      {rows.map((r, i) => (
        <div key={r.row} className={classes.row} data-row={r.key}>
          <TextInput
            size="sm"
            className={classes.key}
            aria-label={t("keyOf", { word: keyWord ?? t("key"), number: i + 1, label })}
            placeholder={keyWord ?? t("key")}
            value={r.key}
            readOnly={readOnly || fixedKeys}
            error={twice(r) ? t("twice") : r.key === "" && r.value !== undefined ? t("noKey") : undefined}
            autoFocus={r.row === added}
            onChange={(e) => change(rows.map((x) => (x === r ? { ...r, key: e.currentTarget.value } : x)))}
          />
          <div className={classes.cell}>
            <DataEditor
              id={`${id}-${r.row}`}
              label={t("valueOf", { word: valueWord ?? t("value"), key: r.key || i + 1, label })}
              value={r.value}
              problems={within(problems, r.key)}
              onChange={(v) => change(rows.map((x) => (x === r ? { ...r, value: v } : x)))}
            />
            {within(problems, r.key).map((p) => (
              <Text key={p.message} fz="xs" c="var(--state-red)">
                {p.message}
              </Text>
            ))}
          </div>
          {!readOnly && (
            <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t("removeKey", { key: r.key || i + 1 })} onClick={() => change(rows.filter((x) => x !== r))}>
              <IconTrash size={16} />
            </ActionIcon>
          )}
        </div>
      ))}
      {!readOnly && !fixedKeys && (
        <Group>
          <Button size="compact-sm" variant="subtle" leftSection={<IconPlus size={14} />} onClick={add}>
            {addWord ?? t("addEntry")}
          </Button>
        </Group>
      )}
    </Stack>
  )
}

/** merged takes over what came from outside, and keeps the lines that are being written. */
function merged(rows: Row[], value: unknown, make: (v: unknown) => Row[]): Row[] {
  const unfinished = rows.filter((r) => r.key === "" || r.value === undefined)
  const fresh = make(value).map((r) => ({ ...r, row: rows.find((old) => old.key === r.key)?.row ?? r.row }))
  return [...fresh, ...unfinished]
}
