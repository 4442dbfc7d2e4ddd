import { Alert, Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { stringify } from "yaml"
import { isFields } from "@/graph/definition"
import { Code } from "@/parts/code"
import { readText } from "../rewrite"

type Props = { name: string; fields: Record<string, unknown>; taken: ReadonlySet<string>; onDone: (test: Record<string, unknown>) => void; onClose: () => void }

/** EditTest changes the name of a test and what it says, in the words of the file. */
export function EditTest({ name, fields, taken, onDone, onClose }: Props) {
  const { t } = useTranslation("tests")
  const [title, setTitle] = useState(name)
  const [text, setText] = useState(() => {
    const { name: _, ...rest } = fields
    return Object.keys(rest).length ? stringify(rest, { lineWidth: 0 }) : ""
  })
  const [wrong, setWrong] = useState<string>()
  const done = () => {
    const chosen = title.trim()
    if (!chosen) return setWrong(t("edit.noName"))
    if (taken.has(chosen)) return setWrong(t("edit.taken", { name: chosen }))
    const read = readText(text.trim() || "{}")
    if (read.broken) return setWrong(t("edit.broken", { line: read.broken.line, message: read.broken.message }))
    if (!isFields(read.value) || "name" in read.value) return setWrong(t("edit.noFields"))
    onDone({ name: chosen, ...read.value })
  }
  return (
    <Modal opened onClose={onClose} size="xl" title={t(name ? "edit.title" : "edit.new")} closeButtonProps={{ "aria-label": t("edit.close") }}>
      <Stack>
        <TextInput
          label={t("edit.name")}
          value={title}
          onChange={(e) => {
            setTitle(e.currentTarget.value)
            setWrong(undefined)
          }}
          data-autofocus
        />
        <Text fz="sm" c="dimmed">
          {t("edit.text")}
        </Text>
        <Code
          value={text}
          onChange={(next) => {
            setText(next)
            setWrong(undefined)
          }}
          language="yaml"
          label={t("edit.fields")}
          minLines={8}
          maxLines={26}
          lineNumbers
        />
        {wrong && (
          <Alert color="red" role="alert">
            {wrong}
          </Alert>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t("edit.cancel")}
          </Button>
          <Button onClick={done}>{t("edit.done")}</Button>
        </Group>
      </Stack>
    </Modal>
  )
}
