import { Button, CopyButton, Group, Modal, Stack, Text } from "@mantine/core"
import { useTranslation } from "react-i18next"
import classes from "./settings.module.css"

/** Once shows something secret that is never shown again: a token, a link of an invitation. */
export function Once({ title, text, secret, onClose }: { title: string; text: string; secret: string; onClose: () => void }) {
  const { t } = useTranslation("settings")
  return (
    <Modal opened onClose={onClose} title={title} closeOnClickOutside={false} closeButtonProps={{ "aria-label": t("places:close") }}>
      <Stack gap="sm">
        <Text>{text}</Text>
        <div className={classes.secret} data-testid="secret">
          {secret}
        </div>
        <Group justify="flex-end">
          <CopyButton value={secret}>
            {({ copied, copy }) => (
              <Button variant="default" onClick={copy}>
                {copied ? t("copied") : t("copy")}
              </Button>
            )}
          </CopyButton>
          <Button onClick={onClose}>{t("once.close")}</Button>
        </Group>
      </Stack>
    </Modal>
  )
}
