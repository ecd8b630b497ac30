import postgres from 'postgres'

/** Message types of the protocol (Postgres 17, 53.7). */
const ERROR_RESPONSE = 'E'.charCodeAt(0)
const READY_FOR_QUERY = 'Z'.charCodeAt(0)

/** Type and length of a message. */
const HEAD_BYTES = 5

const NAMES: Readonly<Record<string, string>> = {
  V: 'severity',
  C: 'code',
  M: 'message',
  D: 'detail',
  H: 'hint',
  R: 'routine',
}

/** What a chunk holds for the driver, and the error that ended the session, if it came. */
export type FilteredChunk = { passed: Buffer; fatal?: Error }

/**
 * Creates a filter for what a server sends in a session. It takes out the FATAL error that ends an open
 * session. The driver (3.4.9) would keep that error beyond the session, and reject the first statement of
 * its next session with it. Errors of a session that is being opened are passed on.
 */
export function createFatalFilter(): (chunk: Buffer) => FilteredChunk {
  /** An error message, or the head of any message, of which the rest has not come yet. */
  let held = Buffer.alloc(0)
  /** Bytes still to come of a message that has been passed on in part. */
  let unread = 0
  let isOpen = false
  return (chunk) => {
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    held = Buffer.alloc(0)
    let at = unread
    while (at + HEAD_BYTES <= bytes.length) {
      const end = at + 1 + bytes.readUInt32BE(at + 1)
      const type = bytes[at]
      if (type === READY_FOR_QUERY) isOpen = true
      if (type === ERROR_RESPONSE && isOpen) {
        if (end > bytes.length) break
        const fatal = readFatal(bytes.subarray(at + HEAD_BYTES, end))
        if (fatal) return { passed: bytes.subarray(0, at), fatal }
      }
      at = end
    }
    if (at < bytes.length) held = Buffer.from(bytes.subarray(at))
    unread = Math.max(0, at - bytes.length)
    return { passed: bytes.subarray(0, Math.min(at, bytes.length)) }
  }
}

/** Reads the fields of an error (53.8); undefined unless it ends the session. */
function readFatal(fields: Buffer): Error | undefined {
  const read: Record<string, string> = { message: 'the server ended the session' }
  for (const field of fields.toString('utf8').split('\0')) {
    const name = NAMES[field.charAt(0)]
    if (name) read[name] = field.slice(1)
  }
  const isFatal = read.severity === 'FATAL' || read.severity === 'PANIC'
  // The driver's types omit the constructor's parameter.
  return isFatal ? Reflect.construct(postgres.PostgresError, [read]) : undefined
}
