import { Text } from "@mantine/core"
import { useTranslation } from "react-i18next"
import { isRaw, written } from "./exact"
import classes from "./value.module.css"

/** visible writes out the characters that turn the direction of what stands around them: nobody is to approve something else than they read. */
export function visible(text: string): string {
  return text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (c) => "\\u" + c.charCodeAt(0).toString(16))
}

const isNested = (v: unknown): v is object => typeof v === "object" && v !== null && !isRaw(v)

// Money and recipients are what people must not misread: they are shown large.
const weighty = /(^|[_.\s-])(amount|total|sum|price|cost|fee|refund|budget|euros?|dollars?|usd|eur|cny|rmb|to|cc|bcc|recipients?|recipient_emails|email|payee|iban|account)($|[_.\s-])|金额|总额|价格|费用|收件人|收款|账户/i

/** Value shows a value of outside: a text, rows of an object, or JSON. It is text and nothing else. */
export function Value({ value, large = false }: { value: unknown; large?: boolean }) {
  const { t } = useTranslation("question")
  if (value === null || value === undefined) return <span className={classes.none}>–</span>
  if (isRaw(value)) return <span className={large ? classes.large : undefined}>{value.rawJSON}</span>
  if (typeof value === "boolean") return <span>{value ? t("yes") : t("no")}</span>
  if (isNested(value)) {
    if (Array.isArray(value) && value.length > 0 && value.every((v) => !isNested(v)) && written(value).length < 400)
      return (
        <ul className={classes.list}>
          {value.map((v, n) => (
            <li key={n}>
              <Value value={v} large={large} />
            </li>
          ))}
        </ul>
      )
    if (isRows(value)) return <Rows rows={value} />
    return (
      <pre className={classes.code} tabIndex={0}>
        {visible(written(value))}
      </pre>
    )
  }
  return <span className={`${classes.text} ${large ? classes.large : ""}`}>{visible(String(value))}</span>
}

// A list of flat objects, such as the positions of an order, is a table.
function isRows(value: object): value is Record<string, unknown>[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > 50) return false
  const names = new Set(value.flatMap((row) => (isNested(row) && !Array.isArray(row) ? Object.keys(row) : [])))
  return names.size > 0 && names.size <= 5 && value.every((row) => isNested(row) && !Array.isArray(row) && Object.values(row).every((v) => !isNested(v) && String(v).length < 200))
}

function Rows({ rows }: { rows: Record<string, unknown>[] }) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  return (
    <table className={classes.beside}>
      <thead>
        <tr>
          {names.map((name) => (
            <th key={name} scope="col">
              {visible(name)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, n) => (
          <tr key={n}>
            {names.map((name) => (
              <td key={name}>{name in row ? <Value value={row[name]} /> : ""}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** ValueTable shows an object line by line, what weighs most in large letters; any other value as it is. */
export function ValueTable({ value, label }: { value: unknown; label: string }) {
  if (!isNested(value) || Array.isArray(value) || Object.keys(value).length === 0) {
    if (value === "" || value === undefined || value === null) return null
    return <Value value={value} />
  }
  return (
    <table className={classes.table} aria-label={label}>
      <tbody>
        {Object.entries(value).map(([name, v]) => (
          <tr key={name}>
            <th scope="row">{visible(name)}</th>
            <td>
              <Value value={v} large={weighty.test(name)} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Prose is a text of outside with its line breaks; nothing in it does anything. */
export function Prose({ children }: { children: string }) {
  return (
    <Text className={classes.text} component="p" m={0}>
      {visible(children)}
    </Text>
  )
}
