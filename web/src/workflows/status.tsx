import { Group, Text } from "@mantine/core"
import { IconCircleCheck, IconCircleDashed, IconCircleX, IconLoader2, IconPlugOff } from "@tabler/icons-react"
import { useTranslation } from "react-i18next"
import type { Schemas } from "@/api/client"

type Metadata = Pick<Schemas["WorkflowMetadata"], "deployment_status" | "deployed_revision" | "revision" | "deployment_error">

const looks = {
  draft: { icon: IconCircleDashed, color: "gray" },
  pending: { icon: IconLoader2, color: "blue" },
  deployed: { icon: IconCircleCheck, color: "green" },
  failed: { icon: IconCircleX, color: "red" },
  undeployed: { icon: IconPlugOff, color: "gray" },
} as const

/** DeploymentMark says whether a workflow starts by itself, and with which revision. */
export function DeploymentMark({ workflow: w }: { workflow: Metadata }) {
  const { t } = useTranslation("workflows")
  const { icon: Icon, color } = looks[w.deployment_status]
  const older = w.deployed_revision !== undefined && w.deployed_revision < w.revision
  return (
    <Group gap={5} wrap="nowrap" component="span" title={w.deployment_error || undefined}>
      <Icon size={16} stroke={1.8} aria-hidden style={{ color: `var(--state-${color})`, flex: "none" }} />
      <Text span fz="sm">
        {w.deployment_status === "deployed" && older ? t("status.older", { deployed: w.deployed_revision, newest: w.revision }) : t(`status.${w.deployment_status}`)}
      </Text>
    </Group>
  )
}
