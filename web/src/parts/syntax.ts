import i18next from "i18next"

/** yamlSaying is what is wrong with a text in YAML, in the language of the reader. */
export function yamlSaying(error: { code: string }): string {
  const key = `shell:syntax.yaml.${error.code}`
  return i18next.exists(key) ? i18next.t(key) : i18next.t("shell:syntax.yaml.other")
}

/** jsonSaying is what is wrong with a text in JSON, in the language of the reader. Browsers say where it is in their own words. */
export function jsonSaying(text: string, error: unknown): string {
  const said = error instanceof Error ? error.message : ""
  const place = /position (\d+)/.exec(said)?.[1]
  if (/end of JSON|end of data|unterminated/i.test(said) || (place !== undefined && Number(place) >= text.length)) return i18next.t("shell:syntax.json.end")
  if (place === undefined) return i18next.t("shell:syntax.json.other")
  const before = text.slice(0, Number(place)).split("\n")
  return i18next.t("shell:syntax.json.at", { line: before.length, column: before.at(-1)!.length + 1 })
}
