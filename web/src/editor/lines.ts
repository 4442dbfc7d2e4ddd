import type { Node } from "yaml"

/** Lines finds the places of a text that belong to the nodes of its document. */
export class Lines {
  constructor(readonly text: string) {}

  /** itemStart is where an item of a list begins: with the comment that stands directly above it. */
  itemStart(item: Node): number {
    const dash = this.dash(item)
    const own = " ".repeat(this.column(dash)) + "#"
    let start = this.lineStart(dash)
    while (start > 0) {
      const above = this.lineStart(start - 1)
      if (!this.text.startsWith(own, above)) break
      start = above
    }
    return start
  }

  span(node: Node): [number, number] {
    const [start, end] = node.range!
    let e = end
    while (e > start && /\s/.test(this.text[e - 1]!)) e--
    return [start, e]
  }

  spaced(items: Node[]): boolean {
    if (items.length < 2) return false
    const gap = this.text.slice(this.span(items[0]!)[1], this.dash(items[1]!))
    return /\n[ \t]*\n/.test(gap)
  }

  dash(item: Node): number {
    let at = item.range![0] - 1
    while (at > 0 && this.text[at] !== "-") at--
    return at
  }

  column(at: number): number {
    return at - this.lineStart(at)
  }

  lineStart(at: number): number {
    return this.text.lastIndexOf("\n", at - 1) + 1
  }

  lineEnd(at: number): number {
    const end = this.text.indexOf("\n", at)
    return end < 0 ? this.text.length : end
  }
}
