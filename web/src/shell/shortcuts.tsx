import { Kbd, Modal, Table, Text, Title } from "@mantine/core"
import { useTranslation } from "react-i18next"

// Each key as it is printed on it; ⌘ stands beside Ctrl for those who have it.
const groups = {
  everywhere: [["find", "Ctrl K", "⌘ K"], ["sheet", "?"], ["close", "Esc"]],
  canvas: [["add", "/"], ["undo", "Ctrl Z", "⌘ Z"], ["redo", "Ctrl Shift Z", "⌘ ⇧ Z"], ["save", "Ctrl S", "⌘ S"], ["all", "Ctrl A", "⌘ A"], ["copy", "Ctrl C", "⌘ C"], ["paste", "Ctrl V", "⌘ V"], ["remove", "Delete"], ["open", "Enter"]],
  inbox: [["next", "j"], ["previous", "k"], ["open", "Enter"]],
  data: [["move", "↑ ↓"], ["fold", "← →"], ["copyValue", "Ctrl C", "⌘ C"], ["insert", "i"]],
} as const

/** Shortcuts is the sheet of all keys. */
export default function Shortcuts({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("shell")
  return (
    <Modal opened onClose={onClose} title={t("keys.title")} size="lg" closeButtonProps={{ "aria-label": t("keys.closeSheet") }}>
      {Object.entries(groups).map(([group, list]) => (
        <section key={group} aria-label={t(`keys.${group}.title`)}>
          <Title order={3} fz="sm" mt="sm" mb={4}>
            {t(`keys.${group}.title`)}
          </Title>
          <Table verticalSpacing={3}>
            <Table.Tbody>
              {list.map(([name, ...keys]) => (
                <Table.Tr key={name}>
                  <Table.Td>
                    <Text fz="sm">{t(`keys.${group}.${name}`)}</Text>
                  </Table.Td>
                  <Table.Td ta="right">
                    {keys.map((k, i) => (
                      <span key={k}>
                        {i > 0 && " / "}
                        <Kbd size="xs">{k}</Kbd>
                      </span>
                    ))}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </section>
      ))}
    </Modal>
  )
}
