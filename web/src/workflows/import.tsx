import { Alert, Anchor, Button, CloseButton, FileButton, Group, List, Modal, Paper, Stack, Text, Textarea } from "@mantine/core"
import { useMediaQuery } from "@mantine/hooks"
import { IconFile, IconInfoCircle } from "@tabler/icons-react"
import { useEffect, useRef, useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { useAct } from "@/api/act"
import { call, client, Failure, type Schemas } from "@/api/client"
import { createWorkflow, putWorkflow } from "@/api/definition"
import { Failed } from "@/parts/states"
import classes from "./import.module.css"
import { type Given, idOf, isOther } from "./import_files"
import { ImportedFileReport } from "./import_report"

/** Outcome is what becomes of one file: the report of the server on a file of another system, or how a definition of this product was kept. */
type Outcome = { given: Given; told?: Schemas["ImportedFile"]; saved?: Schemas["Saved"]; error?: unknown }

const sort = async (given: Given[]) => {
  const other = await Promise.all(given.map((g) => isOther(g.text)))
  return given.map((g, i) => ({ given: g, other: other[i]! }))
}

const report = (files: Given[], dry: boolean) => call(client.POST("/api/v1/import", { body: { files: files.map((g) => ({ name: g.name || "import", content: g.text })), dry_run: dry } }))

/** importAll tells what would become of files, or keeps them. What fails with one is told of that one. */
async function importAll(sorted: { given: Given; other: boolean }[], dry: boolean): Promise<Outcome[]> {
  const others = sorted.filter((s) => s.other).map((s) => s.given)
  const told = others.length ? ((await report(others, dry)).files ?? []) : []
  const outcomes: Outcome[] = []
  for (const { given, other } of sorted) {
    if (other) {
      const one = told[others.indexOf(given)]
      outcomes.push({ given, told: one && { ...one, name: given.name } })
    } else if (dry) outcomes.push({ given })
    else
      try {
        outcomes.push({ given, saved: await createWorkflow(given.text) })
      } catch (error) {
        outcomes.push({ given, error })
      }
  }
  return outcomes
}

/**
 * ImportWorkflow makes workflows of files or of a text: definitions, YAML or JSON, which are kept as they are, and files of other systems. What becomes of the nodes of those
 * is shown before they are kept.
 */
export function ImportWorkflow({ dropped, onClose }: { dropped: File[]; onClose: () => void }) {
  const { t } = useTranslation("workflows")
  const narrow = useMediaQuery("(max-width: 48em)")
  const [given, setGiven] = useState<Given[]>([])
  const [taken, setTaken] = useState<string>()
  const [saved, setSaved] = useState<Schemas["Saved"]>()
  const [outcomes, setOutcomes] = useState<{ kept: boolean; list: Outcome[] }>()
  const keep = useAct((id: string | undefined) => (id ? putWorkflow(id, text) : createWorkflow(text)), { stale: ["workflows"], quiet: true, then: setSaved })
  const look = useAct((as: { given: Given; other: boolean }[]) => importAll(as, true), { stale: [], quiet: true, then: (list) => setOutcomes({ kept: false, list }) })
  const text = given[0]?.text ?? ""
  const forget = () => {
    keep.reset()
    look.reset()
    setTaken(undefined)
  }
  const send = async (id?: string) => {
    forget()
    const sorted = await sort(given)
    if (given.length > 1 || sorted.some((s) => s.other)) return look.mutate(sorted)
    try {
      await keep.mutateAsync(id)
    } catch (error) {
      if (error instanceof Failure && error.status === 409) setTaken(await idOf(text).catch(() => undefined))
    }
  }
  const read = async (files: File[]) => {
    if (!files.length) return
    forget()
    setOutcomes(undefined)
    setSaved(undefined)
    setGiven(await Promise.all(files.map(async (f) => ({ name: f.name, text: await f.text() }))))
  }
  useEffect(() => {
    void read(dropped)
    // Only what is dropped is news here.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [dropped])
  return (
    <Modal opened onClose={onClose} title={t("import.title")} size={outcomes ? "xl" : "lg"} fullScreen={narrow} closeButtonProps={{ "aria-label": t("places:close") }}>
      {saved ? (
        <Imported saved={saved} onClose={onClose} />
      ) : outcomes ? (
        <Report kept={outcomes.kept} outcomes={outcomes.list} onBack={() => setOutcomes(undefined)} onKept={(list) => setOutcomes({ kept: true, list })} onClose={onClose} />
      ) : (
        <Stack gap="sm">
          <Text>{t("import.text")}</Text>
          <Group gap="sm" className={classes.place}>
            <FileButton multiple onChange={(files) => void read(files)} accept=".yaml,.yml,.json,application/json,application/yaml,text/yaml">
              {(props) => (
                <Button {...props} variant="default" leftSection={<IconFile size={16} />}>
                  {t("import.choose")}
                </Button>
              )}
            </FileButton>
            <Text c="dimmed" style={{ overflowWrap: "anywhere" }}>
              {given.length === 1 && given[0]!.name ? given[0]!.name : t("import.drop")}
            </Text>
          </Group>
          {given.length > 1 ? (
            <ul className={classes.list} aria-label={t("import.files")}>
              {given.map((g, i) => (
                <Group key={i} component="li" gap="xs" justify="space-between" wrap="nowrap" className={classes.node}>
                  <Text fz="sm">{g.name}</Text>
                  <CloseButton aria-label={t("import.leaveOut", { name: g.name })} onClick={() => setGiven(given.filter((o) => o !== g))} />
                </Group>
              ))}
            </ul>
          ) : (
            <Textarea label={t("import.paste")} value={text} onChange={(e) => setGiven([{ name: given[0]?.name ?? "", text: e.currentTarget.value }])} autosize minRows={8} maxRows={18} spellCheck={false} styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }} />
          )}
          {keep.error || look.error ? <Failed error={keep.error ?? look.error} lost={t("import.notKept")} /> : null}
          <Group justify="flex-end">
            {keep.error instanceof Failure && !keep.error.away && !taken && (
              <Button variant="default" onClick={() => look.mutate(given.map((g) => ({ given: g, other: true })))}>
                {t("import.asOther")}
              </Button>
            )}
            {taken && (
              <Button variant="default" onClick={() => void send(taken)}>
                {t("import.revision", { id: taken })}
              </Button>
            )}
            <Button loading={keep.isPending || look.isPending} disabled={given.length === 0 || given.every((g) => g.text.trim() === "")} onClick={() => void send()}>
              {t("import.verb")}
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  )
}

type ReportProps = { outcomes: Outcome[]; kept: boolean; onBack: () => void; onKept: (list: Outcome[]) => void; onClose: () => void }

/** Report shows what becomes of each file before it is kept, and what became of it afterwards. */
function Report({ outcomes, kept, onBack, onKept, onClose }: ReportProps) {
  const { t } = useTranslation("workflows")
  const head = useRef<HTMLDivElement>(null)
  // What was pressed is gone: who uses the keyboard goes on at the report.
  useEffect(() => head.current?.focus(), [kept])
  const act = useAct(() => importAll(outcomes.map((o) => ({ given: o.given, other: !!o.told })), false), { stale: ["workflows", "credentials"], quiet: true, then: onKept })
  const workflows = outcomes.flatMap((o) => o.told?.workflows ?? [])
  const ready = outcomes.filter((o) => !o.told).length + workflows.filter((w) => w.valid && !w.error).length
  const done = outcomes.filter((o) => o.saved).length + workflows.filter((w) => w.workflow_id).length
  return (
    <Stack gap="sm">
      <Alert ref={head} tabIndex={-1} role="status" color={kept ? (done ? "green" : "red") : "blue"} icon={<IconInfoCircle />} title={kept ? t("import.keptCount", { count: done }) : t("import.before")}>
        {kept ? t("import.nothingRuns") : t("import.beforeText")}
      </Alert>
      {outcomes.map((o, i) => (o.told ? <ImportedFileReport key={i} file={o.told} kept={kept} /> : <OwnFile key={i} outcome={o} />))}
      {act.error ? <Failed error={act.error} lost={t("import.maybeKept")} /> : null}
      <Group justify="flex-end">
        {kept ? (
          <Button variant="default" onClick={onClose}>
            {t("places:close")}
          </Button>
        ) : (
          <>
            <Button variant="default" onClick={onBack}>
              {t("import.back")}
            </Button>
            <Button loading={act.isPending} disabled={ready === 0} onClick={() => act.mutate()}>
              {t("import.keep", { count: ready })}
            </Button>
          </>
        )}
      </Group>
    </Stack>
  )
}

/** OwnFile is a definition of this product among several files. */
function OwnFile({ outcome: { given, saved, error } }: { outcome: Outcome }) {
  const { t } = useTranslation("workflows")
  return (
    <Paper withBorder p="sm">
      <Stack gap="xs">
        <Group justify="space-between" gap="xs">
          <Text fw={600} style={{ overflowWrap: "anywhere" }}>
            {given.name}
          </Text>
          {saved && (
            <Anchor component={Link} to={`/workflows/${encodeURIComponent(saved.workflow.id)}`} fw={600}>
              {t("import.see")}
            </Anchor>
          )}
        </Group>
        {error ? <Failed error={error} /> : <Text fz="sm">{saved ? t("import.done", { name: saved.workflow.name || saved.workflow.id, revision: saved.workflow.revision }) : t("import.own")}</Text>}
      </Stack>
    </Paper>
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
