import { ActionIcon, Badge, Group, Menu, Text } from "@mantine/core"
import { IconAlertTriangle, IconBraces, IconCircleX, IconDots, IconForms, IconTrash } from "@tabler/icons-react"
import { type ReactNode, useState } from "react"
import { useTranslation } from "react-i18next"
import { stateColor } from "@/parts/state"
import { useForm } from "./context"
import { DataEditor } from "./editors/data"
import { MapEditor } from "./editors/map"
import { NameEditor } from "./editors/names"
import { ObjectsEditor } from "./editors/objects"
import { ChoiceEditor, FlagEditor, NumberEditor } from "./editors/plain"
import { TagsEditor } from "./editors/tags"
import { TextEditor } from "./editors/text"
import type { EditorProps } from "./editors/types"
import { ObjectFields } from "./fields"
import classes from "./kindform.module.css"
import { here, type Placed } from "./problems"
import { editorOf, type FieldSchema, fits, meaningOf, titleOf, typesOf, type Values } from "./schema"

type Props = {
  name: string
  schema: FieldSchema
  value: unknown
  onChange: (value: unknown) => void
  problems: Placed[]
  siblings: Values
  /** Where it stands, for ids: headers, rules.0.field. */
  at: string
  required?: boolean
  /** What is said besides its meaning. */
  note?: string
  label?: string
}

/** Field is one setting: its name, what it means, what it is edited with, and what is wrong with it. */
export function Field({ name, schema, value, onChange, problems, siblings, at, required = false, note, label = titleOf(name, schema) }: Props) {
  const { t } = useTranslation("kindform")
  const form = useForm()
  const editor = editorOf(name, schema)
  // A value that the form cannot show is shown as what it is, as a placeholder in the place of a list; it stays so until somebody wants the form.
  const fitting = fits(editor, schema, value)
  const [yaml, setYaml] = useState(!fitting)
  if (!fitting && !yaml) setYaml(true)
  const asYaml = yaml || !fitting
  const id = `${form.id}-${at}`
  const meaning = meaningOf(schema)
  const wrong = here(problems)
  const below = asYaml || !(editor === "object" || editor === "objects" || editor === "map") ? problems : wrong
  const props: EditorProps = { name, schema, value, onChange, label, describedBy: meaning || below.length ? `${id}-about` : undefined, id, problems, siblings }
  return (
    <div className={classes.field} data-field={at} data-editor={asYaml ? "yaml" : editor}>
      <Group gap={6} wrap="nowrap" align="center" className={classes.head}>
        <Text component="label" htmlFor={id} fz="sm" fw={600} title={name} className={classes.label}>
          {label}
        </Text>
        {required && (
          <Text span fz="xs" c="dimmed" className={classes.required}>
            {t("required")}
          </Text>
        )}
        {asYaml && (
          <Badge size="xs" variant="default" tt="none" fw={500}>
            YAML
          </Badge>
        )}
        {!form.readOnly && (
          <FieldMenu
            label={label}
            yaml={asYaml}
            canForm={fitting && editor !== "data"}
            canYaml={editor !== "data"}
            set={value !== undefined}
            usual={schema.default}
            onYaml={setYaml}
            onClear={() => {
              setYaml(false)
              onChange(undefined)
            }}
          />
        )}
      </Group>
      <div id={`${id}-about`}>
        {meaning && (
          <Text fz="xs" c="dimmed" className={classes.meaning}>
            {meaning}
          </Text>
        )}
        {note && (
          <Text fz="xs" c="var(--state-amber)">
            {note}
          </Text>
        )}
        {below.map((p) => (
          <ProblemLine key={p.way.join(".") + p.message} problem={p} />
        ))}
      </div>
      <div className={classes.editor}>{asYaml ? <DataEditor {...props} lines={linesOf(name, schema)} /> : <Chosen editor={editor} at={at} {...props} />}</div>
    </div>
  )
}

function Chosen({ editor, at, ...props }: EditorProps & { editor: ReturnType<typeof editorOf>; at: string }): ReactNode {
  switch (editor) {
    case "choice":
      return <ChoiceEditor {...props} />
    case "flag":
      return <FlagEditor {...props} />
    case "number":
      return <NumberEditor {...props} />
    case "text":
    case "expression":
    case "code":
      return <TextEditor {...props} />
    case "names":
    case "credential":
      return <NameEditor {...props} />
    case "tags":
      return <TagsEditor {...props} />
    case "map":
      return <MapEditor {...props} />
    case "objects":
      return <ObjectsEditor {...props} at={at} />
    case "object":
      return (
        <div className={classes.inner} role="group" aria-label={props.label}>
          <ObjectFields schema={props.schema} value={(props.value ?? {}) as Values} onChange={(v) => props.onChange(Object.keys(v).length === 0 ? undefined : v)} problems={props.problems} at={at} nested />
        </div>
      )
    default:
      return <DataEditor {...props} lines={linesOf(props.name, props.schema)} />
  }
}

/** linesOf is the room for a value: lists and schemas want more than what a text can be. */
const linesOf = (name: string, schema: FieldSchema) => (typesOf(schema).some((type) => type === "array" || type === "object") || /schema$/.test(name) ? 3 : 1)

/** ProblemLine says what is wrong and what to do. */
export function ProblemLine({ problem }: { problem: Placed }) {
  const warning = problem.severity === "warning"
  const Icon = warning ? IconAlertTriangle : IconCircleX
  return (
    <Group gap={4} wrap="nowrap" align="flex-start" className={classes.problem} style={{ color: stateColor(warning ? "WAITING_FOR_HUMAN" : "ERROR") }}>
      <Icon size={14} aria-hidden className={classes.problemIcon} />
      <Text fz="xs" c="inherit">
        {problem.message}
      </Text>
    </Group>
  )
}

type MenuProps = { label: string; yaml: boolean; canForm: boolean; canYaml: boolean; set: boolean; usual: unknown; onYaml: (yaml: boolean) => void; onClear: () => void }

function FieldMenu({ label, yaml, canForm, canYaml, set, usual, onYaml, onClear }: MenuProps) {
  const { t } = useTranslation("kindform")
  if (!set && !canYaml) return null
  return (
    <Menu position="bottom-end" withinPortal shadow="md">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="sm" className={classes.menu} aria-label={t("menu", { label })}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {yaml && canForm && (
          <Menu.Item leftSection={<IconForms size={14} />} onClick={() => onYaml(false)}>
            {t("asForm")}
          </Menu.Item>
        )}
        {!yaml && canYaml && (
          <Menu.Item leftSection={<IconBraces size={14} />} onClick={() => onYaml(true)}>
            {t("asYaml")}
          </Menu.Item>
        )}
        {set && (
          <Menu.Item leftSection={<IconTrash size={14} />} onClick={onClear}>
            {usual === undefined || usual === null ? t("clear") : t("useUsual")}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
