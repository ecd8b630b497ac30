import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { onTestFinished } from 'vitest'

export type Sent = {
  method: string
  /** With its query. */
  path: string
  headers: Record<string, string>
  body: Buffer | undefined
}

export type Got = { status: number; headers: NodeJS.Dict<string | string[]>; text: string }

/** Sends requests over connections that are kept until the test ends. Of an event stream it reads the head. */
export function openSender(url: string): (sent: Sent) => Promise<Got> {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  onTestFinished(() => agent.destroy())
  return ({ method, path, headers, body }) =>
    new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': String(body.length) }
      const options = { agent, method, path: writePath(path), headers: { ...headers, ...length } }
      const sending = request(url, options, (response) => {
        const chunks: Buffer[] = []
        const { statusCode: status = 0, headers } = response
        const end = () => resolve({ status, headers, text: Buffer.concat(chunks).toString() })
        response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
        response.on('end', end)
        if (headers['content-type']?.startsWith('text/event-stream')) {
          end()
          response.destroy()
        }
      })
      sending.on('error', reject).end(body)
    })
}

/** A path as it goes out: what a request line cannot hold is escaped, bytes as the bytes they are. */
export const writePath = (path: string) =>
  path.replace(/[^\x21-\x7e]/gu, (char) => {
    if (char <= '\xff') return `%${Buffer.from(char, 'latin1').toString('hex')}`
    return char.isWellFormed() ? encodeURIComponent(char) : '%ED%A0%80'
  })

/** A value that a header line can hold. */
export const writeHeader = (text: string) => text.replace(/[^\t\x20-\x7e\x80-\xff]/gu, '')

/** How long a server that waits for more of a request is waited for (ms). */
const PATIENCE_MS = 100

/** Writes bytes to the port and returns what comes back, be it nothing. */
export function sendBytes(url: string, bytes: Buffer): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.setTimeout(PATIENCE_MS, () => socket.destroy())
    socket.on('data', (chunk) => chunks.push(chunk)).on('error', () => {})
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
  })
}
