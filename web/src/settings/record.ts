// The value of a form: an object of the API, read and written by paths such as price.input.
export type Value = { [key: string]: unknown }

/** read finds the value at a path. */
export function read(record: Value, path: string): unknown {
  let at: unknown = record
  for (const step of path.split(".")) {
    if (typeof at !== "object" || at === null) return undefined
    at = (at as Value)[step]
  }
  return at
}

/** write returns the record with another value at the path. An undefined value takes the field out, and objects that are empty then. */
export function write(record: Value, path: string, value: unknown): Value {
  const [first, ...rest] = path.split(".") as [string, ...string[]]
  const next = { ...record }
  const inner = record[first]
  const changed = rest.length === 0 ? value : write(typeof inner === "object" && inner !== null ? (inner as Value) : {}, rest.join("."), value)
  if (changed === undefined || (rest.length > 0 && Object.keys(changed as Value).length === 0)) delete next[first]
  else next[first] = changed
  return next
}
