import { ActionIcon, Alert, Anchor, Stack, Text, Textarea, TextInput, Tooltip, VisuallyHidden } from "@mantine/core"
import { IconCopy, IconId, IconPlayerPlay, IconTrash, IconX } from "@tabler/icons-react"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useEffect, useMemo, useState } from "react"
import { useTranslation } from "react-i18next"
import { call, client, type Schemas } from "@/api/client"
import { type Definition, type NodeDef, type NoteDef } from "@/graph/definition"
import { familyColor, iconOf } from "@/graph/family"
import type { Kinds } from "@/graph/keys"
import { Data, type Path } from "@/parts/data"
import type { Field } from "@/parts/field"
import { When } from "@/parts/when"
import { language } from "@/words"
import { evaluator } from "./evaluate"
import { fieldAt, type Input, inputOf, withPins } from "./input"
import { readPins } from "./pins"
import type { Plain } from "./rewrite"
import { RenameDialog } from "./rename_dialog"
import { Settings } from "./settings"
import { Side } from "./side"
import { TryNode } from "./try_node"
import type { FileProblem } from "./use_problems"
import classes from "./editor.module.css"

type Props = {
  workflow: string
  definition: Definition
  node: NodeDef
  /** The node as the file has it, with fields that the canvas does not draw. */
  fields: Record<string, unknown>
  kinds: Kinds
  problems: FileProblem[]
  readOnly: boolean
  /** What the whole file says: placeholders of this node can read what others put out. */
  value: Plain
  onName: (name: string) => void
  onConfigurations: (value: Record<string, unknown> | undefined) => void
  onNode: (node: Record<string, unknown>) => void
  onOpen: (id: string) => void
  onRename: (to: string) => void
  onCopy: () => void
  onDelete: () => void
  onClose: () => void
  /** The text of the file, to try this node with; without it nothing can be tried. */
  text?: string
  /** Writes a test into the file. */
  onKeep: (test: Record<string, unknown>) => void
}

