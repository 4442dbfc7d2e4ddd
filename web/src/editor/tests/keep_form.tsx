import { Anchor, Button, Group, Text, TextInput } from "@mantine/core"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import type { Definition } from "@/graph/definition"
import type { Plain } from "../rewrite"
import { freeName } from "./file"
import { testOf, type Tried } from "./keep"

type Props = { definition: Definition; value: Plain; workflow: string; tried: Tried; name: string; onKeep: (test: Record<string, unknown>) => void }

/** KeepForm writes a run into the file as a test: its pinned data, and what came of them. */
export function KeepForm({ definition, value, workflow, tried, name, onKeep }: Props) {
  const { t } = useTranslation("tests")
  const [text, setText] = useState(() => freeName(value, t(tried.status === "SUCCESS" ? "keep.works" : "keep.fails", { name })))
  const [kept, setKept] = useState<string>()
  const made = testOf(definition, tried)
  if (kept !== undefined)
    return (
      <Text fz="sm" role="status">
        {t("keep.kept", { name: kept })}{" "}
        {workflow !== "new" && (
          <Anchor component={Link} to="?tab=tests" fz="sm">
            {t("keep.open")}
          </Anchor>
        )}
      </Text>
    )
  if ("refusal" in made)
    return (
      <Text fz="sm" c="dimmed">
        {t(`keep.refused.${made.refusal}`)}
      </Text>
    )
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault()
        const chosen = freeName(value, text.trim())
        onKeep({ name: chosen, ...made.test })
        setKept(chosen)
      }}
    >
      <Group align="flex-end" gap="xs">
        <TextInput label={t("keep.label")} description={t("keep.text")} value={text} onChange={(e) => setText(e.currentTarget.value)} style={{ flex: 1 }} />
        <Button type="submit" variant="default" disabled={!text.trim()}>
          {t("keep.act")}
        </Button>
      </Group>
    </form>
  )
}
