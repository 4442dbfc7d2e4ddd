import { ActionIcon, Button, Group, Stack, Text } from "@mantine/core"
import { IconArrowDown, IconArrowUp, IconPlus, IconTrash } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import { useForm } from "../context"
import { ObjectFields } from "../fields"
import { within } from "../problems"
import { asSchema, isObject, singleOf, typesOf, type Values } from "../schema"
import { movedItem, short, withItem, withoutItem } from "../values"
import classes from "../kindform.module.css"
import { ProblemLine } from "../field"
import { DataEditor } from "./data"
import type { EditorProps } from "./types"

/** ObjectsEditor edits a list of objects, a card for each; where something else is allowed too, a text is a line. */
export function ObjectsEditor({ name, schema, value, onChange, label, describedBy, id, problems, at }: EditorProps & { at: string }) {
  const { t } = useTranslation("kindform")
  const { readOnly } = useForm()
  const items = asSchema(schema.items)
  const list = Array.isArray(value) ? (value as unknown[]) : []
  const mixed = typesOf(items).length === 0
  const one = singleOf(name)
  const hand = (next: unknown[]) => onChange(next.length === 0 ? undefined : next)
  return (
    <Stack gap={8} role="group" aria-label={label} aria-describedby={describedBy} id={id}>
      {list.map((item, i) => {
        const own = within(problems, String(i))
        const title = t("item", { one, number: i + 1 })
        return (
          <div key={i} className={classes.card} role="group" aria-label={title} data-item={`${at}.${i}`}>
            <Group justify="space-between" wrap="nowrap" className={classes.cardHead}>
              <Text fz="xs" fw={600} truncate>
                {title}
                <Text span fz="xs" c="dimmed" fw={400}>
                  {summary(item)}
                </Text>
              </Text>
              {!readOnly && (
                <Group gap={2} wrap="nowrap">
                  <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t("moveUp", { title })} disabled={i === 0} onClick={() => hand(movedItem(list, i, i - 1))}>
                    <IconArrowUp size={14} />
                  </ActionIcon>
                  <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t("moveDown", { title })} disabled={i === list.length - 1} onClick={() => hand(movedItem(list, i, i + 1))}>
                    <IconArrowDown size={14} />
                  </ActionIcon>
                  <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t("removeItem", { title })} onClick={() => hand(withoutItem(list, i))}>
                    <IconTrash size={14} />
                  </ActionIcon>
                </Group>
              )}
            </Group>
            {own
              .filter((p) => p.way.length === 0)
              .map((p) => (
                <ProblemLine key={p.message} problem={p} />
              ))}
            {isObject(item) ? (
              <ObjectFields schema={items} value={item as Values} onChange={(v) => onChange(withItem(list, i, v))} problems={own} at={`${at}.${i}`} nested />
            ) : (
              <DataEditor id={`${id}-${i}`} label={title} value={item} problems={own} onChange={(v) => onChange(withItem(list, i, v ?? ""))} />
            )}
          </div>
        )
      })}
      {!readOnly && (
        <Group gap="xs">
          <Button size="compact-sm" variant="subtle" leftSection={<IconPlus size={14} />} onClick={() => onChange([...list, {}])}>
            {t("addOne", { one })}
          </Button>
          {mixed && (
            <Button size="compact-sm" variant="subtle" color="gray" leftSection={<IconPlus size={14} />} onClick={() => onChange([...list, ""])}>
              {t("addText")}
            </Button>
          )}
        </Group>
      )}
    </Stack>
  )
}

/** summary is the first thing that an object says of itself. */
function summary(item: unknown): string {
  if (!isObject(item)) return ""
  const first = Object.values(item).find((v) => typeof v === "string" && v !== "")
  return first === undefined ? "" : ` · ${short(first, 40)}`
}
