import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { listenOn } from '../../support/ports.ts'
import { createMessageReader } from '../../support/postgres-wire.ts'
import {
  createRequestReader,
  endsAnswer,
  isAnswered,
  nameStatement,
  type WireRequest,
} from './wire-requests.ts'

/** On which side of a statement's execution the connection is lost. */
export type Edge = 'before' | 'after'

/** A statement, by its name in a watch, at which its connection is lost. */
export type StatementFault = {
  statement: string
  /** `before`: the server never receives it; `after`: it has executed it, and its answer is lost. */
  edge: Edge
  /** Called while the statement, or its answer, is withheld; the connection is cut when it resolves. */
  strike: () => Promise<void>
}

/** What is recorded from the start of a watch on. */
export type Watch = {
  /** Names of the statements, in the order in which they reached the proxy. */
  seen: readonly string[]
  /** Whether the fault has struck. */
  isStruck(): boolean
}

/** A proxy in front of a database that knows every statement of its clients, and passes one at a time. */
export type StatementProxy = {
  /** The database's address through the proxy. */
  url: string
  /**
   * Starts to record, in place of the watch before.
   * @param steps names of the transactions, in the order in which they begin; a statement's name begins with its own
   */
  watch(steps: readonly string[], fault?: StatementFault): Watch
  stop(): Promise<void>
}

/** Statements that open a session: they come with a connection, not with the work. */
const OF_SESSION = /^\s*(listen\b|select b\.oid, b\.typarray|select set_config\b)/i

/** Starts a proxy on a free port. It offers no TLS. */
export async function startStatementProxy(target: string): Promise<StatementProxy> {
  const clients = new Set<Socket>()
  let watching = startWatch([])
  const server = createServer((client) => {
    clients.add(client)
    client.on('close', () => clients.delete(client))
    openSession(client, target, (session, sql) => watching.meet(session, sql))
  })
  const url = new URL(target)
  url.host = `127.0.0.1:${await listenOn(server)}`
  return {
    url: url.href,
    watch(steps, fault) {
      watching = startWatch(steps, fault)
      return watching
    },
    async stop() {
      const closed = once(server, 'close')
      server.close()
      for (const client of clients) client.destroy()
      await closed
    },
  }
}

/** A fault that strikes at the statement that is being executed. */
type Struck = Pick<StatementFault, 'edge' | 'strike'>

type Meeting = Watch & { meet(session: object, sql: string): Struck | undefined }

function startWatch(steps: readonly string[], fault?: StatementFault): Meeting {
  const seen: string[] = []
  const name = createNaming(steps)
  let isStruck = false
  return {
    seen,
    isStruck: () => isStruck,
    meet(session, sql) {
      if (OF_SESSION.test(sql)) return undefined
      const statement = name(session, nameStatement(sql))
      seen.push(statement)
      if (isStruck || fault?.statement !== statement) return undefined
      isStruck = true
      return fault
    },
  }
}

/** Creates a function that makes a statement's name unique: by its transaction, and by how often it came before. */
function createNaming(steps: readonly string[]): (session: object, what: string) => string {
  const open = new Map<object, string>()
  const counts = new Map<string, number>()
  let begun = 0
  return (session, what) => {
    if (what === 'begin') {
      open.set(session, steps[begun] ?? `transaction ${begun + 1}`)
      begun += 1
    }
    const step = open.get(session)
    if (what === 'commit' || what === 'rollback') open.delete(session)
    const plain = step === undefined ? what : `${step}: ${what}`
    const count = (counts.get(plain) ?? 0) + 1
    counts.set(plain, count)
    return count === 1 ? plain : `${plain} (${count})`
  }
}

/** Passes a client's requests on, the next one only after the answer to the one before. */
function openSession(
  client: Socket,
  target: string,
  meet: (session: object, sql: string) => Struck | undefined,
): void {
  const { port, hostname } = new URL(target)
  const server = connect(Number(port), hostname)
  const [readClient, readRequest] = [createMessageReader('client'), createRequestReader()]
  const readServer = createMessageReader('server')
  const waiting: WireRequest[] = []
  let current: WireRequest | undefined
  let struck: Struck | undefined

  async function cut(): Promise<void> {
    await struck?.strike()
    client.resetAndDestroy()
    server.destroy()
  }
  function pass(): void {
    while (!current) {
      const request = waiting.shift()
      if (!request) return
      if (isAnswered(request)) current = request
      struck = request.sql === undefined ? undefined : meet(client, request.sql)
      if (struck?.edge === 'before') return void cut()
      server.write(request.bytes)
    }
  }
  client.setNoDelay(true)
  server.setNoDelay(true)
  client.on('data', (chunk) => {
    waiting.push(...readClient(chunk).flatMap((message) => readRequest(message) ?? []))
    pass()
  })
  server.on('data', (chunk) => {
    for (const message of readServer(chunk)) {
      const isLast = current !== undefined && endsAnswer(current, message)
      if (!struck) client.write(message.bytes)
      else if (isLast) return void cut()
      if (isLast) current = undefined
    }
    pass()
  })
  for (const [one, other] of [
    [client, server],
    [server, client],
  ] as const) {
    one.on('error', () => {})
    one.on('close', () => other.destroy())
  }
}
