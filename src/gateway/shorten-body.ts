import { stringify } from 'lossless-json'

export type Members = Readonly<Record<string, unknown>>

/** Of a stored body, in UTF-8. Published notifications have at most 600. */
const MAX_BYTES = 8 * 1024
/** Of a value that is cut. Two unsigned ones leave room for what is signed, in any encoding. */
const MAX_CHARACTERS = 200

/** Whether a body is short enough to be stored. */
export function isShort(body: string): boolean {
  return body.length * 3 <= MAX_BYTES || Buffer.byteLength(body) <= MAX_BYTES
}

/**
 * Writes members as a body that can be stored. If they are too long, cuts long values and marks them: first of those
 * that are not signed, whose length any sender can choose, then of all.
 */
export function writeBody(
  members: Members,
  format: 'json' | 'form',
  isSigned: (name: string) => boolean,
): string {
  const write = (values: Members) =>
    format === 'json' ? (stringify(values) ?? '') : writeForm(values)
  const whole = write(members)
  if (isShort(whole)) return whole
  const signedWhole = write(cutValues(members, (name) => !isSigned(name)))
  if (isShort(signedWhole)) return signedWhole
  const cut = write(cutValues(members, () => true))
  return isShort(cut) ? cut : cutText(cut)
}

function cutValues(members: Members, isCut: (name: string) => boolean): Members {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [name, isCut(name) ? cutValue(value) : value]),
  )
}

function cutValue(value: unknown): unknown {
  const text = typeof value === 'string' ? value : (stringify(value) ?? '')
  if (text.length <= MAX_CHARACTERS) return value
  return `${text.slice(0, MAX_CHARACTERS).toWellFormed()}… (shortened from ${text.length} characters)`
}

/** Only names of kilobytes lead here: what is left can be read by people alone. */
function cutText(text: string): string {
  const bytes = Buffer.from(text)
  const mark = `… (shortened from ${bytes.length} bytes)`
  const start = bytes.subarray(0, MAX_BYTES - Buffer.byteLength(mark) - 2).toString()
  return start.replace(/\ufffd+$/, '') + mark
}

function writeForm(values: Members): string {
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) form.append(name, String(value))
  return form.toString()
}
