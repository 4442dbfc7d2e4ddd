import { Button, Group, List, Modal, Stack, Text, TextInput } from "@mantine/core"
import { useMemo, useState } from "react"
import { useTranslation } from "react-i18next"
import type { Definition } from "@/graph/definition"
import { rename } from "./rename"
import type { Plain } from "./rewrite"

type Props = { id: string; value: Plain; definition: Definition; onRename: (to: string) => void; onClose: () => void }

const most = 8

/** RenameDialog gives a node another id. It says beforehand what is changed with it, and where somebody has to look. */
export function RenameDialog({ id, value, definition, onRename, onClose }: Props) {
  const { t } = useTranslation("editor")
  const [text, setText] = useState(id)
  const to = text.trim()
  const taken = to !== id && definition.nodes.some((n) => n.id === to || n.name === to)
  const wrong = to === "" ? t("rename.empty") : /[\s{}]/.test(to) ? t("rename.signs") : taken ? t("rename.taken") : undefined
  const found = useMemo(() => rename(value, id, `${id}_`), [value, id])
  return (
    <Modal opened onClose={onClose} title={t("rename.title", { id })} closeButtonProps={{ "aria-label": t("close") }}>
      <form
        onSubmit={(e) => {
          e.preventDefault()
          if (!wrong && to !== id) onRename(to)
        }}
      >
        <Stack>
          <TextInput label={t("rename.label")} value={text} error={wrong} onChange={(e) => setText(e.currentTarget.value)} data-autofocus ff="monospace" />
          <Text fz="sm">
            {t("rename.changes", { connections: found.connections, placeholders: found.placeholders, lists: found.lists })}
          </Text>
          {found.left.length > 0 && (
            <Stack gap={4}>
              <Text fz="sm">{t("rename.left", { id })}</Text>
              <List size="sm">
                {found.left.slice(0, most).map((p) => (
                  <List.Item key={`${p.of} ${p.field}`}>
                    {p.of}: <code>{p.field}</code>
                  </List.Item>
                ))}
                {found.left.length > most && <List.Item>…</List.Item>}
              </List>
            </Stack>
          )}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t("cancel")}
            </Button>
            <Button type="submit" disabled={!!wrong || to === id}>
              {t("rename.act")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
