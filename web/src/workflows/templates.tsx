import { Anchor, Modal, Stack, Text } from "@mantine/core"
import { useMediaQuery } from "@mantine/hooks"
import { useQuery } from "@tanstack/react-query"
import { useTranslation } from "react-i18next"
import { Link } from "react-router"
import { call, client, type Schemas } from "@/api/client"
import { Shown } from "@/parts/states"
import { language } from "@/words"
import classes from "./import.module.css"

/** Templates lists the workflows to begin with. Each leads to the editor, where it is saved once it is as one wants it. */
export function Templates({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("workflows")
  const narrow = useMediaQuery("(max-width: 48em)")
  const query = useQuery({ queryKey: ["templates"], staleTime: Infinity, queryFn: ({ signal }) => call(client.GET("/api/v1/workflow-templates", { signal })) })
  return (
    <Modal opened onClose={onClose} title={t("templates.title")} size="lg" fullScreen={narrow} closeButtonProps={{ "aria-label": t("places:close") }}>
      <Stack gap="sm">
        <Text>{t("templates.text")}</Text>
        <Shown query={query}>
          {({ templates }) => (
            <ul className={classes.list} aria-label={t("templates.list")}>
              {(templates ?? []).map((one) => (
                <Template key={one.name} template={one} />
              ))}
            </ul>
          )}
        </Shown>
      </Stack>
    </Modal>
  )
}

function Template({ template: { name, title, description, needs } }: { template: Schemas["WorkflowTemplate"] }) {
  const { t } = useTranslation("workflows")
  return (
    <li className={classes.node}>
      <Anchor component={Link} to={`/workflows/new?template=${encodeURIComponent(name)}`} fw={600}>
        {title[language()]}
      </Anchor>
      <Text fz="sm">{description[language()]}</Text>
      {!!needs?.length && (
        <Text fz="sm" c="dimmed">
          {t("templates.needs", { what: needs.map((n) => t(`templates.need.${n.sort}`, { name: n.name, type: n.type ?? "" })).join(t("templates.and")) })}
        </Text>
      )}
    </li>
  )
}
