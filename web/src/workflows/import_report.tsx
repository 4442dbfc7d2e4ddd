import { Alert, Anchor, Badge, Button, Code, Group, List, Paper, Stack, Text, Title } from "@mantine/core"
import { IconAlertTriangle, IconCircleCheck, IconCircleHalf2, IconCircleX, IconKey } from "@tabler/icons-react"
import { type ReactNode, useState } from "react"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import type { Schemas } from "@/api/client"
import { useRole } from "@/api/me"
import { valuesOf } from "@/api/values"
import classes from "./import.module.css"

type File = Schemas["ImportedFile"]
type Workflow = Schemas["ImportedWorkflow"]
type Node = Schemas["ImportedNode"]

// As everywhere, how a node fared has colour, icon and word together.
const looks = {
  missing: { color: "var(--state-red)", icon: IconCircleX },
  approximated: { color: "var(--state-amber)", icon: IconCircleHalf2 },
  kept: { color: "var(--state-green)", icon: IconCircleCheck },
} as const satisfies Record<Node["fidelity"], unknown>
const fidelities = valuesOf(looks)
const systems = ["n8n", "dify", "steps", "older"] as const

function Fared({ fidelity, children }: { fidelity: Node["fidelity"]; children: ReactNode }) {
  const { color, icon: Icon } = looks[fidelity]
  return (
    <Text span fz="sm" className={classes.fared} style={{ color }}>
      <Icon size={16} stroke={1.8} aria-hidden /> {children}
    </Text>
  )
}

/** ImportedFileReport says what becomes of a file of another system, or what became of it: of each workflow, and in it of each node. */
export function ImportedFileReport({ file, kept }: { file: File; kept: boolean }) {
  const { t } = useTranslation("workflows")
  const system = systems.find((s) => s === file.system)
  const workflows = file.workflows ?? []
  return (
    <Paper withBorder p="sm">
      <Stack gap="sm">
        <Group gap="xs">
          <Text fw={600} style={{ overflowWrap: "anywhere" }}>
            {file.name || t("import.pasted")}
          </Text>
          {system && (
            <Badge variant="default" tt="none">
              {t(`import.system.${system}`)}
            </Badge>
          )}
        </Group>
        {file.error && (
          <Alert color="red" icon={<IconAlertTriangle />} title={t("import.notMade")}>
            {file.error}
          </Alert>
        )}
        {workflows.map((w, i) => (
          <WorkflowReport key={i} workflow={w} kept={kept} />
        ))}
      </Stack>
    </Paper>
  )
}

