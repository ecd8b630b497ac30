import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** Stands between a client and a server, so that a test can take the server away and give it back. */
export type Relay = {
  /** The server's address, through the relay. */
  url: string
  /** Breaks every connection and refuses new ones. */
  cut(): Promise<void>
  restore(): Promise<void>
  stop(): Promise<void>
}

/** @param atPort 0 takes any free port */
export async function startRelay(target: string, atPort = 0): Promise<Relay> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  const listen = async (on: number) => {
    server.listen(on, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen(atPort)
  const address = server.address()
  const own = typeof address === 'object' && address ? address.port : 0
  const url = new URL(target)
  url.host = `127.0.0.1:${own}`

  async function cut(): Promise<void> {
    const closed = server.listening ? once(server, 'close') : undefined
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return { url: url.href, cut, restore: () => listen(own), stop: cut }
}
