import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/**
 * Finds a free port outside the range that systems use for outgoing connections: nothing else takes it while its server is
 * away for a moment.
 */
export async function findPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000)
    const server = createServer()
    const taken = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(true))
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(false)))
    })
    if (!taken) return port
  }
}

/** The same as a setting. */
export const pickPort = async (): Promise<string> => String(await findPort())

/**
 * Listens on this machine alone.
 * @param at 0 = any free port
 * @returns the port
 */
export async function listenOn(server: Server, at = 0): Promise<number> {
  server.listen(at, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  return address.port
}
