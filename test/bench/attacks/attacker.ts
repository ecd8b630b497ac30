import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'

/** What the attacking process does until it is killed. */
export type AttackJob = { url: string } & (
  | {
      kind: 'requests'
      method: 'GET' | 'POST'
      /** `#` in it becomes a number of its own for each request. */
      path: string
      headers: Record<string, string>
      body?: string
      /** Requests in flight at once. */
      parallel: number
      /** Requests per second; as fast as they are answered when not set. */
      rate?: number
    }
  /** Opens so many connections, sends nothing on them, and opens each again once it is closed. */
  | { kind: 'connections'; count: number }
)

/** Every attack comes from this address, so that the service can tell it from the other senders. */
const ADDRESS = '127.0.0.9'
const REOPEN_MS = 200

process.on('message', (job: AttackJob) => {
  if (job.kind === 'requests') void attack(job)
  else holdConnections(job)
})
process.on('disconnect', () => process.exit())

async function attack(job: Extract<AttackJob, { kind: 'requests' }>): Promise<void> {
  const { method, path, headers, body = null, parallel, rate } = job
  const pool = new Pool(job.url, {
    connections: parallel,
    localAddress: ADDRESS,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  let sent = 0
  async function send(): Promise<void> {
    sent += 1
    try {
      const answer = await pool.request({
        path: path.replace('#', `${sent}`),
        method,
        headers,
        body,
      })
      await answer.body.dump()
    } catch {
      // Refused or cut off: an attacker goes on.
      await sleep(10)
    }
  }
  if (rate === undefined) {
    await Promise.all(
      Array.from({ length: parallel }, async () => {
        for (;;) await send()
      }),
    )
    return
  }
  const started = performance.now()
  for (;;) {
    while (sent < ((performance.now() - started) / 1_000) * rate) void send()
    await sleep(2)
  }
}

function holdConnections({ url, count }: Extract<AttackJob, { kind: 'connections' }>): void {
  const { hostname: host, port } = new URL(url)
  const open = () => {
    const socket = connect({ host, port: Number(port), localAddress: ADDRESS })
    socket.on('error', () => {})
    socket.on('close', () => setTimeout(open, REOPEN_MS))
    socket.resume()
  }
  for (let n = 0; n < count; n += 1) open()
}
