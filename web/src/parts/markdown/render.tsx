import { Anchor } from "@mantine/core"
import type { SyntaxNode } from "@lezer/common"
import { Autolink, parser as plainParser, Strikethrough, Table, TaskList } from "@lezer/markdown"
import { createElement, Fragment, type ReactNode, useMemo } from "react"
import { Link } from "react-router"
import { plain } from "../plain"
import { CodeBlock } from "./code_block"
import { decodeEntity, safeLink, saysTarget, targetOf } from "./links"
import { slugs } from "./slugs"
import classes from "./markdown.module.css"

const parser = plainParser.configure([Table, Strikethrough, Autolink, TaskList])

// Nothing that somebody writes is nested deeper or is longer; what is, is shown as it was written.
const deepest = 20
const longest = 200_000
const most = 4_000

export type MarkdownProps = {
  text: string
  /** A line break in the text is one on the page, as in a chat. In documents lines are only wrapped. */
  breaks?: boolean
  /** The level of the first heading. */
  top?: number
  /** Headings have addresses. */
  anchors?: boolean
  /** Where a link of a document leads inside of the UI; null: nowhere here, undefined: it is a link of outside. */
  inside?: (target: string) => string | null | undefined
}

/** Rendered shows Markdown as elements of the page. It never makes HTML of it: tags are shown as they were written, pictures are links, and links lead to http(s) and mail addresses only, with the host visible. */
export default function Rendered(props: MarkdownProps) {
  const { text, breaks, top, anchors, inside } = props
  const content = useMemo(() => drawn({ text, breaks, top, anchors, inside }), [text, breaks, top, anchors, inside])
  return <div className={classes.markdown}>{content}</div>
}

function drawn(props: MarkdownProps): ReactNode {
  if (props.text.length > longest || crowded(props.text)) return <p className={classes.source}>{plain(props.text)}</p>
  return new Drawing(props).document()
}

