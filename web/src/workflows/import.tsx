import { Alert, Anchor, Button, FileButton, Group, List, Modal, Stack, Text, Textarea } from "@mantine/core"
import { IconFile } from "@tabler/icons-react"
import { useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { useAct } from "@/api/act"
import { Failure, type Schemas } from "@/api/client"
import { createWorkflow, putWorkflow } from "@/api/definition"
import { Failed } from "@/parts/states"

// idOf finds the id that a file asks for, so that one which is there already can be given another revision.
async function idOf(text: string): Promise<string | undefined> {
  const { parse } = await import("yaml")
  const file = parse(text) as { metadata?: { id?: unknown } } | null
  return typeof file?.metadata?.id === "string" ? file.metadata.id : undefined
}

/** ImportWorkflow takes a definition from a file or from the clipboard, YAML or JSON, and keeps it as a workflow. */
export function ImportWorkflow({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("workflows")
  const [text, setText] = useState("")
  const [file, setFile] = useState("")
  const [taken, setTaken] = useState<string>()
  const [saved, setSaved] = useState<Schemas["Saved"]>()
  const keep = useAct((id: string | undefined) => (id ? putWorkflow(id, text) : createWorkflow(text)), { stale: ["workflows"], quiet: true, then: setSaved })
  const send = async (id?: string) => {
    setTaken(undefined)
    try {
      await keep.mutateAsync(id)
    } catch (error) {
      if (error instanceof Failure && error.status === 409) setTaken(await idOf(text).catch(() => undefined))
    }
  }
  const read = async (f: File | null) => {
    if (!f) return
    setFile(f.name)
    setText(await f.text())
    keep.reset()
    setTaken(undefined)
  }
  return (
    <Modal opened onClose={onClose} title={t("import.title")} size="lg" closeButtonProps={{ "aria-label": t("places:close") }}>
      {saved ? (
        <Imported saved={saved} onClose={onClose} />
      ) : (
        <Stack gap="sm">
          <Text>{t("import.text")}</Text>
          <Group gap="sm">
            <FileButton onChange={(f) => void read(f)} accept=".yaml,.yml,.json,application/json,application/yaml,text/yaml">
              {(props) => (
                <Button {...props} variant="default" leftSection={<IconFile size={16} />}>
                  {t("import.choose")}
                </Button>
              )}
            </FileButton>
            <Text c="dimmed">{file}</Text>
          </Group>
          <Textarea label={t("import.paste")} value={text} onChange={(e) => setText(e.currentTarget.value)} autosize minRows={8} maxRows={18} spellCheck={false} styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }} />
          {keep.error ? <Failed error={keep.error} lost={t("import.notKept")} /> : null}
          <Group justify="flex-end">
            {taken && (
              <Button variant="default" onClick={() => void send(taken)}>
                {t("import.revision", { id: taken })}
              </Button>
            )}
            <Button loading={keep.isPending} disabled={text.trim() === ""} onClick={() => void send()}>
              {t("import.verb")}
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  )
}

function Imported({ saved, onClose }: { saved: Schemas["Saved"]; onClose: () => void }) {
  const { t } = useTranslation("workflows")
  const { workflow: w, problems } = saved
  return (
    <Stack gap="sm">
      <Alert color="green" title={t("import.done", { name: w.name || w.id, revision: w.revision })}>
        <Anchor component={Link} to={`/workflows/${encodeURIComponent(w.id)}`}>
          {t("import.see")}
        </Anchor>
      </Alert>
      {(problems ?? []).length > 0 && (
        <>
          <Text fw={600}>{t("import.problems")}</Text>
          <List size="sm">
            {(problems ?? []).map((p) => (
              <List.Item key={`${p.path} ${p.message}`}>{p.message}</List.Item>
            ))}
          </List>
        </>
      )}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          {t("places:close")}
        </Button>
      </Group>
    </Stack>
  )
}
