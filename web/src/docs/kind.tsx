import { Text, Title } from "@mantine/core"
import type { ReactNode } from "react"
import { useTranslation } from "react-i18next"
import { useParams } from "react-router"
import { stringify } from "yaml"
import type { Schemas } from "@/api/client"
import { useKinds } from "@/graph/kinds"
import { asSchema, type FieldSchema, meaningOf, offered, sharedNames, typesOf } from "@/kindform/schema"
import { CodeBlock } from "@/parts/markdown/code_block"
import { Page } from "@/parts/page"
import { Empty, Shown } from "@/parts/states"
import { language } from "@/words"
import classes from "./docs.module.css"

type Kind = Schemas["NodeKind"]

const say = (text: Schemas["Text"] | undefined) => text?.[language()] ?? ""

/** One kind of node: what it does, what it reads, its fields, what comes out, and examples. All of it is what the kind says of itself. */
export function Component() {
  const { t } = useTranslation("docs")
  const { kind = "" } = useParams()
  const { kinds, common, query } = useKinds()
  // The reference in files names kinds by the addresses of its headings.
  const found = kinds.get(kind) ?? [...kinds.values()].find((k) => k.name.toLowerCase().replaceAll(".", "") === kind.toLowerCase())
  const crumbs = [
    { to: "/docs", name: t("title") },
    { to: "/docs/kinds", name: t("kinds.title") },
  ]
  return (
    <Page title={found ? say(found.title) : kind} crumbs={crumbs}>
      <Shown query={query} what={t("reading")}>
        {() => (found ? <About kind={found} common={common} /> : <Empty title={t("kinds.missing")} />)}
      </Shown>
    </Page>
  )
}

function About({ kind: k, common }: { kind: Kind; common: FieldSchema }) {
  const { t } = useTranslation("docs")
  const schema = (k.config_schema ?? {}) as FieldSchema
  const shared = sharedNames(common)
  const fields = Object.entries(schema.properties ?? {}).filter(([name]) => !shared.includes(name))
  const needs = [...(k.needs?.credential?.length ? [t(k.needs.optional ? "kinds.mayCredential" : "kinds.credential", { types: k.needs.credential.join(", ") })] : []), ...(k.needs?.also ?? []).map(say)]
  return (
    <div style={{ maxWidth: 900 }}>
      <Text>
        <code>{k.name}</code> · {say(k.description)}
      </Text>
      <Text fz="sm" c="dimmed">
        {t(`kinds.effect.${k.effect}`, { defaultValue: k.effect })}
      </Text>
      {needs.map((line) => (
        <Text key={line} fz="sm">
          {line}
        </Text>
      ))}
      <Part title={t("kinds.inputs")} rows={k.inputs ?? []} head={[t("kinds.name"), t("kinds.meaning")]} row={(v) => [<code key="n">{v.name}</code>, say(v.meaning)]} />
      <Part
        title={t("kinds.fields")}
        rows={fields}
        head={[t("kinds.name"), t("kinds.takes"), t("kinds.default"), t("kinds.meaning")]}
        row={([name, field]) => {
          const s = asSchema(field)
          return [<code key="n">{name + ((schema.required ?? []).includes(name) ? " *" : "")}</code>, takes(s), s.default === undefined ? "" : <code key="d">{JSON.stringify(s.default)}</code>, meaningOf(s)]
        }}
        note={(schema.required ?? []).length > 0 ? t("kinds.required") : undefined}
      />
      <Part
        title={t("kinds.keys")}
        rows={(k.keys ?? []).flatMap((key) => [{ name: key.name, meaning: key.meaning }, ...(key.fields ?? []).map((f) => ({ name: `${key.name}/${f.name}`, meaning: f.meaning }))])}
        head={[t("kinds.name"), t("kinds.meaning")]}
        row={(v) => [<code key="n">{v.name}</code>, say(v.meaning)]}
      />
      {(k.examples ?? []).length > 0 && (
        <Title order={2} size="h4" mt="lg" mb="xs">
          {t("kinds.examples")}
        </Title>
      )}
      {(k.examples ?? []).map((e, i) => (
        <section key={i} aria-label={say(e.shows)}>
          <Text mb={4}>{say(e.shows)}</Text>
          <CodeBlock language="yaml" code={exampleText(k, e)} />
        </section>
      ))}
    </div>
  )
}

// An example as it stands in a file: the node, then what it is given and what comes of it as comments say.
function exampleText(k: Kind, e: Schemas["NodeExample"]): string {
  const parts = [`type: ${k.type}\nsubtype: ${k.subtype}\n${stringify({ configurations: e.configurations ?? {} })}`]
  for (const input of e.inputs ?? []) parts.push("# input\n" + stringify(input))
  if (e.output !== undefined && e.output !== null) parts.push("# output\n" + stringify(e.output))
  return parts.join("---\n").trimEnd()
}

function takes(s: FieldSchema): string {
  const values = offered(s)
  if (values.length > 0) return values.join(", ")
  const range = s.minimum !== undefined || s.maximum !== undefined ? `, ${s.minimum ?? ""}…${s.maximum ?? ""}` : ""
  return typesOf(s).join(", ") + range
}

function Part<R>({ title, rows, head, row, note }: { title: string; rows: R[]; head: string[]; row: (r: R) => ReactNode[]; note?: string }) {
  if (rows.length === 0) return null
  return (
    <section aria-label={title}>
      <Title order={2} size="h4" mt="lg" mb="xs">
        {title}
      </Title>
      {note && (
        <Text fz="sm" c="dimmed">
          {note}
        </Text>
      )}
      <table className={classes.fields}>
        <thead>
          <tr>
            {head.map((h) => (
              <th key={h} scope="col">
                {h}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((r, i) => (
            <tr key={i}>
              {row(r).map((cell, n) => (
                <td key={n}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
