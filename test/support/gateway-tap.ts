import { once } from 'node:events'
import { createServer } from 'node:http'
import { onTestFinished } from 'vitest'

/** What the service sent to the gateway, byte for byte. */
export type GatewayTap = {
  url: string
  /** The bodies of REFUND, oldest first. */
  refunds(): string[]
}

/** Stands before a gateway, passes everything on and keeps what was sent; stops after the test. */
export async function startGatewayTap(target: string): Promise<GatewayTap> {
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    bodies.push(body)
    const headers = { 'content-type': request.headers['content-type'] ?? '' }
    const answer = await fetch(target + (request.url ?? ''), { method: 'POST', headers, body })
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    response.end(await answer.text())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    refunds: () => bodies.filter((body) => body.includes('"svc_Command":"REFUND"')),
  }
}