/** NodeDrawer shows one node in three columns: what comes in, its settings, what goes out. */
export function NodeDrawer({ workflow, definition, node, fields, kinds, problems, readOnly, value, onName, onConfigurations, onNode, onOpen, onRename, onCopy, onDelete, onClose, text, onKeep }: Props) {
  const { t } = useTranslation("editor")
  const kind = kinds.get(node.kind)
  const tongue = language()
  const Icon = iconOf(node.kind)
  // What is wrong with a field stands at the field.
  const told = problems.filter((p) => !/^nodes\[\d+\]\.(configurations|name|description|input_params|output_params)/.test(p.path ?? "") || !kind)
  const last = useLastRun(workflow, node.id)
  const sources = definition.connections.filter((c) => c.to === node.id).map((c) => definition.nodes.find((n) => n.id === c.from)!)
  const [trying, setTrying] = useState(false)
  const pins = useMemo(() => (trying ? {} : readPins(workflow)), [workflow, trying])
  const input = useMemo(() => inputOf(definition, node, kinds, last?.execution, pins), [definition, node, kinds, last?.execution, pins])
  const known = useMemo(() => withPins(last?.execution, pins), [last?.execution, pins])
  const evaluate = useMemo(() => evaluator(node.id, last?.execution, input, pins), [node.id, last?.execution, input, pins])
  const fieldOf = (path: Path) => input && fieldAt(definition, node, fields, kinds, input, path)
  const [renaming, setRenaming] = useState(false)
  const targets = definition.connections.filter((c) => c.from === node.id)
  return (
    <Side name="drawer" label={t("drawer.label", { name: node.name })} width={Math.min(820, innerWidth * 0.58)}>
      <div className={classes.drawerHead} style={{ color: familyColor(node.kind) }}>
        <Icon size={22} stroke={1.7} aria-hidden style={{ flex: "none" }} />
        <Stack gap={0} style={{ flex: 1, minWidth: 0 }}>
          <VisuallyHidden component="h2">{node.name}</VisuallyHidden>
          <Later label={t("settings.name")} value={node.name} readOnly={readOnly} onDone={onName} />
          <Text fz="xs" c="dimmed" truncate title={kind?.description[tongue]}>
            {kind?.title[tongue] ?? node.kind} · {kind?.description[tongue]}
          </Text>
        </Stack>
        {text !== undefined && sources.length > 0 && (
          <Act label={t("try.act")} onClick={() => setTrying(true)}>
            <IconPlayerPlay size={16} />
          </Act>
        )}
        {!readOnly && (
          <>
            <Act label={t("rename.open", { id: node.id })} onClick={() => setRenaming(true)}>
              <IconId size={16} />
            </Act>
            <Act label={t("copy")} onClick={onCopy}>
              <IconCopy size={16} />
            </Act>
            <Act label={t("delete")} onClick={onDelete}>
              <IconTrash size={16} />
            </Act>
          </>
        )}
        <Act label={t("close")} onClick={onClose}>
          <IconX size={16} />
        </Act>
      </div>
      <div className={classes.columns}>
        <section className={classes.column} aria-label={t("drawer.input")}>
          <Column title={t("drawer.input")}>
            {sources.length === 0 && !node.kind.startsWith("TRIGGER.") && <Text fz="sm">{t("drawer.noInput")}</Text>}
            {sources.map((n, i) => (
              <Anchor key={i} component="button" type="button" fz="sm" ta="left" onClick={() => onOpen(n.id)}>
                ← {n.name}
              </Anchor>
            ))}
            {input && <Given input={input} run={last} label={t("drawer.input")} fieldOf={readOnly ? undefined : fieldOf} />}
            <Meanings list={kind?.inputs ?? []} />
          </Column>
        </section>
        <section className={classes.column} aria-label={t("drawer.settings")}>
          <Stack gap="sm">
            {told.length > 0 && (
              <Alert color={told.some((p) => p.severity === "error") ? "red" : "yellow"} p="xs">
                {told.map((p, i) => (
                  <Text key={i} fz="sm">
                    {p.message}
                  </Text>
                ))}
              </Alert>
            )}
            <Settings key={node.id} evaluate={readOnly ? undefined : evaluate} value={value} execution={known} node={node} fields={fields} kinds={kinds} problems={problems} readOnly={readOnly} onConfigurations={onConfigurations} onNode={onNode} />
          </Stack>
        </section>
        <section className={classes.column} aria-label={t("drawer.output")}>
          <Column title={t("drawer.output")}>
            {targets.map((c) => (
              <Anchor key={c.id} component="button" type="button" fz="sm" ta="left" onClick={() => onOpen(c.to)}>
                {c.key} → {definition.nodes.find((n) => n.id === c.to)?.name}
              </Anchor>
            ))}
            <Real run={last} value={last?.record?.output_data} label={t("drawer.output")} />
            {(kind?.keys ?? []).map((k) => (
              <Stack key={k.name} gap={2}>
                <Text fz="sm" fw={600}>
                  {k.name === "*" ? t("drawer.configured") : k.name}
                </Text>
                <Text fz="xs" c="dimmed">
                  {k.meaning[tongue]}
                </Text>
                <Meanings list={k.fields ?? []} />
              </Stack>
            ))}
          </Column>
        </section>
      </div>
      {renaming && (
        <RenameDialog
          id={node.id}
          value={value}
          definition={definition}
          onRename={(to) => {
            setRenaming(false)
            onRename(to)
          }}
          onClose={() => setRenaming(false)}
        />
      )}
      {trying && text !== undefined && <TryNode workflow={workflow} text={text} definition={definition} node={node} kinds={kinds} last={last?.execution} value={value} onKeep={onKeep} onClose={() => setTrying(false)} />}
    </Side>
  )
}

export function Act({ label, onClick, children }: { label: string; onClick: () => void; children: ReactNode }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" aria-label={label} onClick={onClick}>
        {children}
      </ActionIcon>
    </Tooltip>
  )
}

function Column({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Stack gap="xs">
      <Text component="h3" fz="xs" fw={600} c="dimmed">
        {title}
      </Text>
      {children}
    </Stack>
  )
}

