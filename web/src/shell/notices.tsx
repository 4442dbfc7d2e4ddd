import { Alert, Portal, Stack } from "@mantine/core"
import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from "react"

type Tone = "good" | "bad"
type Notice = { id: number; tone: Tone; text: string; detail?: string }
type Say = (text: string, options?: { tone?: Tone; detail?: string }) => void

const Context = createContext<Say>(() => {})

/** useNotice returns a function that tells the user what has just happened, for some seconds; bad news stay until they are closed. */
export const useNotice = () => useContext(Context)

/** Notices shows them, in a place that screen readers read out. */
export function Notices({ children }: { children: ReactNode }) {
  const [list, setList] = useState<Notice[]>([])
  const next = useRef(0)
  const close = useCallback((id: number) => setList((all) => all.filter((n) => n.id !== id)), [])
  const say = useCallback<Say>(
    (text, { tone = "good", detail } = {}) => {
      const id = ++next.current
      setList((all) => [...all.slice(-3), { id, tone, text, detail }])
      if (tone === "good") setTimeout(() => close(id), 5_000)
    },
    [close],
  )
  return (
    <Context.Provider value={useMemo(() => say, [say])}>
      {children}
      <Portal>
        <Stack pos="fixed" bottom={16} right={16} w={360} maw="calc(100vw - 32px)" gap="xs" aria-live="polite" style={{ zIndex: 400 }}>
          {list.map((n) => (
            <Alert key={n.id} color={n.tone === "good" ? "green" : "red"} title={n.text} withCloseButton onClose={() => close(n.id)} closeButtonLabel="×" role={n.tone === "bad" ? "alert" : "status"} variant="filled">
              {n.detail}
            </Alert>
          ))}
        </Stack>
      </Portal>
    </Context.Provider>
  )
}
