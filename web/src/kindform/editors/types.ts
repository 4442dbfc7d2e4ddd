import type { FieldSchema, Values } from "../schema"
import type { Placed } from "../problems"

/** EditorProps is what every editor of a value is given. */
export type EditorProps = {
  name: string
  schema: FieldSchema
  value: unknown
  onChange: (value: unknown) => void
  /** What the field is called, as it is read out. */
  label: string
  /** The id of the texts that explain it. */
  describedBy?: string
  id: string
  problems: Placed[]
  /** The fields beside it. */
  siblings: Values
}
