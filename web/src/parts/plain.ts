const turning = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/**
 * plain makes signs visible that turn the direction of writing. A name or a value from outside could otherwise look like another one:
 * "gpj.exe" written backwards.
 */
export function plain(text: string): string {
  return text.replace(turning, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`)
}
