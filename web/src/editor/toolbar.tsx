import { ActionIcon, Badge, Button, Text, TextInput, Tooltip } from "@mantine/core"
import { IconArrowBackUp, IconArrowForwardUp, IconCode, IconDeviceFloppy, IconLayoutDashboard, IconNote, IconPlayerPlay, IconPlus, IconRocket, type TablerIcon } from "@tabler/icons-react"
import { useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import classes from "./editor.module.css"

type Props = {
  name: string
  revision: number
  deployed?: number
  dirty: boolean
  mayEdit: boolean
  mayRun: boolean
  canUndo: boolean
  canRedo: boolean
  /** The text cannot be read now: the canvas cannot change it. */
  broken: boolean
  yaml: boolean
  saving: boolean
  onName: (name: string) => void
  onAdd: () => void
  onUndo: () => void
  onRedo: () => void
  onTidy: () => void
  onNote: () => void
  onYaml: () => void
  onSave: () => void
  onRun: () => void
  onDeploy: () => void
}

/** Toolbar has the name, how it stands with the server, and what can be done. */
export function Toolbar(p: Props) {
  const { t } = useTranslation("editor")
  const [name, setName] = useState(p.name)
  useEffect(() => setName(p.name), [p.name])
  const done = () => name.trim() && name !== p.name && p.onName(name.trim())
  const tool = (label: string, Icon: TablerIcon, onClick: () => void, disabled = false, pressed?: boolean) => (
    <Tooltip label={label}>
      <ActionIcon variant={pressed ? "light" : "subtle"} color={pressed ? undefined : "gray"} size="lg" aria-label={label} aria-pressed={pressed} disabled={disabled} onClick={onClick}>
        <Icon size={18} stroke={1.7} />
      </ActionIcon>
    </Tooltip>
  )
  return (
    <div className={classes.bar} role="toolbar" aria-label={t("toolbar")}>
      <TextInput className={classes.name} size="xs" w={210} value={name} aria-label={t("name")} readOnly={!p.mayEdit || p.broken} onChange={(e) => setName(e.currentTarget.value)} onBlur={done} onKeyDown={(e) => e.key === "Enter" && done()} />
      <Text fz="xs" c="dimmed" role="status">
        {p.dirty ? t(p.revision ? "status.dirty" : "status.new") : p.revision ? t("status.saved", { revision: p.revision }) : t("status.new")}
      </Text>
      {p.deployed ? (
        <Badge variant="light" color={p.deployed === p.revision ? "green" : "gray"} tt="none" fw={500}>
          {t(p.deployed === p.revision ? "status.deployed" : "status.deployedOlder", { revision: p.deployed })}
        </Badge>
      ) : null}
      <span className={classes.gap} />
      {p.mayEdit && (
        <>
          <Button size="xs" variant="default" leftSection={<IconPlus size={16} />} disabled={p.broken} onClick={p.onAdd}>
            {t("add")}
          </Button>
          {tool(t("undo"), IconArrowBackUp, p.onUndo, !p.canUndo)}
          {tool(t("redo"), IconArrowForwardUp, p.onRedo, !p.canRedo)}
          {tool(t("tidy"), IconLayoutDashboard, p.onTidy, p.broken)}
          {tool(t("note.add"), IconNote, p.onNote, p.broken)}
        </>
      )}
      {tool(t("yaml.show"), IconCode, p.onYaml, false, p.yaml)}
      {p.mayEdit && (
        <Button size="xs" variant="default" leftSection={<IconDeviceFloppy size={16} />} disabled={!p.dirty && p.revision > 0} loading={p.saving} onClick={p.onSave}>
          {t("save.act")}
        </Button>
      )}
      {p.mayRun && (
        <Button size="xs" variant={p.mayEdit ? "default" : "filled"} leftSection={<IconPlayerPlay size={16} />} onClick={p.onRun}>
          {t("run.act")}
        </Button>
      )}
      {p.mayEdit && (
        <Button size="xs" leftSection={<IconRocket size={16} />} onClick={p.onDeploy}>
          {t("deploy.act")}
        </Button>
      )}
    </div>
  )
}
