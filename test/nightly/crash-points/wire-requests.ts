import type { WireMessage } from '../../support/postgres-wire.ts'

/** What a client sends before it expects an answer. */
export type WireRequest = {
  bytes: Buffer
  /** The type of the message that ends it. */
  endsWith: string
  /** The statement it executes, if it executes one. */
  sql: string | undefined
}

/** Sync, Flush, a simple query; a start-up message, a password and Terminate stand alone. */
const ENDS_REQUEST = ['S', 'H', 'Q', '', 'p', 'X']

/** Creates a function that gathers the messages of one client into requests. */
export function createRequestReader(): (message: WireMessage) => WireRequest | undefined {
  const prepared = new Map<string, string>()
  let gathered: Buffer[] = []
  let bound: string | undefined
  let executed: string | undefined
  return ({ type, bytes }) => {
    gathered.push(bytes)
    const [first = '', second = ''] = bytes.toString('utf8', 5).split('\0')
    if (type === 'P') prepared.set(first, second)
    if (type === 'B') bound = prepared.get(second)
    if (type === 'E') executed = bound
    if (type === 'Q') executed = first
    if (!ENDS_REQUEST.includes(type)) return undefined
    const request = { bytes: Buffer.concat(gathered), endsWith: type, sql: executed }
    gathered = []
    executed = undefined
    return request
  }
}

/** Whether the server answers the request with messages that `endsAnswer` finds the last of. */
export function isAnswered({ endsWith }: WireRequest): boolean {
  return ['S', 'H', 'Q'].includes(endsWith)
}

/** Whether a message of the server is the last one of its answer. A Flush follows only a Describe. */
export function endsAnswer({ endsWith }: WireRequest, { type }: WireMessage): boolean {
  return endsWith === 'H' ? ['T', 'n', 'E'].includes(type) : type === 'Z'
}

const WRITE = /(?<!\b(?:for|key|do) )\b(insert into|update|delete from) "?([a-z_]+)/
const READ = /\b(?:from|join)(?: lateral)? "?([a-z_]+)\b(?!"? ?\()/g
/** A `from` that is followed by no table. */
const NO_SOURCE = /\b(epoch|distinct) from\b/g
const NO_TABLES = ['rows', 'lateral', 'select']

/** Names a statement by what it does to which table: `insert refunds`, `select payments locked`. */
export function nameStatement(sql: string): string {
  const text = sql.replace(/\s+/g, ' ').trim().toLowerCase().replace(NO_SOURCE, '')
  const [, verb = '', written = ''] = WRITE.exec(text) ?? []
  if (written) return `${verb.replace(/ .*/, '')} ${written}`
  const read = [...text.matchAll(READ)].flatMap(([, table = '']) =>
    NO_TABLES.includes(table) ? [] : [table],
  )[0]
  if (!read) return text.replace(/\(.*/, '')
  return `select ${read}${/\bfor (no key )?(update|share|key share)\b/.test(text) ? ' locked' : ''}`
}
