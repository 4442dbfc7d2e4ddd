import { Alert, Button, Drawer, Text } from "@mantine/core"
import { IconInfoCircle, IconLock, IconPlus } from "@tabler/icons-react"
import type { ReactNode } from "react"
import { useTranslation } from "react-i18next"
import { useMe } from "@/api/me"
import { Page } from "@/parts/page"
import { Loading } from "@/parts/states"
import { type Role, type TopicName, topics } from "./topics"

type Props = {
  name: TopicName
  /** The verb of the button that adds something, and what it does. */
  add?: string
  onAdd?: () => void
  actions?: ReactNode
  children: ReactNode
}

/** useMay says whether the user may see and change a topic; undefined until it is known. */
export function useMay(name: TopicName): { read: boolean; write: boolean } | undefined {
  const { data: me } = useMe()
  if (!me) return undefined
  const mine = me.roles ?? []
  const any = (roles: Role[]) => roles.some((r) => mine.includes(r))
  return { read: any(topics[name].read), write: any(topics[name].write) }
}

/** Topic is a page of the settings. Who may not see it is told whom to ask; who may not change it is told why there are no buttons. */
export function Topic({ name, add, onAdd, actions, children }: Props) {
  const { t } = useTranslation("settings")
  const { data: me } = useMe()
  const may = useMay(name)
  const said = (roles: Role[]) => roles.map((r) => t(`role.${r}`)).join(t("or"))
  const mine = (me?.roles ?? []).map((r) => t(`role.${r as Role}`)).join(t("and")) || t("role.none")
  return (
    <Page
      title={t(`${name}.title`)}
      crumbs={[{ to: "/settings", name: t("title") }]}
      text={t(`${name}.text`)}
      actions={
        may?.write && (
          <>
            {actions}
            {add && (
              <Button size="xs" leftSection={<IconPlus size={16} />} onClick={onAdd}>
                {add}
              </Button>
            )}
          </>
        )
      }
    >
      {!may ? (
        <Loading />
      ) : !may.read ? (
        <Alert icon={<IconLock />} color="yellow" title={t("mayNotSee.title")}>
          {t("mayNotSee.text", { roles: said(topics[name].read), mine })}
        </Alert>
      ) : (
        <>
          {!may.write && (
            <Text fz="sm" c="dimmed">
              <IconInfoCircle size={14} style={{ verticalAlign: "-2px" }} aria-hidden /> {t("mayNotChange", { roles: said(topics[name].write), mine })}
            </Text>
          )}
          {children}
        </>
      )}
    </Page>
  )
}

/** Side is where a record is made or changed. A click beside it does not close it, so that nothing typed is lost. */
export function Side({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const { t } = useTranslation("settings")
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title={title} closeOnClickOutside={false} closeOnEscape={false} closeButtonProps={{ "aria-label": t("places:close") }}>
      {children}
    </Drawer>
  )
}