function Meanings({ list }: { list: Schemas["NodeValue"][] }) {
  const { t } = useTranslation("editor")
  const tongue = language()
  return list.map((v) => (
    <Text key={v.name} fz="xs" c="dimmed">
      <code>{v.name === "*" ? t("drawer.other") : v.name}</code> {v.meaning[tongue]}
    </Text>
  ))
}

type LastRun = { execution: Schemas["Execution"]; record?: Schemas["NodeExecution"] }

// The last real data of a node: that of the newest execution of its workflow.
function useLastRun(workflow: string, node: string): LastRun | undefined {
  const { data } = useQuery({
    queryKey: ["executions", "last", workflow],
    enabled: workflow !== "",
    staleTime: 10_000,
    retry: false,
    queryFn: async ({ signal }) => {
      const list = await call(client.GET("/api/v1/executions", { params: { query: { workflow_id: workflow, page_size: 1 } }, signal }))
      const newest = list.executions?.[0]
      if (!newest) return null
      const { execution } = await call(client.GET("/api/v1/executions/{id}", { params: { path: { id: newest.execution_id } }, signal }))
      return execution
    },
  })
  if (!data) return undefined
  const records = data.node_executions as Record<string, Schemas["NodeExecution"]> | undefined
  return { execution: data, record: records?.[node] }
}

// What comes in, to be dragged into the settings.
function Given({ input, run, label, fieldOf }: { input: Input; run: LastRun | undefined; label: string; fieldOf?: (path: Path) => Field | undefined }) {
  const { t } = useTranslation("editor")
  return (
    <Stack gap={2}>
      <Text fz="xs" c="dimmed">
        {input.origin === "last" && run ? (
          <>
            {t("drawer.last")} <When at={run.execution.created_at} />
          </>
        ) : (
          t(`drawer.${input.origin}`)
        )}
      </Text>
      {fieldOf && (
        <Text fz="xs" c="dimmed">
          {t("drawer.insert")}
        </Text>
      )}
      <Data value={input.value} execution={run?.execution.execution_id} label={label} height={320} depth={1} fieldOf={fieldOf} />
    </Stack>
  )
}

function Real({ run, value, label }: { run: LastRun | undefined; value: unknown; label: string }) {
  const { t } = useTranslation("editor")
  if (!run || value === undefined || value === null) return null
  return (
    <Stack gap={2}>
      <Text fz="xs" c="dimmed">
        {t("drawer.last")} <When at={run.execution.created_at} />
      </Text>
      <Data value={value} execution={run.execution.execution_id} label={label} height={320} depth={1} />
    </Stack>
  )
}

type NoteProps = { note: NoteDef; readOnly: boolean; onText: (text: string) => void; onDelete: () => void; onClose: () => void }

/** NoteDrawer changes the text of a comment on the canvas. */
export function NoteDrawer({ note, readOnly, onText, onDelete, onClose }: NoteProps) {
  const { t } = useTranslation("editor")
  return (
    <Side name="note" label={t("note.title")} width={320}>
      <div className={classes.drawerHead}>
        <Text component="h2" fw={600} style={{ flex: 1 }}>
          {t("note.title")}
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
      <Textarea m="sm" autosize minRows={5} aria-label={t("note.title")} readOnly={readOnly} value={note.text} onChange={(e) => onText(e.currentTarget.value)} data-autofocus autoFocus={!note.text} />
    </Side>
  )
}

// Later is a text field that tells its value when one has finished with it: on leaving it, or with Enter.
function Later({ value, onDone, label, readOnly }: { value: string; onDone: (value: string) => void; label: string; readOnly: boolean }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const done = () => text.trim() !== value && onDone(text.trim())
  return (
    <TextInput
      variant="unstyled"
      size="xs"
      fw={600}
      aria-label={label}
      className={classes.title}
      readOnly={readOnly}
      value={text}
      onChange={(e) => setText(e.currentTarget.value)}
      onBlur={done}
      onKeyDown={(e) => {
        if (e.key === "Enter") done()
      }}
    />
  )
}
