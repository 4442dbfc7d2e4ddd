import { Button, Group, Modal, Stack, Text } from "@mantine/core"
import { useTranslation } from "react-i18next"
import { Difference } from "@/parts/difference"
import { When } from "@/parts/when"
import type { Theirs } from "./use_save"
import classes from "./editor.module.css"

type Props = { theirs: Theirs; mine: string; busy: boolean; onKeepMine: () => void; onTakeTheirs: () => void; onClose: () => void }

/** Conflict shows what somebody else has saved beside one's own draft, and lets one choose. Nothing is lost by either choice: theirs is a revision, mine can be had again with undo. */
export function Conflict({ theirs, mine, busy, onKeepMine, onTakeTheirs, onClose }: Props) {
  const { t } = useTranslation("editor")
  return (
    <Modal opened onClose={onClose} size="90%" title={t("conflict.title", { revision: theirs.revision })} closeButtonProps={{ "aria-label": t("close") }}>
      <Stack>
        <Text>
          {t("conflict.text", { by: theirs.by || t("conflict.somebody") })} <When at={theirs.at} />
        </Text>
        <div className={classes.difference}>
          <Difference before={theirs.text} after={mine} language="yaml" beforeLabel={t("conflict.theirs", { revision: theirs.revision })} afterLabel={t("conflict.mine")} />
        </div>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {t("conflict.later")}
          </Button>
          <Button variant="default" onClick={onTakeTheirs}>
            {t("conflict.take")}
          </Button>
          <Button loading={busy} onClick={onKeepMine}>
            {t("conflict.keep")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