function WorkflowReport({ workflow: w, kept }: { workflow: Workflow; kept: boolean }) {
  const { t } = useTranslation("workflows")
  const [all, setAll] = useState(false)
  const nodes = w.nodes ?? []
  const plain = nodes.filter((n) => n.fidelity === "kept" && !n.notes?.length && !n.secrets?.length)
  const told = fidelities.flatMap((f) => nodes.filter((n) => n.fidelity === f && !plain.includes(n)))
  const errors = (w.problems ?? []).filter((p) => p.severity === "error")
  return (
    <Stack component="section" gap="xs" aria-label={w.name}>
      <Group justify="space-between" gap="xs">
        <Title order={3} size="h5">
          {w.name}
        </Title>
        {w.workflow_id && (
          <Anchor component={Link} to={`/workflows/${encodeURIComponent(w.workflow_id)}`} fw={600}>
            {t("import.see")}
          </Anchor>
        )}
      </Group>
      <Group gap="md">
        {fidelities.map((f) => w[f] > 0 && (
          <Fared key={f} fidelity={f}>
            {t(`import.count.${f}`, { count: w[f] })}
          </Fared>
        ))}
      </Group>
      {w.error && (
        <Alert color="red" icon={<IconAlertTriangle />} title={t(kept ? "import.notKeptOne" : "import.cannotKeep")}>
          {w.error}
        </Alert>
      )}
      {!w.valid && (
        <Alert color="red" icon={<IconAlertTriangle />} title={t("import.invalid")}>
          <List size="sm">
            {errors.map((p) => (
              <List.Item key={p.path + p.message}>{p.message}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      <ul className={classes.list} aria-label={t("import.nodes")}>
        {[...told, ...(all || told.length === 0 ? plain : [])].map((n, i) => (
          <NodeReport key={i} node={n} workflow={w.workflow_id} />
        ))}
      </ul>
      {plain.length > 0 && told.length > 0 && (
        <Group>
          <Button size="compact-sm" variant="subtle" aria-expanded={all} onClick={() => setAll(!all)}>
            {t(all ? "import.hidePlain" : "import.plain", { count: plain.length })}
          </Button>
        </Group>
      )}
      <Needs workflow={w} kept={kept} />
    </Stack>
  )
}

function NodeReport({ node: n, workflow }: { node: Node; workflow?: string }) {
  const { t } = useTranslation("workflows")
  const first = n.node_ids?.[0]
  return (
    <li className={classes.node}>
      <Group gap="xs" justify="space-between">
        <Group gap={6}>
          {workflow && first ? (
            <Anchor component={Link} to={`/workflows/${encodeURIComponent(workflow)}?node=${encodeURIComponent(first)}`} fz="sm" fw={600}>
              {n.name || n.type}
            </Anchor>
          ) : (
            <Text span fz="sm" fw={600}>
              {n.name || n.type}
            </Text>
          )}
          <Text span fz="xs" c="dimmed">
            {n.type}
            {n.kind && n.fidelity !== "missing" && <> → {n.kind}</>}
          </Text>
        </Group>
        <Fared fidelity={n.fidelity}>{t(`import.fared.${n.fidelity}`)}</Fared>
      </Group>
      {!!(n.notes?.length || n.secrets?.length) && (
        <ul className={classes.notes}>
          {n.notes?.map((note, i) => (
            <Text key={i} component="li" fz="sm">
              {note}
            </Text>
          ))}
          {n.secrets?.map((name) => (
            <Text key={name} component="li" fz="sm">
              <IconKey size={14} aria-hidden style={{ verticalAlign: "-2px" }} /> {t("import.secret", { name })}
            </Text>
          ))}
        </ul>
      )}
    </li>
  )
}

/** Needs lists what is to be known of the whole, and what the workflow needs, with the way to make it. */
function Needs({ workflow: w, kept }: { workflow: Workflow; kept: boolean }) {
  const { t } = useTranslation("workflows")
  const isAdmin = useRole("admin")
  const moved = new Set((w.nodes ?? []).flatMap((n) => n.secrets ?? []))
  const credentials = w.credentials ?? []
  const profiles = w.profiles ?? []
  if (!w.notes?.length && !credentials.length && !profiles.length) return null
  return (
    <Stack gap={4}>
      <Title order={4} size="h6">
        {t("import.needs")}
      </Title>
      <ul className={classes.notes}>
        {w.notes?.map((note, i) => (
          <Text key={"n" + i} component="li" fz="sm">
            {note}
          </Text>
        ))}
        {credentials.map((c) => {
          const state = c.created ? "created" : moved.has(c.name) && !kept ? "willBe" : c.known ? "known" : "toMake"
          return (
            <Text key={"c" + c.name} component="li" fz="sm">
              {t(`import.credential.${state}`, { name: c.name, type: c.type })} {c.note}{" "}
              {state === "toMake" && isAdmin && (
                <Anchor component={Link} to={`/settings/credentials?new=1&name=${encodeURIComponent(c.name)}`} fz="sm" fw={600}>
                  {t("missing.credential")}
                </Anchor>
              )}
            </Text>
          )
        })}
        {profiles.map((id) => (
          <Text key={"p" + id} component="li" fz="sm">
            {t("import.profile")} <Code>{id}</Code>{" "}
            {isAdmin && (
              <Anchor component={Link} to={`/settings/profiles?new=1&id=${encodeURIComponent(id)}`} fz="sm" fw={600}>
                {t("missing.profile")}
              </Anchor>
            )}
          </Text>
        ))}
      </ul>
    </Stack>
  )
}
