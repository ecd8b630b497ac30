import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** What stands where a database should: it accepts every connection. */
export type StandIn = {
  port: number
  /** How often it was connected to. */
  countConnections(): number
}

/**
 * Starts a server that reads and then closes, as a proxy does in front of a database that is down.
 * @param greeting what it answers to the startup message
 */
export function startClosingServer(greeting = ''): Promise<StandIn> {
  return startStandIn((client) => client.once('data', () => client.end(greeting)))
}

/** Starts a server that never answers. */
export function startSilentServer(): Promise<StandIn> {
  return startStandIn(() => {})
}

async function startStandIn(serve: (client: Socket) => void): Promise<StandIn> {
  const clients = new Set<Socket>()
  let connections = 0
  const server = createServer((client) => {
    connections += 1
    clients.add(client)
    client.on('error', () => {}).on('close', () => clients.delete(client))
    serve(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const client of clients) client.destroy()
  })
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  return { port: address.port, countConnections: () => connections }
}
