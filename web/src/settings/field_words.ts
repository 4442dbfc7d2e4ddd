import { useTranslation } from "react-i18next"
import type { Field } from "./record_form"

type Rest<F> = F extends unknown ? Omit<F, "name" | "label" | "help"> : never

/** useFieldWords gives the fields of a topic their words: <topic>.field.<name>, and <topic>.help.<name> where there is more to say. */
export function useFieldWords(topic: string) {
  const { t, i18n } = useTranslation("settings")
  return (name: string, rest: Rest<Field>): Field => {
    const key = name.replaceAll(".", "_")
    const help = `${topic}.help.${key}`
    return { name, label: t(`${topic}.field.${key}`), help: i18n.exists(`settings:${help}`) ? t(help) : undefined, ...rest } as Field
  }
}
