// Numbers of JSON can have more digits than those of JavaScript. What somebody approves is shown, and sent back, exactly as it was written.

type Source = { source?: string }
type RawJSON = { rawJSON?: (text: string) => unknown; isRawJSON?: (value: unknown) => boolean }

const json = JSON as typeof JSON & RawJSON

/** raw is a value that is written into JSON as it stands; where the browser has none, what JavaScript makes of it. */
export function raw(text: string): unknown {
  return json.rawJSON ? json.rawJSON(text) : JSON.parse(text)
}

/** isRaw says that a value is a number that JavaScript would change. */
export function isRaw(value: unknown): value is { rawJSON: string } {
  return !!json.isRawJSON?.(value)
}

/** parse reads JSON and keeps each number that JavaScript would change as it was written. */
export function parse<T = unknown>(text: string): T {
  return JSON.parse(text, (_key: string, value: unknown, ...rest: unknown[]) => {
    const source = (rest[0] as Source | undefined)?.source
    if (typeof value !== "number" || source === undefined || !json.rawJSON || String(value) === source) return value
    return json.rawJSON(source)
  }) as T
}

/** written is a value as JSON, in lines. */
export function written(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent) ?? ""
}
