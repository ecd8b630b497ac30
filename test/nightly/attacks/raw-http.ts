import { once } from 'node:events'
import { connect } from 'node:net'

/** What came back on one connection: the status of each response, and everything as it was received. */
export type RawAnswer = { statuses: number[]; text: string }

/**
 * Sends bytes exactly as they are written, and reads until the server closes the connection. A request that it answers
 * and waits behind has to carry `Connection: close`.
 */
export async function sendRaw(url: string, bytes: string): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let text = ''
  socket.setEncoding('latin1').on('error', () => {})
  socket.on('data', (part) => {
    text += part
  })
  const closed = once(socket, 'close')
  socket.write(Buffer.from(bytes, 'latin1'))
  await closed
  // A response begins right behind the body of the one before.
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
  return { statuses, text }
}
