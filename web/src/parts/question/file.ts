import type { Filled } from "./answer"

/** maxFile is how large a file of an answer may be: the server takes no more. */
export const maxFile = 10 << 20

/** fileOf reads a file as an answer carries it. */
export function fileOf(file: File): Promise<NonNullable<Filled["file"]>> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onerror = () => reject(reader.error ?? new Error("the file could not be read"))
    reader.onload = () => {
      const url = String(reader.result)
      resolve({ name: file.name, content_type: file.type || "application/octet-stream", base64: url.slice(url.indexOf(",") + 1), size: file.size })
    }
    reader.readAsDataURL(file)
  })
}
