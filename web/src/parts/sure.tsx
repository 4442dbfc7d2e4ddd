import { Button, Group, Modal, Stack } from "@mantine/core"
import { type ReactNode, useState } from "react"
import { useTranslation } from "react-i18next"
import { Failure } from "@/api/client"
import { Failed } from "./states"

type Props = {
  title: string
  /** What will happen, and what will not. */
  children: ReactNode
  /** The verb on the button. */
  verb: string
  /** For what removes something. */
  danger?: boolean
  /** The button cannot be pressed yet, for example because a reason is missing. */
  disabled?: boolean
  act: (force: boolean) => Promise<unknown>
  onClose: () => void
  /** The verb on the button that does it all the same when the server has refused because something uses it (409). */
  forceVerb?: string
}

/** Sure asks before something is done that cannot simply be undone. A refusal is shown here, and nothing is closed then. */
export function Sure({ title, children, verb, danger, disabled, act, onClose, forceVerb }: Props) {
  const { t } = useTranslation("places")
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const mayForce = forceVerb && error instanceof Failure && error.status === 409
  const press = async (force: boolean) => {
    setBusy(true)
    setError(undefined)
    try {
      await act(force)
      onClose()
    } catch (e) {
      setError(e)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Modal opened onClose={onClose} title={title} centered closeButtonProps={{ "aria-label": t("close") }}>
      <Stack gap="md">
        {children}
        {error !== undefined && <Failed error={error} />}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={onClose} data-autofocus>
            {t("cancel")}
          </Button>
          {mayForce ? (
            <Button color="red" loading={busy} onClick={() => void press(true)}>
              {forceVerb}
            </Button>
          ) : (
            <Button color={danger ? "red" : undefined} loading={busy} disabled={disabled} onClick={() => void press(false)}>
              {verb}
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  )
}
