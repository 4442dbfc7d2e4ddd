import { NativeSelect, Stack, Text } from "@mantine/core"
import { IconTrash, IconX } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import type { ConnectionDef, Definition } from "@/graph/definition"
import { type Kinds, keyOf, outputKeys } from "@/graph/keys"
import { Code, type CodeLanguage } from "@/parts/code"
import { Act } from "./drawer"
import { Side } from "./side"
import type { FileProblem } from "./use_problems"
import classes from "./editor.module.css"

type Props = {
  wire: ConnectionDef
  definition: Definition
  kinds: Kinds
  problems: FileProblem[]
  readOnly: boolean
  onKey: (key: string) => void
  onConversion: (text: string) => void
  onDelete: () => void
  onClose: () => void
}

// The server decides in the same way what a function is written in.
const languageOf = (text: string): CodeLanguage => (/\b(def|lambda)\b/.test(text) ? "python" : /=>|\bfunction\b/.test(text) ? "javascript" : "expression")

/** WireDrawer shows a connection: which output it takes, and the function that changes what it carries. */
export function WireDrawer({ wire, definition, kinds, problems, readOnly, onKey, onConversion, onDelete, onClose }: Props) {
  const { t } = useTranslation("editor")
  const node = (id: string) => definition.nodes.find((n) => n.id === id)
  const [from, to] = [node(wire.from), node(wire.to)]
  const keys = from ? outputKeys(from, kinds) : []
  const key = keyOf(wire, keys, from && kinds.get(from.kind))
  const name = `${from?.name ?? wire.from} → ${to?.name ?? wire.to}`
  return (
    <Side name="wire" label={t("wire.title", { name })} width={400}>
      <div className={classes.drawerHead}>
        <Text component="h2" fw={600} fz="sm" style={{ flex: 1, minWidth: 0 }} truncate>
          {name}
        </Text>
        {!readOnly && (
          <Act label={t("delete")} onClick={onDelete}>
            <IconTrash size={16} />
          </Act>
        )}
        <Act label={t("close")} onClick={onClose}>
          <IconX size={16} />
        </Act>
      </div>
      <Stack m="sm" gap="md">
        <NativeSelect label={t("wire.key")} description={t("wire.keyText")} disabled={readOnly} value={key} onChange={(e) => onKey(e.currentTarget.value)} data={keys.includes(key) ? keys : [...keys, key]} />
        <Stack gap={4}>
          <Text fz="sm" fw={500}>
            {t("wire.conversion")}
          </Text>
          <Text fz="xs" c="dimmed" id="conversion-about">
            {t("wire.conversionText")}
          </Text>
          <Code value={wire.conversion} onChange={onConversion} language={languageOf(wire.conversion)} label={t("wire.conversion")} describedBy="conversion-about" minLines={4} maxLines={24} readOnly={readOnly} placeholder="{name: value.name}" invalid={problems.some((p) => p.severity === "error")} />
          {problems.map((p, i) => (
            <Text key={i} fz="xs" c="var(--state-red)" role="alert">
              {p.message}
            </Text>
          ))}
        </Stack>
      </Stack>
    </Side>
  )
}
