import type { ServerResponse } from 'node:http'
import { type Seen, serve } from './gateway.ts'

/** What the service sent to the gateway, byte for byte. */
export type GatewayTap = {
  url: string
  /** The bodies of REFUND, oldest first. */
  refunds(): string[]
}

/** Asks the gateway what was asked, and answers with what it says. */
export async function forward(
  target: string,
  response: ServerResponse,
  { path, headers, body }: Seen,
): Promise<void> {
  const type = headers['content-type'] ?? ''
  const init = { method: 'POST', headers: { 'content-type': type }, body }
  const answer = await fetch(target + path, init)
  response.writeHead(answer.status, { 'content-type': 'application/json' })
  response.end(await answer.text())
}

/** Starts a proxy in front of a gateway that records what was sent; closed after the test. */
export async function startGatewayTap(target: string): Promise<GatewayTap> {
  const { url, seen } = await serve((response, request) => forward(target, response, request))
  const refunds = () =>
    seen.map(({ body }) => body).filter((body) => body.includes('"svc_Command":"REFUND"'))
  return { url, refunds }
}
