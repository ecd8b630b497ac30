import { judgeMessage, type SessionEnd } from './session-end.ts'
import { readSetUpRow, refuseSession, SET_UP, SET_UP_READS } from './session-setup.ts'

/** Message types of the protocol (Postgres 17, 53.7). */
const ERROR_RESPONSE = 'E'.charCodeAt(0)
const NOTICE_RESPONSE = 'N'.charCodeAt(0)
const READY_FOR_QUERY = 'Z'.charCodeAt(0)
const DATA_ROW = 'D'.charCodeAt(0)
const PARAMETER_STATUS = 'S'.charCodeAt(0)
const BACKEND_KEY_DATA = 'K'.charCodeAt(0)

/** Type and length of a message. */
const HEAD_BYTES = 5
const NOTHING = Buffer.alloc(0)
/** The CancelRequest message up to the key: its length, and its code. */
const CANCEL_HEAD = Buffer.from([0, 0, 0, 16, 4, 210, 22, 46])

/** What a chunk holds for the driver, and why the session has to end, if it has to. */
export type FilteredChunk = {
  passed: Buffer
  /** The ReadyForQuery messages in it. */
  ready: number
  end?: SessionEnd
}

export type SessionFilter = {
  read(chunk: Buffer): FilteredChunk
  /** Whether the driver may use the session. */
  isOpen(): boolean
  /** The message that cancels what the session's server process is doing; undefined if it cannot be cancelled. */
  cancelRequest(): Buffer | undefined
}

/**
 * Creates a filter for what a server sends in a session. Before the driver learns that the session is open, the
 * filter sets it up by a statement of its own. From then on it takes out what ends the session, instead of leaving
 * it to the driver (3.4.9): the driver would keep a FATAL error beyond the session, and reject the first statement of
 * its next session with it, and it passes a warning on without the statement that it belongs to. Errors of a session
 * that is being opened are passed on.
 * @param send sends bytes to the server
 * @param readOnly sets the session up to write nothing
 */
export function createSessionFilter(
  send: (bytes: Buffer) => void,
  readOnly = false,
): SessionFilter {
  const judge = createMessageJudge(() => send(readOnly ? SET_UP_READS : SET_UP), readOnly)
  /** A message to judge, or the head of any message, of which the rest has not come yet. */
  let held = NOTHING
  /** Bytes still to come of a message that has been passed on in part. */
  let unread = 0

  function read(chunk: Buffer): FilteredChunk {
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    const passed: Buffer[] = []
    let from = 0
    let at = unread
    let ready = 0
    held = NOTHING
    while (at + HEAD_BYTES <= bytes.length) {
      const next = at + 1 + bytes.readUInt32BE(at + 1)
      if (judge.concerns(bytes[at])) {
        if (next > bytes.length) break
        const judged = judge.read(bytes[at], bytes.subarray(at + HEAD_BYTES, next))
        if (judged !== true) {
          passed.push(bytes.subarray(from, at))
          from = next
        }
        if (typeof judged === 'object') return { passed: join(passed), ready, end: judged }
      }
      if (bytes[at] === READY_FOR_QUERY) ready += 1
      at = next
    }
    if (at < bytes.length) held = Buffer.from(bytes.subarray(at))
    unread = Math.max(0, at - bytes.length)
    passed.push(bytes.subarray(from, Math.max(from, Math.min(at, bytes.length))))
    return { passed: join(passed), ready }
  }
  return { read, isOpen: judge.isOpen, cancelRequest: judge.cancelRequest }
}

type MessageJudge = Pick<SessionFilter, 'isOpen' | 'cancelRequest'> & {
  /** Whether a message of this type has to be read as a whole. */
  concerns(type: number | undefined): boolean
  /** Reads a whole message: whether the driver gets it, or why the session has to end. */
  read(type: number | undefined, body: Buffer): boolean | SessionEnd
}

function createMessageJudge(setUp: () => void, readOnly: boolean): MessageJudge {
  let phase: 'opening' | 'settingUp' | 'open' = 'opening'
  /** The id of the session's server process, and its secret. */
  let backendKey = NOTHING
  return {
    isOpen: () => phase === 'open',
    cancelRequest: () =>
      backendKey.length === 0 ? undefined : Buffer.concat([CANCEL_HEAD, backendKey]),
    concerns(type) {
      if (phase === 'opening') return type === READY_FOR_QUERY || type === BACKEND_KEY_DATA
      if (phase === 'settingUp') return true
      return type === ERROR_RESPONSE || type === NOTICE_RESPONSE
    },
    read(type, body) {
      if (phase === 'open') return judgeMessage(type === NOTICE_RESPONSE, body, readOnly) ?? true
      if (type === BACKEND_KEY_DATA) {
        backendKey = Buffer.from(body)
        return true
      }
      if (phase === 'opening') {
        phase = 'settingUp'
        setUp()
        return false
      }
      if (type === ERROR_RESPONSE) return refuseSession(body)
      if (type === DATA_ROW) return readSetUpRow(body) ?? false
      if (type !== READY_FOR_QUERY) return type === PARAMETER_STATUS
      phase = 'open'
      return true
    },
  }
}

function join(parts: readonly Buffer[]): Buffer {
  const [only] = parts
  return only && parts.length === 1 ? only : Buffer.concat(parts)
}
