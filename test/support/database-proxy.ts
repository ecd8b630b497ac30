import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Identity } from './certificates.ts'
import { listenOn } from './ports.ts'

/** The reply to an SSLRequest: the byte that accepts it, the one that refuses it, or something else. */
export type TlsAnswer = 'S' | 'N' | 'S and more' | 'nothing' | 'goodbye'

/** A proxy in front of the test database that adds TLS. */
export type DatabaseProxy = {
  port: number
  /** The database's address through the proxy. */
  url(sslmode?: string): string
  /** Sets the reply from now on. */
  answer: TlsAnswer
  identity: Identity | undefined
  /** Transforms what the database sends to a client. */
  alter(answer: Buffer, client: Socket): Buffer
  /** The SSLRequests so far, and what clients sent over TLS and in the clear. */
  seen: { asked: number; inside: string; clear: string }
  /** How many connections it has led to the database. */
  sessions: number
  /** Resets every connection. */
  cut(): void
  stop(): Promise<void>
}

/** The SSLRequest message (Postgres 17, section 53.2.10). */
const TLS_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

/** Starts a proxy on a free port. Without an `identity` it accepts no TLS. */
export async function startDatabaseProxy(
  target: string,
  identity?: Identity,
): Promise<DatabaseProxy> {
  const clients = new Set<Socket>()
  const server = createServer((client) => {
    client.setNoDelay(true)
    clients.add(client)
    client.on('error', () => {})
    client.on('close', () => clients.delete(client))
    client.once('data', (first) => {
      if (!first.equals(TLS_REQUEST)) return lead(client, 'clear', first)
      proxy.seen.asked += 1
      if (proxy.answer === 'nothing') return
      if (proxy.answer === 'goodbye') return void client.end()
      client.write(proxy.answer === 'S and more' ? 'SE\0\0\0\u0004' : proxy.answer)
      if (proxy.answer !== 'S')
        return void client.once('data', (next) => lead(client, 'clear', next))
      const inner = new TLSSocket(client, { isServer: true, ...proxy.identity })
      inner.on('error', () => client.destroy())
      lead(inner, 'inside')
    })
  })

  function lead(client: Socket, way: 'inside' | 'clear', first?: Buffer): void {
    const { port, hostname } = new URL(target)
    proxy.sessions += 1
    const database = connect(Number(port), hostname)
    database.setNoDelay(true)
    const record = (bytes: Buffer) => {
      proxy.seen[way] += bytes.toString('latin1')
      database.write(bytes)
    }
    if (first) record(first)
    client.on('data', record)
    database.on('data', (bytes) => client.write(proxy.alter(bytes, client)))
    database.on('error', () => client.destroy())
    database.on('close', () => client.destroy())
    client.on('close', () => database.destroy())
  }

  const port = await listenOn(server)
  const proxy: DatabaseProxy = {
    port,
    url(sslmode) {
      const url = new URL(target)
      url.host = `127.0.0.1:${port}`
      if (sslmode) url.searchParams.set('sslmode', sslmode)
      return url.href
    },
    answer: identity ? 'S' : 'N',
    identity,
    alter: (answer) => answer,
    seen: { asked: 0, inside: '', clear: '' },
    sessions: 0,
    cut() {
      for (const client of clients) client.resetAndDestroy()
    },
    async stop() {
      const closed = once(server, 'close')
      server.close()
      proxy.cut()
      await closed
    },
  }
  return proxy
}
