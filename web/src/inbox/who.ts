import { useTranslation } from "react-i18next"
import { useMe } from "@/api/me"
import { visible } from "@/parts/question/value"

/** useWho says who people are in words: user:ada, role:approver, mail:bob@example.com, anyone. */
export function useWho() {
  const { t, i18n } = useTranslation("inbox")
  const { data: me } = useMe()
  const one = (seat: string): string => {
    if (seat === "anyone") return t("who.anyone")
    const [, kind, name] = /^(user|role|mail|visitor):(.*)$/s.exec(seat) ?? []
    if (kind === "role") return t("who.role", { role: visible(name ?? "") })
    const plain = visible(kind ? (name ?? "") : seat)
    return plain === me?.id ? t("who.me") : plain
  }
  const list = (seats: string[]) => new Intl.ListFormat(i18n.language === "zh" ? "zh-CN" : "en", { type: "disjunction" }).format(seats.map(one))
  return { one, list }
}
