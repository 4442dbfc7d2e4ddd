// The names that texts of models and people really use; any other stays as it was written.
const names: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", hellip: "…", mdash: "—", ndash: "–", times: "×", euro: "€", deg: "°", larr: "←", rarr: "→", middot: "·" }

/** decodeEntity is the character that an entity stands for: &amp; &#38; &#x26;. One that is not known stays as it is. */
export function decodeEntity(text: string): string {
  const [, hex, decimal, name] = /^&(?:#[xX]([0-9a-fA-F]{1,6})|#(\d{1,7})|(\w+));$/.exec(text) ?? []
  if (name) return names[name] ?? text
  const code = hex ? parseInt(hex, 16) : decimal ? Number(decimal) : 0
  return code >= 0x20 && code <= 0x10ffff && !(code >= 0x7f && code < 0xa0) && !(code >= 0xd800 && code < 0xe000) ? String.fromCodePoint(code) : text
}

/** targetOf is the target of a link as it is meant: without the angle brackets around it, escapes and entities. */
export function targetOf(written: string): string {
  const inside = written.startsWith("<") && written.endsWith(">") ? written.slice(1, -1) : written
  return inside.replace(/\\([!-/:-@[-`{-~])|&(?:#[xX][0-9a-fA-F]{1,6}|#\d{1,7}|\w+);/g, (all, escaped?: string) => escaped ?? decodeEntity(all))
}

/** Target is where a link of outside leads: its address, and the part of it by which people know whom they will meet. */
export type Target = { href: string; host: string }

// What cannot be seen or is read differently by different programs.
// eslint-disable-next-line no-control-regex
const unclear = /[\u0000-\u0020\u007f-\u00a0\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\\]/

/** safeLink is the target of a link that may be followed: http, https or a mail address, without a name or a password before the host. Anything else is not a link. */
export function safeLink(written: string): Target | undefined {
  const target = targetOf(written)
  if (unclear.test(target)) return
  const mail = /^(?:mailto:)?([^@?#/:<>"]+@[^@?#/:<>"]+)$/i.exec(target)?.[1]
  if (mail) return { href: `mailto:${mail}`, host: mail }
  if (!/^https?:\/\/[^/]/i.test(target)) return
  try {
    const url = new URL(target)
    if ((url.protocol !== "http:" && url.protocol !== "https:") || url.username || url.password || !url.host) return
    return { href: url.href, host: url.host }
  } catch {
    // It is not an address.
  }
}

/** saysTarget tells whether the text of a link is its address, so that whoever reads it knows where it leads. */
export function saysTarget(text: string, { href, host }: Target): boolean {
  if (href.startsWith("mailto:")) return text === host || text === href
  try {
    return new URL(text).href === href && text.toLowerCase().includes(`//${host}`)
  } catch {
    return false
  }
}
