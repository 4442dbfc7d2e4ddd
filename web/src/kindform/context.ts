import { createContext, useContext } from "react"
import type { Completion } from "./completions"
import type { NodeKind } from "./schema"
import type { Evaluate } from "./worth"

export type FormContext = { kind: NodeKind; completions: Completion[]; readOnly: boolean; id: string; evaluate?: Evaluate }

export const Form = createContext<FormContext | null>(null)

/** useForm is what all fields of a form share. */
export function useForm(): FormContext {
  const form = useContext(Form)
  if (!form) throw new Error("a field stands in no form")
  return form
}
