import { createServer, type Socket } from 'node:net'
import { listen } from './gateway.ts'

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
export async function startClosingServer(greeting = ''): Promise<StandIn> {
  let connections = 0
  const server = createServer((client: Socket) => {
    connections += 1
    client.once('data', () => client.end(greeting))
  })
  return { port: await listen(server), countConnections: () => connections }
}