// What would take the parser long: a line that opens more quotations and lists than anybody reads, and a paragraph of marks. It looks for the other end of each mark.
const crowded = (text: string) => /^(?:[ \t]*(?:>|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t]))){21}/m.test(text) || text.split(/\n[ \t]*\n/).some((part) => part.length > most && (part.match(/[*_~[\]!`<(&]/g)?.length ?? 0) > most)

const heading = /^(?:ATX|Setext)Heading(\d)$/

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const list: SyntaxNode[] = []
  for (let c = node.firstChild; c; c = c.nextSibling) list.push(c)
  return list
}

function isInside(node: SyntaxNode, name: string): boolean {
  for (let n = node.parent; n; n = n.parent) if (n.name === name) return true
  return false
}

class Drawing {
  private readonly text: string
  private readonly references = new Map<string, string>()
  private readonly slug = slugs()

  constructor(private readonly props: MarkdownProps) {
    this.text = props.text
  }

  document(): ReactNode {
    const root = parser.parse(this.text).topNode
    root.cursor().iterate((n) => {
      if (n.name !== "LinkReference") return n.name === "Document" || n.name === "Blockquote" || n.name.endsWith("List") || n.name === "ListItem"
      const [label, url] = [n.node.getChild("LinkLabel"), n.node.getChild("URL")]
      if (label && url) {
        const name = this.label(this.source(label).slice(1, -1))
        if (!this.references.has(name)) this.references.set(name, this.source(url))
      }
      return false
    })
    return this.blocks(root, 0)
  }

  private source(n: { from: number; to: number }): string {
    return this.text.slice(n.from, n.to)
  }

  private label(text: string): string {
    return text.trim().replace(/\s+/g, " ").toLowerCase()
  }

  private blocks(node: SyntaxNode, depth: number): ReactNode[] {
    return childrenOf(node).map((c) => <Fragment key={c.from}>{this.block(c, depth)}</Fragment>)
  }

  private block(n: SyntaxNode, depth: number): ReactNode {
    if (depth > deepest) return <p className={classes.source}>{plain(this.source(n))}</p>
    const level = heading.exec(n.name)?.[1]
    if (level) return this.heading(n, Number(level), depth)
    switch (n.name) {
      case "Paragraph":
      case "Task":
        return <p>{this.inline(n, n.from, n.to, depth + 1)}</p>
      case "Blockquote":
        return <blockquote>{this.blocks(n, depth + 1)}</blockquote>
      case "BulletList":
        return <ul>{this.blocks(n, depth + 1)}</ul>
      case "OrderedList": {
        const mark = n.getChild("ListItem")?.getChild("ListMark")
        const start = mark ? parseInt(this.source(mark), 10) : 1
        return <ol start={start === 1 ? undefined : start}>{this.blocks(n, depth + 1)}</ol>
      }
      case "ListItem":
        return <li>{this.blocks(n, depth + 1)}</li>
      case "FencedCode":
      case "CodeBlock": {
        const info = n.getChild("CodeInfo")
        const code = childrenOf(n).filter((c) => c.name === "CodeText")
        return <CodeBlock code={code.map((c) => this.source(c)).join("")} language={info ? this.source(info).split(/\s/)[0] : undefined} />
      }
      case "HorizontalRule":
        return <hr />
      case "Table":
        return this.table(n, depth + 1)
      case "QuoteMark":
      case "ListMark":
        return null
    }
    // HTML, comments and the targets of links: nothing of what somebody has written is hidden.
    return <p className={classes.source}>{plain(this.source(n))}</p>
  }

  private heading(n: SyntaxNode, level: number, depth: number): ReactNode {
    const top = this.props.top ?? 3
    const text = this.source(n).replace(/^ {0,3}#{1,6}[ \t]*|[ \t]+#+[ \t]*$/g, "").replace(/\n[^\n]*$/, "")
    const id = this.props.anchors ? this.slug(text) : undefined
    return createElement(`h${Math.min(6, level + top - 1)}`, { id, className: classes[`h${level}`] }, this.inline(n, n.from, n.to, depth + 1))
  }

  private table(n: SyntaxNode, depth: number): ReactNode {
    const parts = childrenOf(n)
    const line = parts.find((p) => p.name === "TableDelimiter")
    const sides = (line ? this.source(line) : "")
      .replace(/^\s*\|?|\|?\s*$/g, "")
      .split("|")
      .map((s) => s.trim())
    const align = (i: number) => (/^:.*:$/.test(sides[i] ?? "") ? "center" : /:$/.test(sides[i] ?? "") ? "right" : undefined)
    const cells = (row: SyntaxNode, as: "th" | "td") => this.cells(row).map((cell, i) => createElement(as, { key: i, style: align(i) && { textAlign: align(i) }, ...(as === "th" ? { scope: "col" } : {}) }, cell && this.inline(cell, cell.from, cell.to, depth)))
    const head = parts.find((p) => p.name === "TableHeader")
    return (
      <div className={classes.wide} tabIndex={0}>
        <table>
          {head && (
            <thead>
              <tr>{cells(head, "th")}</tr>
            </thead>
          )}
          <tbody>
            {parts
              .filter((p) => p.name === "TableRow")
              .map((row) => (
                <tr key={row.from}>{cells(row, "td")}</tr>
              ))}
          </tbody>
        </table>
      </div>
    )
  }

  // The parser leaves empty cells out: they are between two bars.
  private cells(row: SyntaxNode): (SyntaxNode | null)[] {
    const list: (SyntaxNode | null)[] = []
    let now: SyntaxNode | null = null
    childrenOf(row).forEach((c, i) => {
      if (c.name === "TableCell") now = c
      else if (c.name === "TableDelimiter") {
        if (i > 0) list.push(now)
        now = null
      }
    })
    if (now) list.push(now)
    return list
  }

  // inline draws what stands in a line, from a place of the text to another.
  private inline(node: SyntaxNode, from: number, to: number, depth: number): ReactNode[] {
    if (depth > deepest) return [plain(this.text.slice(from, to))]
    const out: ReactNode[] = []
    let at = from
    const write = (end: number) => {
      if (end > at) out.push(...this.words(this.text.slice(at, end), at))
    }
    for (const c of childrenOf(node)) {
      if (c.to <= from || c.from >= to) continue
      write(c.name === "HeaderMark" ? from + this.text.slice(from, c.from).trimEnd().length : c.from)
      out.push(<Fragment key={c.from}>{this.piece(c, depth)}</Fragment>)
      at = c.to
      // The space between a mark and its text.
      if (c.name === "HeaderMark" || c.name === "QuoteMark") while (at < to && this.text[at] === " ") at++
    }
    write(to)
    return out
  }

  private words(text: string, at: number): ReactNode[] {
    const lines = plain(text).split(/[ \t]*\r?\n[ \t]*/)
    return lines.flatMap((line, i) => (i === 0 ? [line] : [this.props.breaks ? <br key={`${at}-${i}`} /> : " ", line]))
  }

  private piece(c: SyntaxNode, depth: number): ReactNode {
    switch (c.name) {
      case "Emphasis":
        return <em>{this.inline(c, c.from, c.to, depth + 1)}</em>
      case "StrongEmphasis":
        return <strong>{this.inline(c, c.from, c.to, depth + 1)}</strong>
      case "Strikethrough":
        return <del>{this.inline(c, c.from, c.to, depth + 1)}</del>
      case "EmphasisMark":
      case "StrikethroughMark":
      case "HeaderMark":
      case "QuoteMark":
        return null
      case "Escape":
        return plain(this.text.slice(c.from + 1, c.to))
      case "Entity":
        return plain(decodeEntity(this.source(c)))
      case "HardBreak":
        return <br />
      case "InlineCode":
        return <code>{plain(this.inlineCode(c))}</code>
      case "TaskMarker":
        return /x/i.test(this.source(c)) ? "☑" : "☐"
      case "Link":
      case "Image":
        return this.link(c, depth)
      case "Autolink": {
        const url = c.getChild("URL")
        return url ? this.anchor(c, this.source(url), plain(this.source(url)), this.source(url), this.source(c)) : plain(this.source(c))
      }
      case "URL":
        return this.anchor(c, this.source(c), plain(this.source(c)), this.source(c), this.source(c))
    }
    return plain(this.source(c))
  }

  private inlineCode(c: SyntaxNode): string {
    const marks = c.getChildren("CodeMark")
    const inside = this.text.slice(marks[0]?.to ?? c.from, marks[marks.length - 1]?.from ?? c.to).replace(/\n/g, " ")
    const code = /^ .*[^ ].* $/.test(inside) ? inside.slice(1, -1) : inside
    return isInside(c, "TableCell") ? code.replaceAll("\\|", "|") : code
  }

  private link(c: SyntaxNode, depth: number): ReactNode {
    const marks = c.getChildren("LinkMark")
    const [open, close] = marks
    const written = this.source(c)
    if (!open || !close) return plain(written)
    const said = this.text.slice(open.to, close.from)
    // The text of a link may have the look of an address, too.
    const url = c.getChildren("URL").find((u) => u.from >= close.to)
    const label = c.getChild("LinkLabel")
    const name = label && label.to - label.from > 2 ? this.source(label).slice(1, -1) : said
    const target = url ? this.source(url) : marks.length > 2 ? undefined : this.references.get(this.label(name))
    // Brackets that refer to nothing are brackets.
    if (target === undefined) return url || marks.length > 2 ? plain(written) : [...this.words(this.text.slice(c.from, open.to), c.from), ...this.inline(c, open.to, close.from, depth + 1), plain(this.text.slice(close.from, c.to))]
    const content = c.name === "Image" ? plain(said || target) : said.trim() ? this.inline(c, open.to, close.from, depth + 1) : plain(target)
    return this.anchor(c, target, content, said, written)
  }

  // anchor is a link that may be followed; what may not is shown as it was written.
  private anchor(node: SyntaxNode, target: string, content: ReactNode, said: string, written: string): ReactNode {
    if (isInside(node, "Link")) return content
    const place = this.props.inside?.(targetOf(target))
    if (place === null) return content
    if (place)
      return (
        <Anchor component={Link} to={place} reloadDocument={place === "/openapi"} inherit underline="always">
          {content}
        </Anchor>
      )
    const to = safeLink(target)
    if (!to) return plain(written)
    return (
      <>
        <Anchor href={to.href} target="_blank" rel="noopener noreferrer nofollow" inherit underline="always" title={to.href}>
          {content}
        </Anchor>
        {!saysTarget(said, to) && <span className={classes.host}> ({plain(to.host)})</span>}
      </>
    )
  }
}
